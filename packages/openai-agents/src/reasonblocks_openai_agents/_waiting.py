"""Distinguishes runs that wait for calls with equal ids: some models restart their numbering in each conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reasonblocks._formats.openai import Item, answer_of, newest_answer

if TYPE_CHECKING:
    from ._steered import SteeredRun

MAX_OF_ONE_ID = 64
"""The most concurrent runs that wait for calls with one id."""


def going_on(runs: Iterable[SteeredRun], items: Sequence[Item]) -> SteeredRun | None:
    """Return which of the runs waiting for the same call id makes this request."""
    found = list(runs)
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda run: _likeness(run, items))


def with_waiting(known: Iterable[SteeredRun], call_id: str, run: SteeredRun) -> tuple[SteeredRun, ...]:
    """Return the runs that wait for a call with that id, including this one."""
    others = [one for one in known if one is not run and not one.over and call_id in one.waits_for]
    return (*others[1 - MAX_OF_ONE_ID :], run)


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a request that identify the next one: its first and last item, without the history between."""

    length: int
    first: Item
    last: Item

    @classmethod
    def of(cls, items: Sequence[Item]) -> Asked | None:
        return cls(len(items), items[0], items[-1]) if items else None

    def begins(self, items: Sequence[Item]) -> bool:
        """Return True if a longer request begins as this one did, as far as is known."""
        longer = self.length < len(items)
        return longer and items[0] == self.first and items[self.length - 1] == self.last


def _likeness(run: SteeredRun, items: Sequence[Item]) -> int:
    """Rate a request as the run's next: it begins like the last one, and holds the answer to that."""
    begins = run.asked is not None and run.asked.begins(items)
    return begins + (run.answer is not None and answer_of(newest_answer(items)) == run.answer)
