"""`LocalStore`: one process's view of its patterns, a snapshot that searches read and changes replace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from ..._json import evolve
from ..._patterns import COUNTED, checked, revised
from ..._requests import Retrieve
from ..._threads import in_daemon
from ...exceptions import ConfigError, StoreError
from ...ports import Embedder
from ...types import ETrace, Pattern, Tier
from .._forks import no_fork, no_fork_if_free
from .._stores import embedders
from .._stores.index import Index
from .._stores.rows import Row, Stats, row_of

if TYPE_CHECKING:
    from .._stores.vectors import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Since it was last asked; `whole`: this is all that there is, forget the rest."""

    rows: Sequence[Row] = ()
    gone: Collection[str] = ()
    stats: Stats = field(default_factory=dict)
    whole: bool = False


class Shelf(Protocol):
    """Used by one thread at a time. Raises `StoreError`, after which nothing has changed."""

    def is_new(self) -> bool:
        """Was something changed since `changes` was last called?"""
        ...

    def changes(self) -> Changes: ...
    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None: ...
    def remove(self, name: str) -> bool: ...
    def count(self, counts: Mapping[str, int], what: str) -> None: ...
    def keep(self, rows: Sequence[Row]) -> None:
        """Keep the vectors of rows that had none."""
        ...

    def close(self) -> None: ...


def added(counted: Mapping[str, int], what: str, more: int) -> dict[str, int]:
    return {**counted, what: counted.get(what, 0) + more}


class Memory:
    """Nothing lies behind: what is added is handed on, and gone with the process."""

    def __init__(self) -> None:
        self._patterns: dict[str, Pattern] = {}
        self._stats: dict[str, Mapping[str, int]] = {}
        self._changes = Changes()

    def is_new(self) -> bool:
        return False

    def changes(self) -> Changes:
        found, self._changes = self._changes, Changes()
        return found

    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None:
        rows, stats = [], {}
        for name, pattern in given.items():
            new = revised(pattern, self._patterns.get(name), now)
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
        self._patterns.update({name: evolve(self._patterns[name], stats=counted) for name, counted in known.items()})
        self._changes = Changes(stats=stats)

    def keep(self, rows: Sequence[Row]) -> None:
        """They are kept as they are."""

    def close(self) -> None:
        """Nothing is held open."""


INLINE_MOST = 20_000
"""Patterns of a tier up to which a search takes microseconds, some 300 at most (benchmarks/retrieval.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The patterns at one moment: `rows` are the store's own, `index` has them and those of the layer under them."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    index: Index


class LocalStore:
    """Patterns in memory, with a SQLite file behind them if a path is given.

    The file is opened when it is first used and made, with its folder, when something is first added; what another
    process changes is seen by the next search. `layer` are read-only patterns under those of the store: one of the
    same id hides that of the layer, and one that is `off` switches it off. Without an `embedder` it is the library's.
    Vectors are kept by embedder: patterns that have none of this one are embedded when they are first searched, and
    the file keeps that, if it can be written. One that cannot is read as it is when it is opened.

    Raises `StoreError` for a file that cannot be read or written, `ConfigError` for a pattern that no search could
    find, `BadAnswer` for what an embedder must not give; what an embedder raises is passed on. After an error nothing
    has changed. Safe for threads; a fork closes the file, each process opens it again for itself.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        patterns: Iterable[Pattern] = (),
        layer: Iterable[Pattern] = (),
        embedder: Embedder | None = None,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self._given, self._is_quick = embedder, embedder is None or embedders.is_quick(embedder)
        self._layer = {pattern.id: row_of(checked(pattern)) for pattern in layer}
        stats = {name: row.pattern.stats for name, row in self._layer.items() if row.pattern.stats}
        self._shelf = self._made_shelf()
        self._made: Vectors | None = None
        self._read = self.path is None
        self._snapshot = _Snapshot(index=Index.of(self._layer.values(), stats))
        self.add(patterns)

    @cached_property
    def embedder(self) -> Embedder:
        """What makes vectors of texts; the library's is loaded when it is first asked for."""
        return embedders.default() if self._given is None else self._given

    @property
    def inline(self) -> bool:
        """Does a search take microseconds and call nobody else's code? So a session may run it in its own thread."""
        return self._read and self._is_quick and self._snapshot.index.largest <= INLINE_MOST

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Best first, ties by id; a pattern's own `gate_threshold` goes before the asked similarity."""
        self._refresh()
        return self._answer(request)

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """As `search`, in a thread whenever it may take more than microseconds."""
        quick = self.inline or (self._read and request.tier == "e3")
        if quick and self._snapshot.index.is_ready(request) and not self._is_due():
            return self._answer(request)
        return await in_daemon(partial(self.search, request))

    def load(self) -> None:
        """Read the file and, unless embedding takes its time, lay out what searches walk through: none has to."""
        self._refresh()
        if self._is_quick:
            self._snapshot.index.lay_out(self._vectors)

    def leave_file(self) -> None:
        """Continue with the layer alone, because the file cannot be used."""
        self.close()
        self._shelf, self._read = Memory(), True

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns, or replace those of the same id: all of them or, after an error, none.

        A different pattern takes the next revision; when this returns they are on the disk.
        """
        given = {pattern.id: checked(pattern) for pattern in patterns}
        if not given:
            return
        self._refresh()
        vectors = self._vectors_of(given.values())
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with no_fork:
            self._shelf.add(given, vectors, now)
            self._take(self._shelf.changes())

    def remove(self, pattern_id: str) -> bool:
        """False: the store has none of that id. One of the layer is switched off by one that is `off`."""
        with no_fork:
            found = self._shelf.remove(pattern_id)
            self._take(self._shelf.changes())
        return found

    def count(self, pattern_ids: Iterable[str], what: str) -> None:
        """Count one more of `what` (retrieved, injected, recovered, not_recovered) for each id.

        Ids that are not there are left out, and so is everything as long as the store's file is not there.
        """
        if what not in COUNTED:
            raise ConfigError.unknown("what", what, COUNTED)
        self._refresh()
        rows = self._snapshot.rows
        if counts := Counter([name for name in pattern_ids if name in rows or name in self._layer]):
            with no_fork:
                self._shelf.count(counts, what)
                self._take(self._shelf.changes())

    def get(self, pattern_id: str) -> Pattern | None:
        """The store's own, else the layer's."""
        self._refresh()
        snapshot = self._snapshot
        row = snapshot.rows.get(pattern_id) or self._layer.get(pattern_id)
        return None if row is None else row.told(snapshot.index.stats)

    def list(
        self, org_id: str, tier: Tier | None = None, *, failure_type: str | None = None, layer: bool = False
    ) -> tuple[Pattern, ...]:
        """Those of an org and of none, by id, also those that are off. `layer`: what shows of the layer, too."""
        self._refresh()
        snapshot = self._snapshot
        rows = {**self._layer, **snapshot.rows} if layer else snapshot.rows
        kept = [
            row
            for _, row in sorted(rows.items())
            if row.org_id in (None, org_id) and tier in (None, row.tier) and failure_type in (None, row.failure_type)
        ]
        return tuple(row.told(snapshot.index.stats) for row in kept)

    def __len__(self) -> int:
        """How many the store itself has."""
        self._refresh()
        return len(self._snapshot.rows)

    def close(self) -> None:
        """Close the file; what uses the store after that opens it again."""
        with no_fork:
            self._shelf.close()

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Retrieve) -> tuple[ETrace, ...]:
        index = self._snapshot.index
        if request.tier == "e3":
            return index.standing(request)
        return index.search(request, self._vectors)

    def _vectors(self) -> Vectors:
        if self._made is None:
            from .._stores.vectors import Vectors  # with numpy, which a store of standing rules never needs

            self._made = Vectors(self.embedder, self._keep)
        return self._made

    def _made_shelf(self) -> Shelf:
        if self.path is None:
            return Memory()
        from ._file import File  # with sqlite3

        return File(self.path, lambda: (self.embedder.id, self.embedder.dim), self)

    def _is_due(self) -> bool:
        """Is there something to read?"""
        with no_fork_if_free() as free:
            return free and self._shelf.is_new()

    def _refresh(self) -> None:
        with no_fork_if_free(wait=not self._read) as free:  # a thread that uses the file reads it, or has
            if free and self._shelf.is_new():
                self._take(self._shelf.changes())
        self._read = True

    def _take(self, changes: Changes) -> None:
        """The next snapshot. `no_fork` is held."""
        before = self._snapshot
        stats = {**({} if changes.whole else before.index.stats), **changes.stats}
        if not (changes.rows or changes.gone or changes.whole):
            self._snapshot = _Snapshot(rows=before.rows, index=before.index.counted(stats))
            return
        rows = {} if changes.whole else dict(before.rows)
        for name in changes.gone:
            rows.pop(name, None)
        rows.update((row.id, row) for row in changes.rows)
        self._snapshot = _Snapshot(rows=rows, index=self._indexed(before, rows, changes).counted(stats))

    def _indexed(self, before: _Snapshot, rows: Mapping[str, Row], changes: Changes) -> Index:
        if changes.whole:
            return Index.of({**self._layer, **rows}.values(), {})
        touched = {*changes.gone, *(row.id for row in changes.rows)}
        gone = [before.rows.get(name) or self._layer.get(name) for name in touched]
        new = [rows.get(name) or self._layer.get(name) for name in touched]
        return before.index.changed([row for row in gone if row], [row for row in new if row])

    def _vectors_of(self, patterns: Iterable[Pattern]) -> dict[str, bytes]:
        """The exemplars' vectors, by the pattern's id; those that are there are not computed again."""
        rows = [row for pattern in patterns if (row := row_of(pattern)).searched]
        for row in rows:
            stored = self._snapshot.rows.get(row.id)
            if stored is not None and stored.texts == row.texts:
                row.vectors = stored.vectors
        if missing := [row for row in rows if row.vectors is None]:
            self._vectors().fill(missing)
        return {row.id: bytes(row.vectors or b"") for row in rows}

    def _keep(self, rows: Sequence[Row]) -> None:
        """What was stored with another embedder has vectors of this one now."""
        own = [row for row in rows if row.body is not None]
        with suppress(StoreError), no_fork_if_free() as free:  # a file that cannot be written is read all the same
            if free and own:
                self._shelf.keep(own)
