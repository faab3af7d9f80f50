"""Letters: guidance that waits for a call of its run, and the end of the execution that wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._phases import Phase, Trigger
from .._values import ExpectPhase, Letter, Report, Thread
from ._calls import command, head, report_late, submitted
from ._reports import report_data

if TYPE_CHECKING:
    from .._engine import Engine
    from .._ports import Writing

NOT_CARRIED = "not_carried"
UNSURE = "If the report of the run's last step was lost with its process, the model may have read it all the same."


def settle_letter(engine: Engine, letter_id: str, told: bool, detail: str, *, code: str = NOT_CARRIED) -> bool:
    """End the execution of a letter: a call has carried it, or none will. Returns False if it was settled before.

    A letter that was told after its thread had moved on is noted in the log.
    """
    with engine.store.read() as reading:
        letter = reading.letter(letter_id)
    if letter is None or letter.state != "waiting":
        if told and letter is not None and letter.state != "told":
            _told_late(engine, letter, detail)
        return False
    thread = head(engine, letter.thread_id)
    if thread is None or not _is_open(thread, letter_id):
        _close(engine, letter, told, detail)
        return False
    report = Report.ok(detail or "a call has carried the guidance") if told else _not_told(letter, detail, code)
    name = f"letter:{letter_id}:{'told' if told else code}"
    wanted = command(
        engine,
        name,
        thread,
        Trigger.EXECUTION_DONE if told else Trigger.EXECUTION_FAILED,
        ExpectPhase(Phase.EXECUTING, thread.entered),
        {"execution": letter_id, "report": report_data(report)},
    )
    state = "told" if told else "withdrawn"
    if submitted(engine, wanted, lambda writing, _: writing.change_letter(letter_id, state=state)):
        return True
    _close(engine, letter, told, detail)
    return False


def _is_open(thread: Thread, letter_id: str) -> bool:
    return thread.phase is Phase.EXECUTING and thread.execution is not None and thread.execution.id == letter_id


def _not_told(letter: Letter, detail: str, code: str) -> Report:
    why = detail.rstrip(".") or "no call of the run carried the guidance"
    return Report.failed(f"{why[:1].upper()}{why[1:]}. {UNSURE}", code=code)


def _close(engine: Engine, letter: Letter, told: bool, detail: str) -> None:
    """Take a letter off whose thread has moved on."""
    if told:
        _told_late(engine, letter, detail)
        return
    with engine.store.write([letter.thread_id]) as writing:
        writing.change_letter(letter.id, state="withdrawn")


def _told_late(engine: Engine, letter: Letter, detail: str) -> None:
    report_late(
        engine,
        letter.thread_id,
        f"letter:{letter.id}:told:late",
        "letter",
        detail or "a call carried the guidance after the thread had moved on",
        lambda writing, _: writing.change_letter(letter.id, state="told"),
    )


def withdraw(writing: Writing, thread: Thread) -> None:
    """Withdraw the waiting letter of a thread that leaves its execution, in the same transaction."""
    if thread.execution is None:
        return
    letter = writing.letter(thread.execution.id)
    if letter is not None and letter.state == "waiting":
        writing.change_letter(letter.id, state="withdrawn")


def withdraw_letter(engine: Engine, thread_id: str) -> bool:
    """End the execution of a thread whose letter still waits, after a cancellation. Returns False if it has none."""
    thread = head(engine, thread_id)
    if thread is None or thread.phase is not Phase.EXECUTING or thread.execution is None:
        return False
    return settle_letter(engine, thread.execution.id, False, "the guidance was withdrawn", code="cancelled")
