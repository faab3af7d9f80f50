"""Decides when a group of records, such as the events of a run, is complete enough to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

OPEN_GROUPS = 1_024
"""The most groups of a file that are assembled at the same time; if there are more, the oldest is read as it is."""
ENDED_KEPT = 32
"""Ended groups that still wait for a late record."""

T = TypeVar("T")


class Groups(Generic[T]):
    """The groups that are still being assembled, by key, in the order of their first records."""

    def __init__(self) -> None:
        self._open: dict[str, T] = {}
        self._ended: dict[str, None] = {}

    def find(self, key: str) -> T | None:
        return self._open.get(key)

    def find_or_add(self, key: str, make: Callable[[], T]) -> T:
        if key not in self._open:
            self._open[key] = make()
        return self._open[key]

    def end(self, key: str) -> None:
        """Mark a group as ended; it still waits for a while."""
        self._ended[key] = None

    def pop(self, key: str) -> T:
        self._ended.pop(key, None)
        return self._open.pop(key)

    def due(self) -> Iterator[T]:
        """Yield the groups that have waited long enough."""
        while len(self._ended) > ENDED_KEPT:
            yield self.pop(next(iter(self._ended)))
        while len(self._open) > OPEN_GROUPS:
            yield self.pop(next(iter(self._open)))

    def rest(self) -> Iterator[T]:
        """Yield all groups that are left."""
        while self._open:
            yield self.pop(next(iter(self._open)))
