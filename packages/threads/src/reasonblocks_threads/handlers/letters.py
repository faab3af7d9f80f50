"""Letters: guidance that waits for a call of its run, and the end of the execution that wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codec import encode
from ..phases import Phase, Trigger
from ..values import SYSTEM, Command, ExpectPhase, Letter, Report, Thread
from ._calls import report_late

if TYPE_CHECKING:
    from ..engine import Engine
    from ..ports import Writing

NOT_CARRIED = "not_carried"
UNSURE = "If the report of the run's last step was lost with its process, the model may have read it all the same."


def settle_letter(engine: Engine, letter_id: str, told: bool, detail: str = "", *, code: str = NOT_CARRIED) -> bool:
    """End the execution of a letter: a call has carried it, or none will. Returns False if it had ended before.

    `detail` is a sentence for the person. A letter that was told after its thread had moved on is noted in its log.
    """
    with engine.store.read() as reading:
        letter = reading.letter(letter_id)
    if letter is None or letter.state == "told":
        return False
    report = Report.ok(detail or "A call of the run has carried the guidance.") if told else _not_told(detail, code)

    def make(thread: Thread) -> Command | None:
        if not is_of(thread, letter_id):
            return None
        return Command(
            id=f"letter:{letter_id}:{'told' if told else code}",
            thread_id=thread.id,
            trigger=Trigger.EXECUTION_DONE if told else Trigger.EXECUTION_FAILED,
            expect=ExpectPhase(phase=Phase.EXECUTING, entered=thread.entered),
            actor=SYSTEM,
            at=engine.now(),
            data={"execution": letter_id, "report": encode(report)},
        )

    def mark(writing: Writing, _: Thread) -> None:
        if told:  # the engine has withdrawn it, as that of any execution that ends
            writing.change_letter(letter_id, state="told")

    if engine.submit_latest(letter.thread_id, make, effects=mark) is not None:
        return True
    _after_the_end(engine, letter, told)
    return False


def is_of(thread: Thread, letter_id: str) -> bool:
    """Return True while a thread executes what wrote this letter."""
    return thread.phase is Phase.EXECUTING and thread.execution is not None and thread.execution.id == letter_id


def _not_told(detail: str, code: str) -> Report:
    why = detail.strip().rstrip(".") or "no call of the run has carried the guidance"
    return Report.failed(f"{why[:1].upper()}{why[1:]}. {UNSURE}", code=code)


def _after_the_end(engine: Engine, letter: Letter, told: bool) -> None:
    """Take a letter off whose thread has moved on, and note it if the run was told."""
    if told:
        detail = "A call of the run carried the guidance after this thread had moved on."
        name = f"letter:{letter.id}:late"
        report_late(
            engine,
            letter.thread_id,
            name,
            "letter",
            detail,
            lambda writing, _: writing.change_letter(letter.id, state="told"),
        )
    elif letter.state == "waiting":
        with engine.store.write([letter.thread_id]) as writing:
            writing.change_letter(letter.id, state="withdrawn")


def withdraw_letter(engine: Engine, thread_id: str) -> bool:
    """End the execution of a cancelled thread whose letter still waits. Returns False if it has none."""
    thread = engine.thread(thread_id)
    if thread is None or thread.execution is None or not is_of(thread, thread.execution.id):
        return False
    return settle_letter(engine, thread.execution.id, False, "The guidance was withdrawn", code="cancelled")
