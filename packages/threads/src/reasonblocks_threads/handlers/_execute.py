"""Execution: runs the approved action and nothing else, and reports what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING

from pydantic import BaseModel

from ..builtin import DECOMPOSE, INJECT_GUIDANCE
from ..catalogue import Bound, Catalogue
from ..codec import encode
from ..entry import TIMER_MARGIN_S
from ..errors import ReadOnly, Refused, StoreUnavailable, ThreadsError
from ..phases import Addition, Phase, Trigger
from ..values import Cause, Execution, Letter, Report
from ._calls import Outcome, call_within, deadline, report_late
from ._reports import report_of

if TYPE_CHECKING:
    from ..engine import Engine
    from ..ports import Reading, Writing
    from ..values import Thread, Work

PRECONDITIONS_S = 20.0
"""Seconds in which all preconditions have to be checked."""
PAUSES = (0.2, 1.0, 5.0)
"""Seconds before each new attempt to write a report: it would be lost with this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """An attempt to run an approved action: the execution's `id` is the same for all attempts.

    `started` is True if an earlier attempt may have acted.
    """

    engine: Engine
    work: Work
    thread: Thread
    catalogue: Catalogue
    id: str
    started: bool
    cancelled: bool


def execute(engine: Engine, work: Work) -> None:
    """Run the approved action of a thread. What may have acted before is repeated only if it is idempotent."""
    with engine.store.read() as reading:
        attempt = _attempt(engine, work, reading)
    if attempt is None:
        return
    bound = _approved(attempt)
    if isinstance(bound, Report):
        _report(attempt, bound)
    elif bound.action == INJECT_GUIDANCE:
        _leave_letter(attempt, bound)
    elif (execution := _start(attempt, bound)) is not None:
        _report(attempt, _run(attempt, bound, execution), bound)


def _attempt(engine: Engine, work: Work, reading: Reading) -> _Attempt | None:
    thread = reading.head(work.thread_id)
    if thread is None or thread.phase is not Phase.EXECUTING or thread.entered != work.entered:
        return None
    id = f"{thread.id}.x{thread.entered}"
    if reading.letter(id) is not None:
        return None  # an earlier attempt left it; its run ends the execution
    before = thread.execution if thread.execution is not None and thread.execution.id == id else None
    return _Attempt(
        engine=engine,
        work=work,
        thread=thread,
        catalogue=engine.catalogue(reading),
        id=id,
        started=before is not None and before.started_at > 0,
        cancelled=before is not None and before.cancel_requested,
    )


def _approved(attempt: _Attempt) -> Bound | Report:
    """Return the approved action as it runs now, or the report of why it must not run."""
    thread, approved = attempt.thread, attempt.thread.approved
    if approved is None:
        return Report.failed("There is no approved action.", code="approval_mismatch")
    name = approved.action
    bound = attempt.catalogue.bind(name, approved.parameters, thread)
    idempotent = isinstance(bound, Bound) and bound.spec.idempotent
    if attempt.started and not idempotent:
        why = f"An earlier attempt began {name}, and whether it acted is unknown. It is not repeated."
        return Report.failed(why, code="outcome_unknown")
    if attempt.cancelled:
        return _unrun(attempt, f"{name} was cancelled", "cancelled")
    if isinstance(bound, str):
        return _unrun(attempt, f"{name} cannot run: {bound}", "approval_mismatch")
    if bound.hash != approved.hash:
        return _unrun(attempt, f"{name} has changed since it was approved, or its parameters have", "approval_mismatch")
    if name not in attempt.catalogue.own:
        raise LookupError(f"this process does not have the action {name!r}")  # another one does the work
    if failed := _failed_preconditions(attempt, bound):
        return _unrun(attempt, f"{name} cannot run now: {'; '.join(failed)}", "precondition")
    return bound


def _unrun(attempt: _Attempt, why: str, code: str) -> Report:
    """Return the report of an attempt that does not act."""
    before = "An earlier attempt may have acted." if attempt.started else "It was not run."
    return Report.failed(f"{why.rstrip('.')}. {before}", code=code)


def _failed_preconditions(attempt: _Attempt, bound: Bound) -> tuple[str, ...]:
    outcome = call_within(
        lambda: attempt.catalogue.failed_preconditions(bound, attempt.thread),
        f"the preconditions of {bound.action}",
        clock=attempt.engine.now,
        until=deadline(attempt.engine, attempt.work, PRECONDITIONS_S),
    )
    return outcome.value if outcome.value is not None else ("its preconditions could not be checked",)


def _start(attempt: _Attempt, bound: Bound) -> Execution | None:
    """Log that the action begins, before it acts. Returns None if the thread has moved on.

    Raises TimeoutError once the lease is over: other processes already count this attempt as lost.
    """
    engine, work, thread = attempt.engine, attempt.work, attempt.thread
    now = engine.now()
    if work.leased_until is not None and work.leased_until <= now:
        raise TimeoutError(f"the lease was over before {bound.action} began")
    execution = Execution(
        id=attempt.id,
        thread_id=thread.id,
        action=bound.action,
        parameters=bound.parameters,
        hash=bound.hash,
        org_id=thread.org_id,
        run_id=thread.cause.run_id,
        started_at=now,
        deadline_at=deadline(engine, work, bound.spec.deadline_s),
        is_cancelled=_Cancelled(attempt),
    )

    def move_timer(writing: Writing, _: Thread) -> None:
        writing.move_timer(thread.id, execution.deadline_at + TIMER_MARGIN_S)

    if attempt.started:
        return execution if _resume(attempt, move_timer) else None
    data = {"execution": execution.id, "hash": execution.hash, "deadline_at": execution.deadline_at}
    started = engine.report(work, Addition.EXECUTION_STARTED, data, effects=move_timer)
    return execution if started is not None else None


def _resume(attempt: _Attempt, effects: Callable[[Writing, Thread], None]) -> bool:
    """Begin another attempt of an execution that is in the log. Returns False if the work is not ours any more."""
    with attempt.engine.store.write([attempt.thread.id]) as writing:
        found = writing.work(attempt.work.id)
        if found is None or found.lease != attempt.work.lease:
            return False
        effects(writing, attempt.thread)
    return True


def _leave_letter(attempt: _Attempt, bound: Bound) -> None:
    """Write the guidance as a letter. Its execution ends when a call of the run has carried it, or none will."""
    engine, work, now = attempt.engine, attempt.work, attempt.engine.now()
    letter = Letter(
        id=attempt.id,
        thread_id=attempt.thread.id,
        run_id=str(bound.parameters["run_id"]),
        text=str(bound.parameters["text"]),
        at=now,
    )

    def effects(writing: Writing, thread: Thread) -> None:
        writing.add_letter(letter)
        writing.move_timer(thread.id, now + bound.spec.deadline_s)

    data = {"execution": attempt.id, "hash": bound.hash, "deadline_at": now + bound.spec.deadline_s}
    engine.report(work, Addition.EXECUTION_STARTED, data, effects=effects)


class _Cancelled:
    """Returns True once somebody asked for a stop, or the thread has left its execution."""

    def __init__(self, attempt: _Attempt) -> None:
        self._engine, self._thread = attempt.engine, attempt.thread
        self.seen = False

    def __call__(self) -> bool:
        try:
            now = self._engine.thread(self._thread.id)
        except ThreadsError:
            return self.seen
        here = now is not None and now.phase is Phase.EXECUTING and now.entered == self._thread.entered
        self.seen = not here or (now is not None and now.execution is not None and now.execution.cancel_requested)
        return self.seen


def _run(attempt: _Attempt, bound: Bound, execution: Execution) -> Report:
    """Call the action, and return its checked report."""
    engine, name = attempt.engine, bound.action
    action = attempt.catalogue.own[name]
    parameters = action.checked(bound.parameters)
    if not isinstance(parameters, BaseModel):  # its validators judge otherwise than a moment ago
        return Report.failed(f"{name} was not run: {parameters}", code="approval_mismatch")

    def call() -> object:
        return action.run(parameters, execution)

    outcome = call_within(call, f"the action {name}", clock=engine.now, until=execution.deadline_at)
    if outcome.late is not None:
        outcome.late.add_done_callback(_late(attempt, name))
    report = report_of(outcome, name, bound.spec.deadline_s)
    if not report.succeeded and report.code in ("failed", "error") and _was_cancelled(execution):
        report = replace(report, code="cancelled")
    if report.disposition == "decomposed" and name != DECOMPOSE:
        return Report.failed(f"{name} reports parts, which only {DECOMPOSE} opens.", code="outcome_unknown")
    return report


def _was_cancelled(execution: Execution) -> bool:
    return isinstance(execution.is_cancelled, _Cancelled) and execution.is_cancelled.seen


def _late(attempt: _Attempt, name: str) -> Callable[[Future[object]], None]:
    """Return what notes the result of an action that was given up."""

    def note(future: Future[object]) -> None:
        error = future.exception()
        outcome: Outcome[object] = (
            Outcome(error=error) if isinstance(error, Exception) else Outcome(value=None if error else future.result())
        )
        detail = report_of(outcome, name, 0.0).summary or f"{name} has ended"
        report_late(
            attempt.engine,
            attempt.thread.id,
            f"work:{attempt.work.id}:late:{attempt.work.attempts}",
            "execution",
            detail,
        )

    return note


def _report(attempt: _Attempt, report: Report, bound: Bound | None = None) -> None:
    """Submit what came of the action. A report that the rules refuse is a failure."""
    trigger = Trigger.EXECUTION_DONE if report.succeeded else Trigger.EXECUTION_FAILED
    data: dict[str, object] = {"execution": attempt.id, "report": encode(report)}
    if bound is not None and report.succeeded and report.disposition == "decomposed":
        data |= _children(attempt.thread, bound.parameters)
    try:
        _submit(attempt, trigger, data, report.summary)
    except Refused as exc:
        if not report.succeeded or isinstance(exc, ReadOnly):
            raise
        failed = Report.failed(f"It reported a success that is refused: {exc.why}", code="refused")
        data = {"execution": attempt.id, "report": encode(failed)}
        _submit(attempt, Trigger.EXECUTION_FAILED, data, failed.summary)


def _submit(attempt: _Attempt, trigger: Trigger, data: Mapping[str, object], detail: str) -> None:
    for pause in PAUSES:
        try:
            attempt.engine.report(attempt.work, trigger, data, detail=detail)
            return
        except StoreUnavailable:
            Event().wait(pause)
    attempt.engine.report(attempt.work, trigger, data, detail=detail)


def _children(thread: Thread, parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the threads that a split opens, and its rule."""
    found = parameters.get("children")
    parts = found if isinstance(found, list) else []
    causes = [
        Cause(
            kind=str(part.get("kind", "part")),
            key=f"{thread.id}/{part['key']}",
            title=str(part["title"]),
            run_id=thread.cause.run_id,
        )
        for part in parts
    ]
    return {"children": [{"cause": encode(cause)} for cause in causes], "rule": parameters.get("rule", "all_of")}
