"""Ends works whose attempts are used up: their threads learn that nothing came of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import Conflict, Refused, UnknownThread
from ..phases import Addition, Phase, Trigger, WorkKind
from ..ports import Writing
from ..values import SYSTEM, Command, ExpectPhase, ExpectVersion, NewWork, Thread, Work

if TYPE_CHECKING:
    from ._engine import Engine

AGAIN_S = 60.0
"""Seconds before a work that could not be ended is looked at again."""
NOTIFIES_LOST = "notifies_lost"
"""The row of meta that counts the cards about which nobody could be told."""
RESERVED_TOKENS = 2_000
RESERVED_USD = 0.01
"""The cost that a call is booked with if it never reported one."""
WORKER_LOST = "worker_lost"
OUTCOME_UNKNOWN = "outcome_unknown"
UNKNOWN = "the process that executed it was lost, so nobody knows what it did"
NO_ANSWER = "the processes that inferred were lost"
NOT_CLEANED = "the processes that cleaned up were lost"


def end_lost(engine: Engine, most: Mapping[str, int]) -> int:
    """End all works whose attempts are used up. Returns their number."""
    with engine.store.write(durable=False) as writing:
        lost = writing.expired(now=engine.now(), most=most, org_id=engine.org_id)
    return sum(_end(engine, work) for work in lost if not engine.is_put_off(work.id))


def _end(engine: Engine, work: Work) -> bool:
    """End one work. Returns False if that is not possible now; it is tried again later."""
    try:
        if work.kind == "notify":
            _count(engine, work)
        else:
            _tell(engine, work)
    except (Refused, Conflict, UnknownThread) as exc:
        engine.log_once(f"a lost work {work.kind!r}", exc)
        engine.put_off(work.id, AGAIN_S)
        return False
    return True


def _count(engine: Engine, work: Work) -> None:
    with engine.store.write([work.thread_id]) as writing:
        if writing.work(work.id) is not None:
            number = int(writing.meta(NOTIFIES_LOST).get(NOTIFIES_LOST, "0"))
            writing.set_meta({NOTIFIES_LOST: str(number + 1)})
            writing.remove_works(work.thread_id, (work.kind,))


def _tell(engine: Engine, work: Work) -> None:
    """Tell the thread in which the work was to be done, or take a work away that nobody waits for any more."""

    def make(thread: Thread) -> Command | None:
        told = outcome(work, thread)
        return told and _command(engine, work, thread, *told)

    def remove(writing: Writing, thread: Thread) -> None:
        if not _is_result(work.kind):
            writing.remove_works(work.thread_id, (work.kind,))

    if engine.submit_latest(work.thread_id, make, effects=remove) is None:
        _take_away(engine, work)


def _take_away(engine: Engine, work: Work) -> None:
    """Remove a work; one whose execution never began is added anew."""
    with engine.store.write([work.thread_id]) as writing:
        thread = writing.head(work.thread_id)
        if thread is not None and outcome(work, thread) is not None:
            return  # it has begun since
        writing.remove_works(work.thread_id, (work.kind,))
        if thread is not None and work.kind == "execute" and thread.phase is Phase.EXECUTING:
            again = NewWork(
                kind=work.kind, due_at=engine.now() + 1, urgency=work.urgency, needs=work.needs, data=work.data
            )
            writing.add_works(work.thread_id, work.entered, [again])


def _command(
    engine: Engine, work: Work, thread: Thread, trigger: Trigger | Addition, data: Mapping[str, Any]
) -> Command:
    moves = isinstance(trigger, Trigger)
    return Command(
        id=f"work:{work.id}:lost:{work.due_at}",
        thread_id=thread.id,
        trigger=trigger,
        expect=ExpectPhase(phase=thread.phase, entered=thread.entered)
        if moves
        else ExpectVersion(version=thread.version),
        actor=SYSTEM,
        at=engine.now(),
        data=data,
    )


def _is_result(kind: WorkKind) -> bool:
    """Return True for a work whose thread leaves its phase with the work's end."""
    return kind in ("infer", "execute", "clean_up")


def outcome(work: Work, thread: Thread) -> tuple[Trigger | Addition, dict[str, Any]] | None:
    """Return the command by which a thread learns that a work was lost; None if it does not wait for it."""
    detail = work.error
    if work.kind == "infer":
        return _inference(work, thread, detail)
    if work.kind == "execute":
        return _execution(thread, detail)
    if work.kind == "clean_up":
        waits = thread.phase is Phase.CLEANING_UP
        return (Trigger.CLEANUP_FAILED, {"detail": detail or NOT_CLEANED}) if waits else None
    return Addition.WORK_DEAD, {"work": work.id, "kind": work.kind, "error": detail}


def _inference(work: Work, thread: Thread, detail: str) -> tuple[Trigger, dict[str, Any]] | None:
    """Return the failure of an inference; the calls of its attempts are booked, because each may have been made."""
    data: dict[str, Any] = {"code": WORKER_LOST, "detail": detail or NO_ANSWER}
    if thread.phase is Phase.AWAITING_INFERENCE:
        return Trigger.INFERENCE_REJECTED, data
    inferring = thread.phase in (Phase.INFERRING_INTENT, Phase.INFERRING_CONTEXT, Phase.INFERRING_ACTION)
    n = work.attempts
    call = {"id": f"{work.id}.{n}", "calls": n, "tokens": n * RESERVED_TOKENS, "usd": n * RESERVED_USD}
    return (Trigger.INFERENCE_FAILED, {**data, "call": call}) if inferring else None


def _execution(thread: Thread, detail: str) -> tuple[Trigger, dict[str, Any]] | None:
    """Return the failure of an execution that began: it may have acted."""
    execution = thread.execution
    if thread.phase is not Phase.EXECUTING or execution is None or not has_begun(thread):
        return None
    summary = f"{UNKNOWN}: {detail}" if detail else UNKNOWN
    report = {"succeeded": False, "summary": summary, "code": OUTCOME_UNKNOWN}
    return Trigger.EXECUTION_FAILED, {"execution": execution.id, "report": report}


def has_begun(thread: Thread) -> bool:
    """Return True for an executing thread whose action was begun: it may have acted."""
    execution = thread.execution
    return execution is not None and execution.id == f"{thread.id}.x{thread.entered}" and execution.started_at > 0
