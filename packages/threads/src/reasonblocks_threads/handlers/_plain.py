"""The works that need no conversation: begin, clean up, time out, and notify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.described import describe_error
from ..phases import Phase, Trigger
from ..ports import Cleaned
from ._calls import call_within, deadline
from ._reports import text
from .letters import is_of, settle_letter

if TYPE_CHECKING:
    from ..engine import Engine
    from ..values import Thread, Work

CLEAN_UP_S = 55.0
NOTIFY_S = 25.0
"""Seconds of a call; both end before their leases of 60 and 30 s."""
DETAIL_CHARS = 500


def begin(engine: Engine, work: Work) -> None:
    """Queue the first inference of a thread."""
    engine.report(work, Trigger.BEGIN_INFERENCE, {})


def time_out(engine: Engine, work: Work) -> None:
    """End a phase that has lasted too long. Guidance that nobody carried is withdrawn."""
    thread = engine.thread(work.thread_id)
    if thread is None or thread.entered != work.entered:
        return
    if _waits_for_run(engine, thread):
        settle_letter(engine, _execution_id(thread), False, "No call of the run carried the guidance in time")
    else:
        engine.report(work, Trigger.TIMEOUT, {})


def _execution_id(thread: Thread) -> str:
    return "" if thread.execution is None else thread.execution.id


def _waits_for_run(engine: Engine, thread: Thread) -> bool:
    if thread.phase is not Phase.EXECUTING or not is_of(thread, _execution_id(thread)):
        return False
    with engine.store.read() as reading:
        letter = reading.letter(_execution_id(thread))
    return letter is not None and letter.state == "waiting"


def clean_up(engine: Engine, work: Work) -> None:
    """Let the cleaner of a thread's cause tidy its source; `work.id` is the same for every attempt."""
    thread = engine.thread(work.thread_id)
    if thread is None or thread.phase is not Phase.CLEANING_UP or thread.entered != work.entered:
        return
    cleaner = engine.cleaners.get(thread.cause.kind)
    if cleaner is None:
        raise LookupError(f"this process has no cleaner of {thread.cause.kind!r}")
    until = deadline(engine, work, CLEAN_UP_S)
    outcome = call_within(
        lambda: cleaner.clean_up(thread, work.id), f"the cleaner of {thread.cause.kind}", clock=engine.now, until=until
    )
    found = outcome.value
    if isinstance(found, Cleaned) and found.succeeded is True:
        done = {"detail": text(found.detail, DETAIL_CHARS), "already_gone": found.already_gone is True}
        engine.report(work, Trigger.CLEANUP_SUCCEEDED, done, detail="cleaned up")
        return
    if outcome.late is not None:
        detail = "The cleaner did not answer in time, so whether it cleaned up is unknown."
    elif outcome.error is not None:
        detail = f"The cleaner raised {describe_error(outcome.error)}"
    elif isinstance(found, Cleaned):
        detail = text(found.detail, DETAIL_CHARS) or "The source could not be cleaned up."
    else:
        detail = f"The cleaner returned {type(found).__name__} and no Cleaned."
    engine.report(work, Trigger.CLEANUP_FAILED, {"detail": detail}, detail=detail)


def notify(engine: Engine, work: Work) -> None:
    """Tell persons about the card that this work announces, if it is still open and not deferred.

    Raises what the notifier raised, so that it is tried again.
    """
    notifier = engine.notifier
    if notifier is None:
        return
    with engine.store.read() as reading:
        card = reading.open_card(work.thread_id)
    if card is None or card.id != f"{work.thread_id}.{work.entered}" or (card.deferred_until or 0.0) > engine.now():
        return
    outcome = call_within(
        lambda: notifier.notify(card), "the notifier", clock=engine.now, until=deadline(engine, work, NOTIFY_S)
    )
    if outcome.error is not None:
        raise outcome.error
    if outcome.late is not None:
        raise TimeoutError(f"the notifier did not return within {NOTIFY_S:g} s")
