"""A mapping that forgets its oldest."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Newest(dict[str, T]):
    """By id, at most so many. Safe to share between threads."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: str, value: T) -> T:
        """Makes it the newest."""
        self.pop(key, None)
        self[key] = value
        if len(self) > self._most:
            for oldest in list(self)[: len(self) - self._most]:
                self.pop(oldest, None)  # another thread may have
        return value
