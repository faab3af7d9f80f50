"""Letters on their way: the mailbox that hands them to runs, and what a run's events tell about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reasonblocks.events import StepEvent
from reasonblocks.types import Note

from ..builtin import LETTER_S
from ..errors import StoreUnavailable
from ..handlers.letters import settle_letter
from ..values import Letter

if TYPE_CHECKING:
    from ..engine import Engine

CALLS = 10
"""Calls that return without a letter until it is withdrawn."""
MOST_THREADS = 1_000
"""Threads whose organisation a mailbox remembers."""


class LetterBox:
    """A mailbox of the core with the waiting letters of one organisation. A store that fails has none.

    With a local store it is called in place, without a worker thread.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._store = engine, engine.store
        self.inline = getattr(engine.store, "inline", False) is True
        self._owned: dict[str, bool] = {}
        """True if a thread with a letter belongs to this organisation."""

    def waiting(self, run_id: str) -> tuple[Note, ...]:
        """Return the letters of a run that no call has carried yet, the oldest first."""
        if not isinstance(run_id, str):
            return ()
        try:
            letters = self._store.waiting(run_id)
            return tuple([Note(id=one.id, text=one.text) for one in self._own(letters)]) if letters else ()
        except StoreUnavailable:
            return ()

    def _own(self, letters: Sequence[Letter]) -> Sequence[Letter]:
        """Return the letters of this organisation's threads; one that waited too long is withdrawn soon."""
        oldest = self._engine.now() - LETTER_S
        return [one for one in letters if one.at > oldest and self._is_own(one)]

    def _is_own(self, letter: Letter) -> bool:
        owned = self._owned.get(letter.thread_id)
        if owned is None:
            if len(self._owned) >= MOST_THREADS:
                self._owned.clear()
            owned = self._owned[letter.thread_id] = is_own(self._engine, letter)
        return owned


def is_own(engine: Engine, letter: Letter) -> bool:
    """Return True if a letter was written in a thread of the engine's organisation."""
    thread = engine.thread(letter.thread_id)
    return thread is not None and thread.org_id == engine.org_id


def told(engine: Engine, event: StepEvent) -> None:
    """End the executions whose letters a call carried."""
    ids = event.metadata.get("note_ids")
    for id in ids if isinstance(ids, list | tuple) else ():
        with engine.store.read() as reading:
            letter = reading.letter(str(id))
        if letter is not None and letter.run_id == event.run_id and is_own(engine, letter):
            settle_letter(engine, letter.id, True, f"call {event.step_index} carried the guidance")


def passed_over(engine: Engine, event: StepEvent, began: float | None) -> None:
    """Count a call that returned without any letter, and withdraw letters that too many calls did not carry.

    A call that `began` before a letter was written does not count for it.
    """
    if event.metadata.get("note_ids"):
        return
    for letter in engine.store.waiting(event.run_id):
        if not is_own(engine, letter) or (began is not None and letter.at > began):
            continue
        if letter.calls + 1 >= CALLS:
            settle_letter(engine, letter.id, False, f"{CALLS} calls of the run returned without the guidance")
        else:
            with engine.store.write([letter.thread_id]) as writing:
                writing.change_letter(letter.id, calls=letter.calls + 1)


def unheard(engine: Engine, run_id: str) -> None:
    """Withdraw the letters of a run that has ended."""
    for letter in engine.store.waiting(run_id):
        if is_own(engine, letter):
            settle_letter(engine, letter.id, False, "the run ended before a call carried the guidance")
