"""Execution: only what was approved runs, at most once unless it is idempotent, and every outcome is reported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from reasonblocks_threads import (
    PLAN_THEN_REVIEW,
    Action,
    Cause,
    Execution,
    Phase,
    Proposal,
    Report,
    Risk,
    Thread,
)
from reasonblocks_threads.values import NewWork, Problem
from tests.threads.driver import MARA, Clock, problem_of, report_of
from tests.threads.faults import Killed
from tests.threads.world import AGENT, SECRET, World, makes


class Move(BaseModel):
    to: str = "/data2"


Run = Callable[[Move, Execution], Any]


class Executing(World):
    """Threads with one action, `move`."""

    def __init__(self, run: Run, *, database: Path | None = None, clock: Clock | None = None, **action: Any) -> None:
        self.calls: list[Execution] = []

        def counted(given: Move, execution: Execution) -> Report:
            self.calls.append(execution)
            report: Report = run(given, execution)
            return report

        actions = [Action("move", Move, counted, **action)]
        super().__init__(database, clock=clock, actions=actions, policy=PLAN_THEN_REVIEW)

    def asked(self, **parameters: Any) -> Thread:
        proposals = [Proposal.of_action("move", parameters, confidence=0.9)]
        return self.opened(Cause(kind="proposal", key="move", title="Move it?"), proposals=proposals)

    def approve(self) -> None:
        (card,) = self.threads.cards()
        self.threads.answer(card, "approve", by=MARA)

    def executed(self, **parameters: Any) -> Thread:
        return self.answered(self.asked(**parameters), "approve")


@pytest.fixture
def made() -> Iterator[Callable[..., Executing]]:
    yield from makes(Executing)


def ok(given: Move, execution: Execution) -> Report:
    return Report.ok(f"moved to {given.to}")


def test_the_approved_action_runs_with_its_id_and_is_logged_before_it_acts(made: Callable[..., Executing]) -> None:
    seen: list[str] = []

    def run(given: Move, execution: Execution) -> Report:
        seen.extend(event.kind for event in world.threads.log(execution.thread_id))
        return ok(given, execution)

    world = made(run)
    thread = world.executed(to="/data3")
    assert thread.phase.value == "done"
    assert seen[-1] == "execution_started"
    (execution,) = world.calls
    assert thread.execution is not None
    assert execution.id == thread.execution.id
    assert thread.approved is not None
    assert execution.hash == thread.approved.hash
    assert execution.parameters == {"to": "/data3"}
    assert execution.deadline_at == execution.started_at + 120
    assert report_of(thread) == Report.ok("moved to /data3")


@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        (None, "outcome_unknown", "returned NoneType"),
        ({}, "outcome_unknown", "returned dict"),
        (True, "outcome_unknown", "returned bool"),
        (Report(succeeded="yes"), "outcome_unknown", "succeeded='yes'"),  # type: ignore[arg-type]
        (Report(succeeded=True, disposition="gone"), "outcome_unknown", "disposition='gone'"),  # type: ignore[arg-type]
        (Report(succeeded=True, disposition="decomposed"), "outcome_unknown", "only decompose"),
        (Report.failed("the disk is read-only", code="readonly"), "readonly", "the disk is read-only"),
        (RuntimeError(f"token={SECRET}"), "error", "RuntimeError"),
        (SystemExit(1), "error", "SystemExit"),
        (KeyboardInterrupt(), "error", "KeyboardInterrupt"),
        (StopIteration(), "error", "StopIteration"),
    ],
)
def test_what_is_no_report_of_a_success_asks_a_person(
    made: Callable[..., Executing], given: Any, code: str, why: str
) -> None:
    def run(parameters: Move, execution: Execution) -> Any:
        if isinstance(given, BaseException):
            raise given
        return given

    world = made(run)
    thread = world.executed()
    assert thread.phase.value == "awaiting_redirect"
    assert problem_of(thread).code == code
    assert why in problem_of(thread).text
    assert SECRET not in problem_of(thread).text
    assert len(world.calls) == 1


def test_an_output_that_is_no_small_json_is_left_out(made: Callable[..., Executing]) -> None:
    world = made(lambda given, execution: Report.ok("x" * 5000, output={"blob": b"1"}))
    thread = world.executed()
    assert thread.phase.value == "done"
    assert report_of(thread).output == {"omitted": "it is not plain JSON"}
    assert len(report_of(thread).summary) <= 1000


def test_a_long_output_is_left_out_and_a_part_of_the_work_is_reviewed(made: Callable[..., Executing]) -> None:
    world = made(lambda given, execution: Report.ok("half of it", partial=True, output={"log": "x" * 2000}))
    thread = world.executed()
    assert thread.phase.value == "awaiting_review"
    assert "2011 bytes" in str(report_of(thread).output["omitted"])


# --- the approval


def test_an_action_that_changed_after_its_approval_does_not_run(made: Callable[..., Executing], tmp_path: Path) -> None:
    file, clock = tmp_path / "threads.db", Clock()
    before = made(ok, database=file, clock=clock)
    thread = before.asked()
    before.approve()
    after = made(ok, database=file, clock=clock, risk=Risk(irreversibility="high"))
    after.threads.drain()
    found = after.threads.get(thread.id)
    assert found.phase.value == "awaiting_redirect"
    assert problem_of(found).code == "approval_mismatch"
    assert after.calls == before.calls == []
    assert "execution_started" not in after.kinds(thread)


def test_preconditions_are_checked_again_before_the_action(made: Callable[..., Executing]) -> None:
    ready = [True, False]
    world = made(ok, preconditions=[lambda given, thread: None if ready[0] else "the disk is busy"])
    thread = world.asked()
    ready.pop(0)
    world.approve()
    world.threads.drain()
    found = world.threads.get(thread.id)
    assert problem_of(found).code == "precondition"
    assert "the disk is busy" in problem_of(found).text
    assert world.calls == []


# --- time and cancellation


def test_an_action_beyond_its_deadline_is_given_up_and_its_result_is_noted(made: Callable[..., Executing]) -> None:
    release = threading.Event()
    seen: list[bool] = []

    def run(given: Move, execution: Execution) -> Report:
        world.clock.advance(31)
        release.wait(30)
        seen.append(execution.is_cancelled())
        return Report.ok("moved after all")

    world = made(run, deadline_s=30.0)
    thread = world.executed()
    assert thread.phase.value == "awaiting_redirect"
    assert problem_of(thread).code == "deadline"
    assert "may still act" in problem_of(thread).text
    release.set()
    late = world.threads.wait(thread.id, timeout=30, until=lambda now: now.version > thread.version)
    assert late.phase is thread.phase
    last = world.threads.log(thread.id)[-1]
    assert last.kind == "late_report"
    assert "moved after all" in str(last.data["detail"])
    assert seen == [True]
    assert len(world.calls) == 1


def test_a_cancelled_action_sees_it_and_its_failure_is_a_cancellation(made: Callable[..., Executing]) -> None:
    def run(given: Move, execution: Execution) -> Report:
        assert not execution.is_cancelled()
        world.threads.cancel(execution.thread_id, by=MARA)
        return Report.failed("stopped half-way") if execution.is_cancelled() else Report.ok()

    world = made(run)
    thread = world.executed()
    assert thread.phase.value == "awaiting_redirect"
    assert problem_of(thread) == Problem(code="cancelled", text="stopped half-way")


def test_an_action_does_not_begin_when_its_lease_is_over(made: Callable[..., Executing]) -> None:
    slow = [True]

    def waits(given: Move, thread: Thread) -> str | None:
        if thread.phase is Phase.EXECUTING and slow.pop():
            slow.append(False)
            world.clock.advance(151)
        return None

    world = made(ok, preconditions=[waits])
    thread = world.executed(to="/data3")
    assert world.calls == []
    world.later(2)
    assert world.threads.get(thread.id).phase is Phase.DONE
    assert len(world.calls) == 1


def test_an_action_that_is_cancelled_while_its_preconditions_are_checked_does_not_run(
    made: Callable[..., Executing],
) -> None:
    def cancels(given: Move, thread: Thread) -> str | None:
        world.threads.cancel(thread.id, by=MARA)
        return None

    world = made(ok, preconditions=[cancels])
    thread = world.executed(to="/data3")
    for _ in range(3):
        world.later(5)
    assert problem_of(world.threads.get(thread.id)).code == "cancelled"
    assert world.calls == []


def test_a_result_of_a_closed_thread_is_noted_and_the_action_learns_of_it(made: Callable[..., Executing]) -> None:
    seen: list[bool] = []

    def run(given: Move, execution: Execution) -> Report:
        world.threads.dismiss(parent.id, by=MARA)
        world.threads.drain()
        seen.append(execution.is_cancelled())
        return Report.ok("moved")

    world = made(run)
    parent = world.threads.open(
        Cause(kind="plan", key="plan", title="A plan"), children=[Cause(kind="part", key="p", title="A part")], by=AGENT
    )
    world.threads.drain()
    (card,) = world.threads.cards()
    world.threads.answer(card, "provide", action="move", parameters={}, by=MARA)
    world.approve()
    world.threads.drain()
    (child,) = parent.children
    assert world.threads.get(child.id).phase.value == "dismissed"
    assert seen == [True]
    assert world.threads.log(child.id)[-1].kind == "late_report"


# --- crashes


def killed_once(world: Callable[[], Executing]) -> Run:
    def run(given: Move, execution: Execution) -> Report:
        if len(world().calls) == 1:
            raise Killed
        return ok(given, execution)

    return run


def test_an_action_that_may_have_acted_is_not_repeated_by_a_work_that_was_added_anew(
    made: Callable[..., Executing],
) -> None:
    world = made(killed_once(lambda: world))
    with pytest.raises(Killed):
        world.executed()
    (thread,) = world.threads.list()
    store = world.threads._engine.store
    with store.write([thread.id]) as writing:
        (work,) = [work for work in writing.works(thread.id) if work.kind == "execute"]
        again = NewWork(kind="execute", due_at=work.due_at, needs=work.needs, data=work.data)
        writing.remove_works(thread.id, ("execute",))
        writing.add_works(thread.id, work.entered, [again])
    world.threads.drain()
    assert problem_of(world.threads.get(thread.id)).code == "outcome_unknown"
    assert len(world.calls) == 1


def test_an_idempotent_action_is_repeated_with_the_same_id(made: Callable[..., Executing]) -> None:
    world = made(killed_once(lambda: world), idempotent=True, deadline_s=30.0)
    with pytest.raises(Killed):
        world.executed()
    (thread,) = world.threads.list()
    world.later(61)
    assert world.threads.get(thread.id).phase.value == "done"
    first, second = world.calls
    assert first.id == second.id
    assert world.kinds(world.threads.get(thread.id)).count("execution_started") == 1


def test_an_action_that_failed_is_proposed_again_once_a_person_says_how_to_continue(
    made: Callable[..., Executing],
) -> None:
    outcomes = [Report.failed("the disk is full"), Report.ok("moved")]
    world = made(lambda given, execution: outcomes.pop(0), auto=True, risk=Risk(irreversibility="low", regret="low"))
    failed = world.executed(to="/data3")
    world.threads.answer(f"{failed.id}.{failed.entered}", "provide", text="There is space again.", by=MARA)
    world.threads.drain()
    again = world.threads.get(failed.id)
    assert (again.phase.value, again.proposals[again.stage].author) == ("awaiting_confirmation", "rules")
    card = world.threads.card(f"{again.id}.{again.entered}").card
    assert (card.action, card.parameters) == ("move", {"to": "/data3"})
    world.threads.answer(card, "redirect", text="No, not again.", stage="action", by=MARA)
    world.threads.drain()
    assert world.threads.get(failed.id).phase.value == "awaiting_action_clarification"
    assert len(world.calls) == 1
