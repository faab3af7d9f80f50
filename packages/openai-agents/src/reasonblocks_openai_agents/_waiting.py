"""Tells runs apart that wait for calls of the same id: some models number theirs anew in every conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._convert import answer_of, newest_answer
from ._items import Item

if TYPE_CHECKING:
    from ._steered import SteeredRun

MOST_OF_ONE_ID = 64
"""Runs at once that wait for calls of the same id."""


def going_on(runs: Iterable[SteeredRun], items: Sequence[Item]) -> SteeredRun | None:
    """Of runs that wait for the same call, by its id, the one whose next request this is."""
    found = list(runs)
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda run: _likeness(run, items))


def with_waiting(known: Iterable[SteeredRun], call_id: str, run: SteeredRun) -> tuple[SteeredRun, ...]:
    """The runs that wait for a call of that id, this one too."""
    others = [one for one in known if one is not run and not one.over and call_id in one.waits_for]
    return (*others[1 - MOST_OF_ONE_ID :], run)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is kept of a request to know the next one by: its first and its last item, not the history between."""

    length: int
    first: Item
    last: Item

    @classmethod
    def of(cls, items: Sequence[Item]) -> Asked | None:
        return cls(len(items), items[0], items[-1]) if items else None

    def begins(self, items: Sequence[Item]) -> bool:
        """Whether a longer request begins as this one did, as far as is known."""
        longer = self.length < len(items)
        return longer and items[0] == self.first and items[self.length - 1] == self.last


def _likeness(run: SteeredRun, items: Sequence[Item]) -> int:
    """How much a request looks like the run's next: it begins as its last one did, and holds what that was answered."""
    begins = run.asked is not None and run.asked.begins(items)
    return begins + (run.answer is not None and answer_of(newest_answer(items)) == run.answer)
