"""A mapping that forgets its oldest."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Newest(dict[K, V]):
    """At most so many; what is set is the newest. Safe to share between threads."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            for oldest in list(self)[: len(self) - self._most]:
                self.pop(oldest, None)  # another thread may have

    def keep(self, key: K, value: V) -> V:
        """Sets it, and gives it back."""
        self[key] = value
        return value
