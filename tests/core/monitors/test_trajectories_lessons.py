"""Trouble of a kind, and the starter library: the lesson that is told with a finding is one about that kind."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from reasonblocks import LocalStore
from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.monitors.kinds import KINDS, TYPES
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.types import Evaluation, Memories, Pattern, StepDecision, StepInput, StepOutcome
from tests.core.monitors.trajectories import MODEL, STUCK, Stuck
from tests.core.world import ScriptedReasonBlocks

LESSONS = {one.id: one for one in starter_patterns() if one.tier == "e2"}
UNGATED = [
    Pattern(id=one.id, tier="e2", exemplars=one.exemplars, failure_type=one.failure_type, kinds=one.kinds,
            requires_signal=True, fields=one.fields, gate_threshold=0.0)
    for one in LESSONS.values()
]  # fmt: skip
"""The lessons without their gates, so that each finding gets the most similar one that it may get."""
each = pytest.mark.parametrize("name", STUCK)


class Recording(LocalEvaluator):
    """Keeps every evaluation."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Evaluation] = []

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        evaluation, memories = super().evaluate(request)
        self.made.append(evaluation)
        return evaluation, memories


class Told(NamedTuple):
    """The kind of the finding that a call's monitor text is about, the call's lessons, and those of calls before."""

    kind: str | None
    lessons: tuple[str, ...]
    before: tuple[str, ...]


def told(trouble: Stuck) -> list[Told]:
    """Play a run that is at no time in FAST."""
    evaluator = Recording()
    rb = ScriptedReasonBlocks(
        strict=True, step_deadline_ms=20_000, evaluator=evaluator, pattern_store=LocalStore(patterns=UNGATED),
        scorer=lambda step: 0.5,
    )  # fmt: skip
    session = rb.session(run_id="run", task=trouble.task, model=MODEL)
    decision = session.begin_step(StepInput(default_model=MODEL))
    decisions: list[StepDecision] = []
    for step in trouble.steps:
        session.end_step(decision, StepOutcome(model=MODEL, text=step.thought, tool_calls=step.tool_calls))
        decision = session.begin_step(StepInput(completed=step, default_model=MODEL))
        decisions.append(decision)
    session.finish()
    found: list[Told] = []
    before: tuple[str, ...] = ()
    for evaluation, decided in zip(evaluator.made, decisions):
        lessons = tuple(id for one in decided.injections for id in one.pattern_ids)
        if any(one.source == "MonitorSteeringInjection" for one in decided.injections):
            found.append(Told(evaluation.kind, lessons, before))
        before += lessons
    return found


@cache
def told_in(name: str) -> tuple[Told, ...]:
    return tuple(told(STUCK[name]))


@each
def test_a_lesson_of_the_first_findings_kind_is_told_with_it_if_not_before(name: str) -> None:
    first = [(kind, {*lessons, *before}) for kind, lessons, before in told_in(name)[:1] if kind != "error"]
    assert [kind for kind, shown in first if not any(kind in LESSONS[one].kinds for one in shown)] == []


@each
def test_no_finding_is_told_beside_a_lesson_of_another_kind(name: str) -> None:
    found = [(one.kind, LESSONS[id]) for one in told_in(name) for id in one.lessons]
    assert [(kind, lesson.id) for kind, lesson in found if lesson.kinds and kind not in lesson.kinds] == []


@each
def test_a_finding_is_of_a_kind_that_lessons_can_be_tied_to(name: str) -> None:
    assert {one.kind for one in told_in(name)} <= {*TYPES, None}


@cache
def library() -> LocalStore:
    return LocalStore(patterns=UNGATED)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "name", ["rb-loop-waiting", "rb-loop-same-test", "rb-contra-told-the-user", "rb-unver-many-edits"]
)
def test_a_search_for_a_kind_finds_lessons_of_that_kind_only(kind: str, name: str) -> None:
    request = Retrieve(
        tier="e2", texts=LESSONS[name].exemplars[:1], top_k=99, similarity=0.0, org_id="default", model="",
        failure_type=TYPES[kind], kind=kind,
    )  # fmt: skip
    found = {trace.pattern.id for trace in library().search(request)}
    of_type = [one for one in LESSONS.values() if one.failure_type == TYPES[kind]]
    assert found == {one.id for one in of_type if kind in one.kinds or not one.kinds}


def test_an_edit_and_test_loop_is_never_told_to_wait() -> None:
    told_to = {one.id for one in LESSONS.values() if "unmoved" in one.kinds}
    assert told_to.isdisjoint({one.id for one in LESSONS.values() if "waiting" in one.kinds})


def test_kinds_are_those_of_the_failure_type() -> None:
    assert [one.id for one in LESSONS.values() if not {*one.kinds} <= {*KINDS.get(str(one.failure_type), ())}] == []
