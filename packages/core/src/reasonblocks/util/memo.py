"""A run's bounded cache of values computed from texts. Runs never share one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")

WORDS_KEPT = 4_096
"""The words that an embedder keeps for one run."""
VECTORS_KEPT = 16
"""The texts whose vectors are kept; a query has those of the 5 newest steps."""


class Ring(Generic[V]):
    """Keeps the newest `size` values by key. Used by one thread at a time."""

    __slots__ = ("_kept", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: dict[Any, V] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: Any, make: Callable[[], V]) -> V:
        """Return the value of a key, made if it is missing."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
            while len(self._kept) > self.size:
                self._kept.pop(next(iter(self._kept)), None)
        return found


class Memo:
    """The cache of one run: `words` has a table for each embedder id, `vectors` a vector for each (id, text)."""

    __slots__ = ("vectors", "words")

    def __init__(self) -> None:
        self.words: Ring[Any] = Ring(WORDS_KEPT)
        self.vectors: Ring[Any] = Ring(VECTORS_KEPT)
