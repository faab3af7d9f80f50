"""`LocalStore`, whose searches read an immutable snapshot of the patterns that every change replaces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...concurrency.forks import InUse, no_fork, no_fork_if_free
from ...concurrency.workers import in_daemon
from ...exceptions import ConfigError, StoreError
from ...patterns import COUNTED, check_pattern
from ...ports import Embedder
from ...requests import Retrieve
from ...types import ETrace, Pattern, Tier
from ..stores import embedders
from ..stores.index import Index
from ..stores.rows import Row, row_of
from ._storage import Changes, Memory, PatternStorage

if TYPE_CHECKING:
    from ..stores.vectors import Vectors


INLINE_MOST = 20_000
"""Largest tier that is searched inline: a search takes at most some 300 microseconds (benchmarks/retrieval.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The patterns at one moment: `rows` are the store's own; `index` also holds the visible ones of the layer."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    index: Index


class LocalStore:
    """Patterns in memory and, with a path, in a SQLite file.

    The file is opened on first use and created, with its folder, by the first `add`. A search sees what other
    processes changed before it. `layer` holds read-only patterns: a stored pattern with the same id hides one of the
    layer, and one that is `off` switches it off. Without an `embedder` the library's own is used. Vectors are stored
    per embedder: patterns without vectors of this one are embedded by the first search that needs them, and the
    vectors are saved if the file is writable. A read-only file is read as it is when it is opened.

    Raises `StoreError` for a file that cannot be read or written, `ConfigError` for a pattern that no search could
    find, and `BadAnswer` for invalid output of an embedder, whose own exceptions propagate. After an error nothing
    has changed. Thread-safe. A fork closes the file; each process opens it again.
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
        self._layer = {pattern.id: row_of(check_pattern(pattern)) for pattern in layer}
        stats = {name: row.pattern.stats for name, row in self._layer.items() if row.pattern.stats}
        self._storage = self._made_storage()
        self._made: Vectors | None = None
        self._read = self.path is None
        self._snapshot = _Snapshot(index=Index.of(self._layer.values(), stats))
        self.add(patterns)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder. The library's own is loaded on first use."""
        return embedders.default() if self._given is None else self._given

    @property
    def inline(self) -> bool:
        """True if a search takes microseconds and runs only our code, so that a session may run it in place."""
        return self._read and self._is_quick and self._snapshot.index.largest <= INLINE_MOST

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Return matches, best first, ties by id. A pattern's `gate_threshold` overrides the requested similarity."""
        self._refresh()
        return self._answer(request)

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Run `search`, in a thread if it may take more than microseconds."""
        quick = self.inline or (self._read and request.tier == "e3")
        if quick and self._snapshot.index.is_ready(request) and not self._is_due():
            return self._answer(request)
        return await in_daemon(partial(self.search, request))

    def load(self) -> None:
        """Read the file ahead of the first search and, if embedding is quick, lay out the index."""
        self._refresh()
        if self._is_quick:
            self._snapshot.index.lay_out(self._vectors)

    def leave_file(self) -> None:
        """Continue with the layer alone, because the file is unusable."""
        self.close()
        self._storage, self._read = Memory(), True

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns, or replace those with the same id: all of them or, after an error, none.

        A changed pattern takes the next revision. When this returns, the patterns are on the disk.
        """
        given = {pattern.id: check_pattern(pattern) for pattern in patterns}
        if not given:
            return
        self._refresh()
        vectors = self._vectors_of(given.values())
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with no_fork:
            self._storage.add(given, vectors, now)
            self._catch_up()

    def remove(self, pattern_id: str) -> bool:
        """Remove a pattern; return False if the store has none with that id.

        To hide a pattern of the layer, add one with its id that is `off`."""
        with no_fork:
            found = self._storage.remove(pattern_id)
            self._catch_up()
        return found

    def count(self, pattern_ids: Iterable[str], what: str) -> None:
        """Increment the count `what` (retrieved, injected, recovered, not_recovered) of each id.

        Unknown ids are skipped, and so are all ids as long as the file does not exist.
        """
        if what not in COUNTED:
            raise ConfigError.unknown("what", what, COUNTED)
        self._refresh()
        rows = self._snapshot.rows
        if counts := Counter([name for name in pattern_ids if name in rows or name in self._layer]):
            with no_fork:
                self._storage.count(counts, what)
                self._catch_up()

    def get(self, pattern_id: str) -> Pattern | None:
        """Return the store's pattern, else the layer's, else None."""
        self._refresh()
        snapshot = self._snapshot
        row = snapshot.rows.get(pattern_id) or self._layer.get(pattern_id)
        return None if row is None else row.told(snapshot.index.stats)

    def list(
        self, org_id: str, tier: Tier | None = None, *, failure_type: str | None = None, layer: bool = False
    ) -> tuple[Pattern, ...]:
        """Return the patterns of an org and those of no org, by id, including those that are off.

        `layer=True` adds the patterns of the layer that are not hidden."""
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
        """Return the number of patterns in the store, without the layer."""
        self._refresh()
        return len(self._snapshot.rows)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        with no_fork:
            self._storage.close()

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
            from ..stores.vectors import Vectors  # imports numpy, which a store with only standing rules never needs

            self._made = Vectors(self.embedder, self._keep)
        return self._made

    def _made_storage(self) -> PatternStorage:
        if self.path is None:
            return Memory()
        from ._file import File  # imports sqlite3

        return File(self.path, lambda: (self.embedder.id, self.embedder.dim), self)

    def _is_due(self) -> bool:
        """Return True if the file has to be read."""
        with suppress(InUse), no_fork_if_free():
            return self._storage.is_new()
        return False

    def _refresh(self) -> None:
        with suppress(InUse), no_fork_if_free() if self._read else no_fork:  # the thread that holds it reads the file
            if self._storage.is_new():
                self._catch_up()
        self._read = True

    def _catch_up(self) -> None:
        """Make the next snapshot. The caller holds `no_fork`."""
        try:
            self._take(self._storage.changes())
        except BaseException:
            self._storage.forget()
            raise

    def _take(self, changes: Changes) -> None:
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
        """Return the exemplars' vectors by pattern id, reusing stored ones."""
        rows = [row for pattern in patterns if (row := row_of(pattern)).searched]
        for row in rows:
            stored = self._snapshot.rows.get(row.id)
            if stored is not None and stored.texts == row.texts:
                row.vectors = stored.vectors
        if missing := [row for row in rows if row.vectors is None]:
            self._vectors().fill(missing)
        return {row.id: bytes(row.vectors or b"") for row in rows}

    def _keep(self, rows: Sequence[Row]) -> None:
        """Save the vectors of patterns that were stored with another embedder."""
        own = [row for row in rows if row.body is not None]
        if own:
            with suppress(StoreError, InUse), no_fork_if_free():  # a read-only file can still be searched
                self._storage.keep(own)
