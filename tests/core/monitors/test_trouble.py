"""Trouble that is trouble: the right monitor fires."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.types import Evaluation, Step

Act = Callable[..., Step]
Fired = Callable[[Sequence[Step]], set[str]]
Play = Callable[..., "list[Evaluation]"]

ON_SUBJECT = "The date parser rejects leap years, so that is where I look now."


def test_the_same_call_with_the_same_result_is_a_loop(act: Act, fired: Fired) -> None:
    assert "semantic_loop" in fired([act("search", "0 results", query="leap")] * 3)


def test_key_order_and_white_space_hide_no_loop(act: Act, fired: Fired) -> None:
    steps = [act("search", "0 results", query="a  b", page=1), act("search", "0 results", page=1, query="a b")]
    assert "semantic_loop" in fired([*steps, *steps])


def test_the_same_failing_call_three_times_is_a_loop(act: Act, fired: Fired) -> None:
    assert "semantic_loop" in fired([act("fetch", "denied", is_error=True, url="u")] * 3)


def test_the_same_error_from_three_different_calls_is_a_loop(act: Act, fired: Fired) -> None:
    steps = [
        act("run_sql", f"Error: no such column c in line {n}", is_error=True, query=f"SELECT {n}") for n in range(3)
    ]
    assert "semantic_loop" in fired(steps)


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_a_circle_of_calls_is_a_loop(act: Act, fired: Fired, period: int) -> None:
    circle = [act("open", f"page {n}", url=f"u{n}") for n in range(period)]
    assert "semantic_loop" in fired(circle * 2)


def test_success_claimed_on_an_error_is_a_contradiction(act: Act, fired: Fired) -> None:
    steps = [
        act("update_record", "Error: record is locked", is_error=True, record="r1"),
        Step(thought="The record was successfully updated."),
    ]
    assert "claim_contradiction" in fired(steps)


def test_assumptions_in_place_of_results_are_a_contradiction(act: Act, fired: Fired) -> None:
    steps = [act("note", f"ok {n}", thought="I will assume that the balance is positive.", n=n) for n in range(3)]
    assert "claim_contradiction" in fired(steps)


def test_done_declared_right_after_an_edit_is_unverified(act: Act, fired: Fired) -> None:
    steps = [act("edit_file", "ok", path="parser.py", new="x"), Step(thought="The task is complete.")]
    assert "verification_skip" in fired(steps)


def test_one_file_changed_again_and_again_without_a_check_is_unverified(act: Act, fired: Fired) -> None:
    assert "verification_skip" in fired([act("edit_file", "ok", path="parser.py", new=f"v{n}") for n in range(6)])


def test_things_read_again_unchanged_are_churn(act: Act, fired: Fired) -> None:
    files = [act("read_file", f"text of {n}", path=f"f{n}.py") for n in range(7)]
    assert "cyclic_compression" in fired([*files, files[0], files[2], files[4]])


def test_the_same_plan_again_is_churn(act: Act, fired: Fired) -> None:
    plan = "First I read the parser, then I change the leap year rule, then I run the tests, and then I report it."
    plan += " The changelog and the page on dates are the last two things on my list."
    assert "cyclic_compression" in fired([act("note", f"ok {n}", n=n, thought=plan) for n in range(4)])


def test_new_tools_on_new_things_late_are_sprawl(act: Act, fired: Fired) -> None:
    steps = [act("read_file", f"text {n}", path="parser.py", offset=n) for n in range(24)]
    steps += [act(f"tool_{name}", f"came {name}", path=f"other/{name}.cfg") for name in "abcdef"]
    assert "late_sprawl" in fired(steps)


def test_a_long_silence_about_the_subject_is_drift(act: Act, fired: Fired) -> None:
    steps = [act("read_file", "text", path="p", thought=ON_SUBJECT)]
    for n in range(9):
        away = f"Now I polish colour {n} of my button because it would look much nicer in a warmer shade of blue."
        steps.append(act("paint", f"painted {n}", shade=n, thought=away))
    assert "silent_topic_drift" in fired(steps)


def test_a_monitor_that_fired_is_quiet_after_the_agent_turns(act: Act, play: Play) -> None:
    steps = [act("search", "0 results", query="leap")] * 3
    steps += [act("read_file", f"text {n}", path=f"f{n}.py") for n in range(4)]
    assert play(steps)[-1].fired == ()
