"""Storage of patterns: the interface, and an implementation in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ...patterns import revise_pattern
from ...types import Pattern
from ..stores.rows import Row, Stats, row_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes since the last call. With `whole`, they replace everything known before."""

    rows: Sequence[Row] = ()
    gone: Collection[str] = ()
    stats: Stats = field(default_factory=dict)
    whole: bool = False


class PatternStorage(Protocol):
    """Persists patterns. Used by one thread at a time. Raises `StoreError`, after which nothing has changed."""

    def is_new(self) -> bool:
        """Return True if something changed since the last call of `changes`."""
        ...

    def changes(self) -> Changes: ...
    def forget(self) -> None:
        """Make the next call of `changes` return everything, because the result of the last one was lost."""
        ...

    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None: ...
    def remove(self, name: str) -> bool: ...
    def count(self, counts: Mapping[str, int], what: str) -> None: ...
    def keep(self, rows: Sequence[Row]) -> None:
        """Store the vectors of rows that had none."""
        ...

    def close(self) -> None: ...


def added(counted: Mapping[str, int], what: str, more: int) -> dict[str, int]:
    return {**counted, what: counted.get(what, 0) + more}


class Memory:
    """Storage in memory only: patterns are lost when the process ends."""

    def __init__(self) -> None:
        self._patterns: dict[str, Pattern] = {}
        self._stats: dict[str, Mapping[str, int]] = {}
        self._changes = self._known = Changes()

    def is_new(self) -> bool:
        return self._changes is not self._known

    def changes(self) -> Changes:
        found = self._changes
        self._changes = self._known
        return found

    def forget(self) -> None:
        rows = [row_of(pattern) for pattern in self._patterns.values()]
        self._changes = Changes(rows=rows, stats=dict(self._stats), whole=True)

    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None:
        rows, stats = [], {}
        for name, pattern in given.items():
            new = revise_pattern(pattern, self._patterns.get(name), now)
            self._patterns[name] = new
            stats[name] = new.stats
            rows.append(row_of(new, vectors.get(name)))
        self._stats.update(stats)
        self._changes = Changes(rows=rows, stats=stats)

    def remove(self, name: str) -> bool:
        found = self._patterns.pop(name, None) is not None
        self._stats.pop(name, None)
        self._changes = Changes(gone=(name,) if found else (), stats={name: {}})
        return found

    def count(self, counts: Mapping[str, int], what: str) -> None:
        stats = {name: added(self._stats.get(name, {}), what, more) for name, more in counts.items()}
        self._stats.update(stats)
        known = {name: stats[name] for name in stats if name in self._patterns}
        self._patterns.update({name: replace(self._patterns[name], stats=counted) for name, counted in known.items()})
        self._changes = Changes(stats=stats)

    def keep(self, rows: Sequence[Row]) -> None:
        """Do nothing: the rows hold their vectors."""

    def close(self) -> None:
        """Do nothing: nothing is open."""
