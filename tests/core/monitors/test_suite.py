"""The monitors as views of the account: the rules of a step's evaluation, stated once more and independently."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.monitors import MONITORS, resolve_weights
from reasonblocks.monitors.kinds import TYPES
from reasonblocks.monitors.suite import SuiteSettings, evaluate
from reasonblocks.requests import Evaluate
from reasonblocks.types import Account, Evaluation, Injected, Observed, Patience, Step, ToolCall, ToolResult
from reasonblocks.types.account import Did
from tests.core.monitors.conftest import act, play, requests

quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine takes its time, also to make runs; how long a step may take is test_bounds.py's."""
NAMES = [row.name for row in MONITORS]
ACTING, LOOKING = "ABCbc", "aDd"
"""The letters of semantic_loop and of cyclic_compression; lower case is for steps that only looked at something."""

calls = st.builds(
    lambda name, value: ToolCall(id="c", name=name, arguments={"command": value, "path": f"a/b{value}.py"}),
    st.sampled_from(["bash", "read_file", "edit_file", "run_tests", "submit", "search", "get_" + "x" * 300]),
    st.sampled_from(["ls", "pytest", "cat a", "x1", "x2"]),
)
results = st.builds(
    lambda text, flag: ToolResult(call_id="c", output=text, is_error=flag),
    st.sampled_from(["", "Error: no", "ok", "running", "0 results", "\ud800 odd", "1 failed", "x" * 300]),
    st.sampled_from([None, True, False]),
)
steps = st.builds(
    lambda thought, asked, came: Step(thought=thought, tool_calls=tuple(asked), tool_results=tuple(came)),
    st.sampled_from(["", "I ran the tests: 14 passed.", "It failed.", "One. " * 20]) | st.text(max_size=80),
    st.lists(calls, max_size=2),
    st.lists(results, max_size=2),
)
runs = st.lists(steps, max_size=20)
told = st.lists(st.builds(Injected, step=st.integers(0, 20), monitor=st.sampled_from(NAMES)), max_size=4).map(tuple)
patiences = st.sampled_from([Patience(rung=name) for name in ("2 of 3", "3 of 5", "4 of 5", "")])


@quick
@given(runs, told, patiences)
def test_scores_are_in_bounds_and_their_weighted_sum_is_the_composite(
    run: list[Step], injected: tuple[Injected, ...], patience: Patience
) -> None:
    weights = resolve_weights("coding")
    for found in play(run, injected, patience=patience):
        assert list(found.scores) == NAMES
        assert all(0.0 <= score <= 1.0 for score in found.scores.values())
        weighted = sum(weights[name] * score for name, score in found.scores.items())
        assert found.composite == pytest.approx(min(1.0, weighted))


@quick
@given(runs)
def test_a_loop_monitor_fires_at_a_dead_step_of_its_letters_and_scores_those_among_the_last_five(
    run: list[Step],
) -> None:
    for request, found in zip(requests(run), play(run), strict=True):
        letters = request.account.letters
        newest = [letters[-1] if letters[-1:] != "." else ""] if letters else [""]
        due = request.account.did.due
        for name, own in (("semantic_loop", ACTING), ("cyclic_compression", LOOKING)):
            dead = bool(newest[0]) and newest[0] in own
            assert (name in found.fired) == (dead or (name == "semantic_loop" and bool(due)))
            if not due:
                assert found.scores[name] == pytest.approx(sum(one in own for one in letters[-5:]) / 5)
        assert not {"late_sprawl", "silent_topic_drift"} & {*found.fired}
        assert max(found.scores["late_sprawl"], found.scores["silent_topic_drift"]) <= 0.4


@quick
@given(runs, patiences)
def test_a_loop_is_told_when_the_window_holds_enough_dead_steps(run: list[Step], patience: Patience) -> None:
    for request, found in zip(requests(run, patience=patience), play(run, patience=patience), strict=True):
        if found.injection_path != "patience":
            continue
        offset, names = request.patience.offset, ["2 of 3", "3 of 5", "3 of 3", "4 of 5", "5 of 6", "6 of 7", "8 of 9"]
        rung = names[max(0, min(6, names.index(patience.rung) + offset))] if patience.rung else ""
        dead, of = (int(part) for part in rung.split(" of ")) if rung else (99, 1)
        letters = request.account.letters
        reached = letters[-1] != "." and sum(letter != "." for letter in letters[-of:]) >= dead
        assert reached or request.account.did.due


@quick
@given(runs, told, patiences)
def test_an_injection_names_its_monitor_its_text_and_a_kind_of_its_failure_type(
    run: list[Step], injected: tuple[Injected, ...], patience: Patience
) -> None:
    for found in play(run, injected, patience=patience):
        parts = (found.monitor, found.intervention_source, found.intervention_text, found.injection_path)
        assert all(parts) if found.inject else parts == (None,) * 4
        if found.inject:
            assert found.monitor in found.fired
            assert found.kind is not None
            assert TYPES[found.kind] == next(row.failure_type for row in MONITORS if row.name == found.monitor)


@quick
@given(runs, told)
def test_what_fired_depends_on_the_steps_alone(run: list[Step], injected: tuple[Injected, ...]) -> None:
    def alone(found: Evaluation) -> tuple[object, ...]:
        return found.scores, found.fired, found.composite, found.failure_type

    assert [alone(found) for found in play(run, injected)] == [alone(found) for found in play(run)]


@quick
@given(runs, told)
def test_a_monitor_says_three_texts_at_most(run: list[Step], injected: tuple[Injected, ...]) -> None:
    for request, found in zip(requests(run, injected), play(run, injected), strict=True):
        if found.inject:
            assert sum(one.monitor == found.monitor for one in request.injected) < 3


def custom(
    score: float, *, injected: tuple[Injected, ...] = (), at: tuple[int, ...] = (0,), index: int = 0
) -> Evaluation:
    """A quiet step on which the caller's monitors `zeta` and `alpha` both have this score."""
    found: list[Observed] = [(), *[()] * index]
    found[index] = (("zeta", score, {"seen": 1}, at), ("alpha", score, None, ()))
    request = requests([Step()] * (index + 1), injected, observed=found)[-1]
    weights = {**resolve_weights("coding"), "zeta": 0.5, "alpha": 0.2}
    return evaluate(replace(request, weights=weights), SuiteSettings(failure_types={"zeta": "z"}))[0]


def test_custom_monitors_fire_after_the_built_in_ones_by_name_and_the_largest_contribution_speaks() -> None:
    assert custom(0.59).fired == ()
    found = custom(0.6)
    assert found.fired == ("alpha", "zeta")
    assert (found.monitor, found.failure_type, found.injection_path, found.kind) == ("zeta", "z", "custom", None)


def test_a_custom_monitors_text_says_where_its_evidence_is() -> None:
    newest, older = (str(custom(0.6, at=(at,), index=7).intervention_text) for at in (7, 4))
    assert newest.startswith("The check zeta points at your last step. ")
    assert older.startswith("The check zeta points at 3 steps before your last one. ")


def test_old_evidence_of_a_custom_monitor_is_not_told_twice() -> None:
    assert custom(0.6, at=(4,), index=7, injected=(Injected(step=5, monitor="zeta"),)).monitor == "alpha"
    assert custom(0.6, at=(6,), index=7, injected=(Injected(step=5, monitor="zeta"),)).monitor == "zeta"


def failing(count: int) -> list[Step]:
    """Steps of which each but the first is dead: the same call fails in the same way."""
    return [act("deploy", "Error: quota exceeded", is_error=True, to="prod")] * count


def first_told(found: Sequence[Evaluation]) -> int | None:
    return next((at for at, one in enumerate(found) if one.inject), None)


@pytest.mark.parametrize(("rung", "first"), [("2 of 3", 2), ("3 of 5", 3), ("4 of 5", 4), ("8 of 9", 8), ("", None)])
def test_each_rung_has_its_moment(rung: str, first: int | None) -> None:
    assert first_told(play(failing(12), patience=Patience(rung=rung))) == first


def test_a_run_that_is_left_alone_to_learn_from_is_told_nothing_at_all() -> None:
    exploring = Patience(rung="", name="explores: 24 runs")
    request = requests(failing(3), patience=exploring)[-1]
    due = replace(request, account=replace(request.account, did=Did(letter="A", due="check", failed=True)))
    assert not evaluate(due, SuiteSettings())[0].inject
    silent = replace(due, patience=Patience(rung="", name="own: silent, 24 runs"))
    assert evaluate(silent, SuiteSettings())[0].inject


@pytest.mark.parametrize(
    ("did", "letters", "kind"),
    [
        (Did(letter="A"), "..A", "repeat"),
        (Did(letter="A", failed=True), "..A", "retry"),
        (Did(letter="A", waiting=True), "..A", "waiting"),
        (Did(letter="A", looked=True), "..a", "stale"),
        (Did(letter="A", looked=True, failed=True), "..a", "stale"),
        (Did(letter="B", failed=True), "..B", "error"),
        (Did(letter="C", looked=True), "..c", "reworded"),
        (Did(letter="D"), "..D", "same_result"),
        (Did(due="check", failed=True), "...", "unmoved"),
        (Did(due="series", failed=True), "...", "failing"),
    ],
)
def test_each_finding_has_its_kind(did: Did, letters: str, kind: str) -> None:
    request = replace(requests([Step()])[0], account=Account(steps=3, letters=letters, did=did))
    assert evaluate(request, SuiteSettings())[0].kind == kind


def test_after_three_texts_a_monitor_is_quiet() -> None:
    told = [tuple([Injected(step=at, monitor="semantic_loop") for at in range(count)]) for count in range(4)]
    texts = [play(failing(6), injected)[-1].intervention_text for injected in told]
    assert [text is None for text in texts] == [False, False, False, True]


def test_a_task_that_no_word_of_a_step_is_of_is_drift_and_tells_nothing() -> None:
    task = "Repair the calendar parser so that february keeps leap years"
    aside = Step(thought="Bananas ripen faster in paper bags.")
    on_it = Step(thought="The calendar accepts it.")
    assert [one.scores["silent_topic_drift"] for one in play([aside, on_it], task=task)] == [0.4, 0.0]
    assert play([aside], task="Fix it")[0].scores["silent_topic_drift"] == 0.0


def test_the_sprawl_grows_with_the_steps_since_the_last_change() -> None:
    read = [act("read_file", f"text {at}", path=f"a{at}.py") for at in range(30)]
    scores = [one.scores["late_sprawl"] for one in play(read)]
    assert scores == sorted(scores)
    assert scores[-1] > 0.2
    changed = play([*read, act("write_file", "ok", path="b.py", content="x")])
    assert changed[-1].scores["late_sprawl"] == 0.0


def test_an_evaluation_of_a_request_that_went_through_json_is_the_same() -> None:
    for request in requests(failing(6)):
        again = replace(request, memories=json.loads(json.dumps(request.memories)))
        assert evaluate(again, SuiteSettings())[0] == evaluate(request, SuiteSettings())[0]


def test_weights_of_another_profile_change_the_composite_alone() -> None:
    request: Evaluate = requests(failing(6))[-1]
    weights: Mapping[str, float] = resolve_weights("pr_review")
    other = evaluate(replace(request, weights=dict(weights)), SuiteSettings())[0]
    own = evaluate(request, SuiteSettings())[0]
    assert (other.scores, other.fired, other.intervention_text) == (own.scores, own.fired, own.intervention_text)
    assert other.composite != own.composite
