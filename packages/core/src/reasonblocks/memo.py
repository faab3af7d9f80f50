"""What a run remembers so that nothing of a text is computed twice: bounded, and never shared between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Memo", "Ring"]

V = TypeVar("V")

WORDS_KEPT = 4_096
VECTORS_KEPT = 16


class Ring(Generic[V]):
    """The newest values by key: at most `size`, the oldest goes first. Used by one thread at a time."""

    __slots__ = ("_kept", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: dict[Any, V] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: Any, make: Callable[[], V]) -> V:
        """The value of a key; made, if it is not there."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
            while len(self._kept) > self.size:
                self._kept.pop(next(iter(self._kept)), None)
        return found


class Memo:
    """Of one run: `words` has what an embedder made of a word, `vectors` of a text, both by the embedder's id too."""

    __slots__ = ("vectors", "words")

    def __init__(self) -> None:
        self.words: Ring[Any] = Ring(WORDS_KEPT)
        self.vectors: Ring[Any] = Ring(VECTORS_KEPT)
