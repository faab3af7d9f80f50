"""Every statement of a text is true: each number and place is counted again from the steps as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.types import Injected, Patience, Step, ToolResult
from tests.core.monitors.conftest import act, play
from tests.core.steps import acted

EAGER = Patience(rung="2 of 3")
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine takes its time, also to make runs; how long a step may take is test_bounds.py's."""
ERRORS = ("Error: quota exceeded", "Error: no column 'town'")
LONG = "The valves of the third pump were opened at noon and closed again by the night shift, as the log says in full."
NUMBER = r"(?P<least>[Aa]t least )?(?P<count>\d+)"
PLACES = r"\((?P<places>your last step[^)]*)\)"


def one(name: str, value: str, result: str, *, failed: bool) -> Step:
    return acted(name, {"value": value}, result, is_error=failed)


def last_text(run: Sequence[Step], injected: tuple[Injected, ...] = (), patience: Patience | None = EAGER) -> str:
    """The texts after the last step of a run."""
    text = play(run, injected, patience=patience)[-1].intervention_text
    assert text is not None
    return text


NO, YES = st.just(False), st.just(True)
steps = st.one_of(
    st.builds(one, st.sampled_from(["deploy", "oracle"]), st.sampled_from("ab"), st.sampled_from(ERRORS), failed=YES),
    st.builds(one, st.sampled_from(["oracle", "read_file"]), st.sampled_from("abcd"), st.just(LONG), failed=NO),
    st.builds(one, st.just("search"), st.sampled_from("abc"), st.just("0 results"), failed=NO),
    st.builds(one, st.just("edit_file"), st.sampled_from("ab"), st.just("ok"), failed=NO),
    st.builds(one, st.just("oracle"), st.just("a"), st.sampled_from(["one", "two", "three"]), failed=NO),
)
runs = st.lists(steps, min_size=3, max_size=44)


def key(step: Step) -> tuple[str, str]:
    return step.tool_calls[0].name, json.dumps(step.tool_calls[0].arguments)


def outcome(step: Step) -> tuple[bool | None, str]:
    return step.tool_results[0].is_error, step.tool_results[0].output


def counted(found: re.Match[str], true: int) -> bool:
    """Return True for the count of all, or for one that is said to be of some of them."""
    count = int(found["count"])
    return 1 < count <= true if found["least"] else count == true


def named(places: str, last: int) -> list[int]:
    """Return the steps that "your last step, and 2 and 4 steps before it" names."""
    return [last, *[last - int(distance) for distance in re.findall(r"\d+", places)]]


def check(text: str, run: Sequence[Step]) -> str:
    """Check what a text says of a run that has just made its last step; return the form of its statement."""
    last = len(run) - 1
    newest = run[last]
    name, _ = key(newest)
    if found := re.match(rf"(?P<call>.+?) has (?P<how>failed in the same way|brought the same result) {NUMBER} times"
                         rf"(?P<aside>, times and ids aside)? {PLACES}[.:]", text):  # fmt: skip
        same = [at for at, step in enumerate(run) if key(step) == key(newest) and outcome(step) == outcome(newest)]
        assert (found["how"] == "failed in the same way") == bool(newest.tool_results[0].is_error)
        assert not found["aside"]
        assert {*named(found["places"], last)} <= {*same}
        assert counted(found, len(same))
        assert found["call"].startswith(f"{name}(")
        return "same"
    if found := re.match(rf"(?P<call>.+?) was called {NUMBER} times {PLACES[:-2]}\)\.", text):
        same = [at for at, step in enumerate(run) if key(step) == key(newest)]
        assert {*named(found["places"], last)} <= {*same}
        assert counted(found, len(same))
        return "called"
    if found := re.match(
        rf"{NUMBER} calls of (?P<tool>\S+) have brought the same message, but for numbers and names {PLACES}[.:]", text
    ):
        alike = [at for at, step in enumerate(run) if key(step)[0] == name and outcome(step) == outcome(newest)]
        assert found["tool"] == name
        assert {*named(found["places"], last)} <= {*alike}
        assert counted(found, len(alike))
        return "errors"
    if found := re.match(
        r"The last (?P<count>\d+) searches with (?P<tool>\S+) have found nothing, or little that is new\.", text
    ):
        searches = [outcome(step)[1] for step in run if key(step)[0] == name]
        assert found["tool"] == name
        assert searches[-int(found["count"]) :] == ["0 results"] * int(found["count"])
        return "vain"
    if found := re.match(
        rf"{NUMBER} different calls, the last being (?P<call>.+?), have brought the same result\.", text
    ):
        alike_calls = {key(step) for step in run if outcome(step) == outcome(newest)}
        assert counted(found, len(alike_calls))
        return "results"
    pytest.fail(f"an unknown statement: {text}")


@settings(quick, max_examples=200)
@given(runs, st.integers(0, 2))
def test_each_number_and_place_is_that_of_the_steps(run: list[Step], earlier: int) -> None:
    injected = tuple([Injected(step=0, monitor=name) for name in ("semantic_loop", "cyclic_compression")] * earlier)
    for at, found in enumerate(play(run, injected, patience=EAGER)):
        if found.intervention_text:
            check(found.intervention_text, run[: at + 1])


@pytest.mark.parametrize(
    ("run", "form", "says"),
    [
        ([one("deploy", "a", ERRORS[0], failed=True)] * 4, "same",
         'deploy(value="a") has failed in the same way 4 times (your last step, and 1, 2 and 3 steps before it).'),
        ([one("oracle", "a", LONG, failed=False)] * 3, "same",
         'oracle(value="a") has brought the same result 3 times (your last step, and 1 and 2 steps before it).'),
        ([one("deploy", value * 50, ERRORS[0], failed=True) for value in "abcd"], "errors",
         "4 calls of deploy have brought the same message, but for numbers and names (your last step, and 1, 2 and 3 "
         "steps before it)."),
        ([one("search", value, "0 results", failed=False) for value in "abcde"], "vain",
         "The last 5 searches with search have found nothing, or little that is new."),
        ([one("oracle", value, LONG, failed=False) for value in "abcde"], "results",
         '5 different calls, the last being oracle(value="e"), have brought the same result.'),
    ],
)  # fmt: skip
def test_each_form_is_said_and_found_true(run: list[Step], form: str, says: str) -> None:
    text = last_text(run)
    assert text.startswith(says)
    assert check(text, run) == form


@pytest.mark.parametrize(
    "text",
    [
        'deploy(value="a") has failed in the same way 5 times (your last step, and 1, 2 and 3 steps before it). Next.',
        'deploy(value="a") has failed in the same way 4 times (your last step, and 1, 2 and 4 steps before it). Next.',
        'deploy(value="a") has brought the same result 4 times (your last step, and 1, 2 and 3 steps before it). Next.',
        "5 calls of deploy have brought the same message, but for numbers and names (your last step).",
        "2 calls of oracle have brought the same message, but for numbers and names (your last step).",
        "The last 2 searches with search have found nothing, or little that is new. Next.",
        '3 different calls, the last being deploy(value="a"), have brought the same result. Next.',
    ],
)
def test_the_check_of_texts_finds_what_is_false(text: str) -> None:
    with pytest.raises(AssertionError):
        check(text, [one("deploy", "a", ERRORS[0], failed=True)] * 4)


def test_a_count_that_may_be_higher_is_at_least() -> None:
    run = [one("oracle", str(at), f"{LONG} {at}", failed=False) for at in range(40)]
    again = [*run, *[one("deploy", "a", ERRORS[0], failed=True)] * 3]
    text = last_text(again)
    assert text.startswith('deploy(value="a") has failed in the same way at least 3 times (your last step, ')


@pytest.mark.parametrize(("tool", "quoted"), [("run_tests", True), ("web_search", False), ("oracle", False)])
def test_a_line_is_quoted_from_the_users_own_tools_alone(tool: str, *, quoted: bool) -> None:
    run = [one(tool, "a", "Error: no column 'town'", failed=True)] * 4
    text = last_text(run)
    assert ("no column 'town'" in text) is quoted


def test_a_later_text_quotes_the_line_again() -> None:
    run = [one("run_tests", "a", "Error: no column 'town'", failed=True)] * 8
    text = last_text(run, (Injected(step=3, monitor="semantic_loop"),))
    assert text.endswith("\"Error: no column 'town'\".")


def test_times_and_ids_are_said_to_be_left_aside() -> None:
    run = [act("status", f"Error: refused, request_id: 3f{at}a99e1", is_error=True, job=1) for at in range(5)]
    text = last_text(run)
    assert ", times and ids aside (" in text


def test_a_series_and_a_check_loop_are_told_with_their_counts() -> None:
    tried = [act("login", "Error: wrong password", is_error=True, user="root", password=f"pw{at}x") for at in range(10)]
    found = play(tried, patience=Patience(rung="8 of 9"))
    texts = [one.intervention_text for one in found if one.intervention_text]
    assert texts[0].startswith("10 calls of login, which differ in one value, have ended in the same way.")
    work: list[Step] = []
    for at in range(4):
        work.append(act("edit_file", "ok", path="a.py", old=f"x{at}", new=f"y{at}"))
        work.append(act("run_tests", "E   ValueError: bad date\n1 failed", is_error=True, path="tests"))
    last = last_text(work, patience=None)
    assert last.startswith(
        '4 checks in a row, the last being run_tests(path="tests"), have ended in the same way, with a change between '
    )


def test_checks_that_are_written_anew_each_time_are_not_called_the_same() -> None:
    red = "E   ValueError: bad date\n1 failed"
    script = "cat > {name}.py <<'E'\nassert f({at})\nE\npytest {name}.py"
    other, same = (
        [act("bash", red, command=script.format(name=name.format(at), at=at)) for at in range(4)]
        for name in ("t{}", "t")
    )
    assert play(other)[-1].intervention_text is None
    text = last_text(same, patience=None)
    assert text.startswith("4 checks in a row, the last being bash(command=")


def test_nothing_is_said_of_a_step_without_a_call() -> None:
    assert all(found.intervention_text is None for found in play([Step(thought="Let me think.")] * 8, patience=EAGER))


@pytest.mark.parametrize("reply", ["No action could be read. Please retry.", "Write one action in a block of its own."])
def test_answers_without_a_call_that_get_the_same_reply_are_told(reply: str) -> None:
    run = [Step(thought=f"I think {at}.", tool_results=(ToolResult(call_id="", output=reply),)) for at in range(4)]
    same = [Step(thought="", tool_results=one.tool_results) for one in run]
    for steps in (run, same) if "retry" in reply else (same,):
        assert last_text(steps).startswith(
            "4 answers without a call have got the same reply (your last step, and 1, 2 and 3 steps"
        )
