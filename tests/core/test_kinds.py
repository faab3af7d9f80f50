"""A lesson that is tied to kinds of findings goes with such a finding only, whatever the store answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, StepDecision
from tests.core.world import client, pattern, run, speaks

LOOP: dict[str, Any] = {"failure_type": "loop", "monitor": "semantic_loop"}
WAITING = pattern("e2-waiting", failure_type="loop", kinds=("waiting",))
ANY = pattern("e2-any", failure_type="loop")


def store(*patterns: Any) -> tuple[list[Retrieve], Callable[[Retrieve], Sequence[ETrace]]]:
    """A store that knows no kinds: it answers every search of tier e2 with all of its patterns."""
    asked: list[Retrieve] = []

    def answer(request: Retrieve) -> Sequence[ETrace]:
        asked.append(request)
        return [ETrace(pattern=one, similarity=0.9) for one in patterns] if request.tier == "e2" else []

    return asked, answer


def decided(answer: Callable[[Retrieve], Sequence[ETrace]], **finding: Any) -> StepDecision:
    """The decision in which a finding is told."""
    evaluation = speaks("You see this. Do that.", **{**LOOP, **finding})
    return run(client(evaluation, store=answer, scorer=lambda step: 0.5).session(), 2)[-1]


def shown(decision: StepDecision) -> dict[str, tuple[str, ...]]:
    return {one.source.removesuffix("Injection"): one.pattern_ids for one in decision.injections}


@pytest.mark.parametrize(
    ("patterns", "kind", "joined"),
    [
        pytest.param([WAITING], "waiting", ("e2-waiting",), id="of the finding's kind"),
        pytest.param([WAITING], "unmoved", (), id="of another kind"),
        pytest.param([WAITING], "of-next-year", (), id="of a kind that is not known"),
        pytest.param([WAITING, ANY], "unmoved", ("e2-any",), id="behind one that does not fit"),
        pytest.param([WAITING], None, (), id="beside a finding of unknown kind"),
    ],
)
def test_a_lesson_goes_with_a_finding_of_its_kind_and_is_else_shown_nowhere_in_that_call(
    patterns: list[Any], kind: str | None, joined: tuple[str, ...]
) -> None:
    assert shown(decided(store(*patterns)[1], kind=kind)) == {"MonitorSteering": joined}


def test_a_finding_of_unknown_kind_is_joined_by_a_lesson_for_all_kinds() -> None:
    assert shown(decided(store(ANY)[1]))["MonitorSteering"] == ("e2-any",)


def test_the_store_is_asked_for_the_findings_kind() -> None:
    asked, answer = store(WAITING)
    decided(answer, kind="waiting")
    assert [(one.failure_type, one.kind) for one in asked if one.tier == "e2"][:1] == [("loop", "waiting")]


def test_the_finding_that_is_told_counts_where_another_one_is_worse() -> None:
    asked, answer = store()
    decided(answer, kind="done", monitor="verification_skip")
    assert [one.failure_type for one in asked if one.tier == "e2"][:1] == ["unverified"]


def test_without_a_finding_lessons_of_every_kind_are_found() -> None:
    session = client(store=store(WAITING)[1], scorer=lambda step: 0.5).session()
    assert [shown(decision) for decision in run(session, 2)][-1] == {"E2": ("e2-waiting",)}
