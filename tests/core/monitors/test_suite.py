"""What all monitors together say: the rules, stated once more and independently."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.monitors import MONITORS, indicators, novelty, persistence, recall, resolve_weights, suite, untried
from reasonblocks.monitors.finding import Finding
from reasonblocks.monitors.suite import CUSTOM_FIRES, OWN_MEMORY, RELAPSE_FACTOR
from reasonblocks.types import JSON, Evaluation, Injected, Memories, Step, ToolCall, ToolResult
from reasonblocks.util.json import compact
from reasonblocks_workbench.calibration import shipped
from tests.core.monitors.asking import evaluate

Act = Callable[..., Step]
Play = Callable[..., "list[Evaluation]"]
TASK = "Fix the date parser so that leap years are accepted"
WEIGHTS = resolve_weights("coding")
MEMORY_LIMIT = 3_072

names = st.sampled_from(["bash", "read_file", "edit_file", "run_tests", "submit", "search", "get_" + "x" * 300])
said = st.sampled_from(
    ["", "Error: no", "ok", "running", "0 results", "\ud800 odd", "Traceback (most recent call last):\nE: x"]
)
thoughts = st.sampled_from(
    ["", "I will assume it works.", "The task is complete.", "One. " * 20, "the parser of dates " * 5]
)
calls = st.builds(
    lambda name, value: ToolCall(id="c", name=name, arguments={"command": value, "path": f"a/b{value}.py"}),
    names,
    st.sampled_from([f"x{n}" for n in range(40)]),
)
results = st.builds(
    lambda text, flag: ToolResult(call_id="c", output=text, is_error=flag), said, st.sampled_from([None, True, False])
)
steps = st.builds(
    lambda thought, asked, came: Step(thought=thought, tool_calls=tuple(asked), tool_results=tuple(came)),
    thoughts | st.text(max_size=200),
    st.lists(calls, max_size=3),
    st.lists(results, max_size=3),
)
runs = st.lists(steps, max_size=40)
told = st.lists(
    st.builds(Injected, step=st.integers(0, 40), monitor=st.sampled_from([row.name for row in MONITORS])), max_size=5
).map(tuple)


def run_through(given_steps: Sequence[Step], injected: tuple[Injected, ...] = ()) -> list[tuple[Evaluation, Memories]]:
    memories: Memories = {}
    out = []
    for index, step in enumerate(given_steps):
        evaluation, memories = evaluate(step, index, memories, injected, TASK, WEIGHTS, shipped())
        out.append((evaluation, memories))
    return out


@settings(deadline=None)  # how long a step may take is test_bounds.py's
@given(runs)
def test_every_memory_stays_under_three_kilobytes(run: list[Step]) -> None:
    for _, memories in run_through(run):
        assert all(len(compact(memory).encode()) <= MEMORY_LIMIT for memory in memories.values())


@pytest.mark.parametrize("letter", ["a", "é", "中", "𝒜", "\ud800"])
def test_a_task_in_any_script_stays_under_three_kilobytes(letter: str) -> None:
    task = " ".join(letter * length for length in range(1, 60))
    _, memories = evaluate(Step(thought=task), 0, {}, (), task, WEIGHTS, shipped())
    assert all(len(compact(memory).encode()) <= MEMORY_LIMIT for memory in memories.values())


@settings(deadline=None)
@given(runs)
def test_every_monitor_has_a_score_in_bounds(run: list[Step]) -> None:
    for evaluation, _ in run_through(run):
        assert list(evaluation.scores) == [row.name for row in MONITORS]
        assert all(0.0 <= score <= 1.0 for score in evaluation.scores.values())


@settings(deadline=None)
@given(runs, told)
def test_the_same_steps_give_the_same_evaluations(run: list[Step], injected: tuple[Injected, ...]) -> None:
    assert run_through(run, injected) == run_through(run, injected)


@settings(deadline=None)
@given(runs, steps)
def test_the_memories_that_are_given_stay_as_they_were(run: list[Step], last: Step) -> None:
    memories = run_through(run)[-1][1] if run else {}
    before = copy.deepcopy(memories)
    evaluate(last, len(run), memories, (), TASK, WEIGHTS, shipped())
    assert memories == before


@settings(deadline=None)
@given(runs, steps)
def test_memories_that_went_through_json_say_the_same(run: list[Step], last: Step) -> None:
    memories: Memories = run_through(run)[-1][1] if run else {}
    restored = json.loads(json.dumps(memories))
    assert evaluate(last, len(run), restored, (), TASK, WEIGHTS, shipped()) == evaluate(
        last, len(run), memories, (), TASK, WEIGHTS, shipped()
    )


@settings(deadline=None)
@given(runs, told)
def test_what_fired_depends_on_the_steps_alone(run: list[Step], injected: tuple[Injected, ...]) -> None:
    def alone(evaluation: Evaluation) -> tuple[object, ...]:
        return evaluation.scores, evaluation.fired, evaluation.composite, evaluation.failure_type

    with_told = [alone(evaluation) for evaluation, _ in run_through(run, injected)]
    assert with_told == [alone(evaluation) for evaluation, _ in run_through(run)]


@settings(deadline=None)
@given(runs)
def test_the_composite_is_the_weighted_sum(run: list[Step]) -> None:
    for evaluation, _ in run_through(run):
        weighted = sum(WEIGHTS[name] * score for name, score in evaluation.scores.items())
        assert evaluation.composite == pytest.approx(min(1.0, weighted))


@settings(deadline=None)
@given(runs, told)
def test_an_injection_names_its_monitor_its_source_and_a_text(run: list[Step], injected: tuple[Injected, ...]) -> None:
    for evaluation, _ in run_through(run, injected):
        parts = (
            evaluation.monitor,
            evaluation.intervention_source,
            evaluation.intervention_text,
            evaluation.injection_path,
        )
        assert all(part is not None for part in parts) if evaluation.inject else parts == (None,) * 4


@settings(deadline=None)
@given(runs, told)
def test_an_injection_has_a_failure_type(run: list[Step], injected: tuple[Injected, ...]) -> None:
    assert all(said.failure_type is not None for said, _ in run_through(run, injected) if said.inject)


@settings(deadline=None)
@given(runs, told)
def test_nothing_is_said_about_steps_before_the_last_injection(run: list[Step], injected: tuple[Injected, ...]) -> None:
    since = max((one.step for one in injected), default=0)
    assert not any(evaluation.inject for evaluation, _ in run_through(run, injected)[:since])


def custom(score: float, index: int = 0, memories: Memories | None = None) -> tuple[Evaluation, Memories]:
    """A quiet step on which the caller's monitors `zeta` and `alpha` both have this score."""
    observed: list[tuple[str, float, JSON, tuple[int, ...]]] = [
        ("zeta", score, {"seen": index}, (index,)),
        ("alpha", score, None, ()),
    ]
    return evaluate(
        Step(),
        index,
        memories or {},
        (),
        TASK,
        {**WEIGHTS, "zeta": 0.5, "alpha": 0.2},
        shipped(),
        observed,
        failure_types={"zeta": "z"},
    )


def test_custom_monitors_fire_after_the_built_in_ones_by_name() -> None:
    assert custom(CUSTOM_FIRES)[0].fired == ("alpha", "zeta")


def test_the_failure_type_is_that_of_the_largest_contribution() -> None:
    assert custom(CUSTOM_FIRES)[0].failure_type == "z"


def test_the_largest_contribution_speaks() -> None:
    assert custom(CUSTOM_FIRES)[0].monitor == "zeta"


def test_the_kind_is_that_of_the_finding(act: Act, play: Play) -> None:
    polled = [act("status", "still running", job=1) for _ in range(10)]
    assert [one.kind for one in play(polled)][-2:] == [None, "waiting"]


def test_a_finding_that_is_held_back_keeps_its_kind(act: Act, play: Play) -> None:
    same = [act("read_file", "content", path="a.py") for _ in range(2)]
    told_already = (Injected(step=2, monitor="semantic_loop"),)
    assert [(one.kind, one.inject) for one in play(same, told_already)][-1] == ("repeat", False)


def test_a_monitor_without_kinds_reports_its_failure_type() -> None:
    kinds = {suite._kind(row.name, {row.name: Finding(score=1.0)}) for row in MONITORS}
    assert kinds == {row.failure_type for row in MONITORS}


def test_a_kind_of_another_failure_type_is_not_mistaken_for_it() -> None:
    assert suite._kind("claim_contradiction", {"claim_contradiction": Finding(facts={"kind": "done"})}) is None


def test_a_custom_monitors_finding_has_no_kind() -> None:
    assert suite._kind("mine", {"mine": Finding(score=1.0)}) is None


def test_a_custom_monitors_text_says_where_its_evidence_is() -> None:
    text = custom(CUSTOM_FIRES, index=7)[0].intervention_text
    assert text is not None
    assert text.startswith("The check zeta points at your last turn. ")


def test_a_custom_monitors_memory_comes_back() -> None:
    assert custom(0.1, index=3)[1]["zeta"] == {"seen": 3}


def test_one_step_over_the_composite_threshold_is_not_enough() -> None:
    score = CUSTOM_FIRES - 0.05
    assert not custom(score)[0].inject


def test_two_steps_running_over_the_composite_threshold_are_enough() -> None:
    score = CUSTOM_FIRES - 0.05
    assert 0.7 * score >= shipped().composite
    again, _ = custom(score, index=1, memories=custom(score)[1])
    assert (again.inject, again.injection_path, again.fired) == (True, "composite", ())


def test_a_monitor_that_fired_fires_again_at_a_lower_threshold() -> None:
    again, _ = custom(CUSTOM_FIRES * RELAPSE_FACTOR, index=1, memories=custom(CUSTOM_FIRES)[1])
    assert again.fired == ("alpha", "zeta")


def test_a_monitor_that_never_fired_does_not_fire_at_the_lower_threshold() -> None:
    assert custom(CUSTOM_FIRES * RELAPSE_FACTOR)[0].fired == ()


def loop(act: Act, count: int) -> list[Step]:
    return [act("search", "0 results", query="leap")] * count


def test_a_fired_monitor_injects_by_the_monitor_path(act: Act, play: Play) -> None:
    assert play(loop(act, 4))[-1].injection_path == "monitor"


def test_old_evidence_is_not_told_twice(act: Act, play: Play) -> None:
    steps = [*loop(act, 4), act("read_file", "text", path="a.py")]
    last = play(steps, (Injected(step=4, monitor="semantic_loop"),))[-1]
    assert (last.inject, last.fired[0]) == (False, "semantic_loop")


def test_a_text_that_was_held_back_may_come_later(act: Act, play: Play) -> None:
    last = play([*loop(act, 4), act("read_file", "text", path="a.py"), *loop(act, 1)])[-1]
    assert (last.inject, last.monitor) == (True, "semantic_loop")


def test_a_text_that_was_held_back_is_not_told_after_a_step_that_brought_something(act: Act, play: Play) -> None:
    last = play([*loop(act, 4), act("read_file", "text", path="a.py")])[-1]
    assert (last.inject, last.fired[0]) == (False, "semantic_loop")


def test_each_injection_of_a_monitor_is_a_rung(act: Act, play: Play) -> None:
    rungs = [tuple(Injected(step=n, monitor="semantic_loop") for n in range(count)) for count in range(3)]
    assert len({play(loop(act, 6), injected)[-1].intervention_text for injected in rungs}) == 3


def test_past_the_last_rung_a_monitor_is_not_heard(act: Act, play: Play) -> None:
    injected = tuple(Injected(step=n, monitor="semantic_loop") for n in range(3))
    assert play(loop(act, 6), injected)[-1].monitor != "semantic_loop"


def test_past_the_last_rung_the_next_fired_monitor_is_heard(act: Act, play: Play) -> None:
    plan = (
        "First I read the parser, then I change the leap year rule, then I run the tests, and then I report what came."
    )
    steps = [act("search", "0 results", query="leap", thought=plan)] * 6
    injected = tuple(Injected(step=n, monitor="semantic_loop") for n in range(3))
    assert play(steps, injected)[-1].monitor == "cyclic_compression"


def test_the_suites_own_memory_is_reserved(act: Act) -> None:
    _, memories = evaluate(Step(), 0, {}, (), TASK, WEIGHTS, shipped())
    own = {module.OWN_MEMORY for module in (indicators, novelty, persistence, recall, untried)}
    assert set(memories) == {*(row.name for row in MONITORS), OWN_MEMORY, *own}


def test_what_is_told_anew_names_a_call_after_the_last_injection(act: Act, play: Play) -> None:
    cat = act("cat", "x = 1 and y = 2 and z = 3", path="a.py")
    steps = [*loop(act, 8), cat, act("read_file", "Error: no file of that name", is_error=True, path="b.py"), cat]
    last = play(steps, (Injected(step=8, monitor="semantic_loop"),))[-1]
    assert (last.injection_path, last.fired) == ("composite", ())
    assert last.intervention_text is not None
    assert last.intervention_text.startswith(
        "4 calls (your last call, 2, 4 and 5 calls ago) failed, or brought a result that was there before."
    )
