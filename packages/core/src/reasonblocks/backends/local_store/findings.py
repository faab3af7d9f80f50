"""`LocalFindings`: the findings of codebases in the SQLite file of the patterns, or in memory."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...concurrency.forks import no_fork
from ...exceptions import StoreError, StoreFull
from ...findings import MOST_FINDINGS
from ...ports import Embedder
from ...types import Codebase, CodebaseSummary, Finding, RecalledFinding
from ...util.json import compact
from ..stores import embedders
from ..stores.stored_findings import LeftOut, finding_of
from ._database import DAMAGED, Database

if TYPE_CHECKING:
    import sqlite3

    from ..stores.finding_index import FindingIndex
    from ..stores.table import Rows
    from ..stores.vectors import Vectors

CACHED_FINDINGS = 60_000
"""Findings in memory, of all codebases. 10,000 take some 26 MB (benchmarks/memory.py), and a second to load."""
CACHED_CODEBASES = 256
"""Codebases in memory."""
FORM = 2
"""The form of the file from which on it has findings."""
FIELDS = "id, file_path, finding_type, content, metadata, created_at, file_hash, git_blob"
_STATE = (
    "SELECT m.store, c.number, c.changed, c.shrunk FROM meta m "
    "LEFT JOIN codebases c ON c.org_id = ? AND c.codebase_id = ?"
)
_NUMBER = "SELECT number FROM codebases WHERE org_id = ? AND codebase_id = ?"
_ENTER = (
    "INSERT INTO codebases (org_id, codebase_id, changed, shrunk) VALUES (?,?,?,0) "
    "ON CONFLICT (org_id, codebase_id) DO UPDATE SET changed = excluded.changed"
)
_NEW = ", ".join(f"{name} = excluded.{name}" for name in FIELDS.split(", ")[1:])
_PUT = (
    f"INSERT INTO findings ({FIELDS}, codebase, changed) VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (codebase, id) "
    f"DO UPDATE SET {_NEW}, changed = excluded.changed"
)
_FORGET_VECTORS = "DELETE FROM finding_vectors WHERE finding = (SELECT number FROM findings WHERE codebase=? AND id=?)"
_PUT_VECTOR = "INSERT INTO finding_vectors SELECT number, ?, ?, ? FROM findings WHERE codebase = ? AND id = ?"
_KEEP_VECTOR = (
    "INSERT OR REPLACE INTO finding_vectors SELECT number, ?, ?, ? FROM findings "
    "WHERE codebase = ? AND id = ? AND content = ? AND file_path = ?"
)
_CHANGED = (
    f"SELECT {FIELDS}, v.data FROM findings f LEFT JOIN finding_vectors v "
    "ON v.finding = f.number AND v.embedder = ? AND v.dim = ? WHERE f.codebase = ? AND f.changed > ?"
)
_PAGE = f"SELECT {FIELDS} FROM findings WHERE codebase = ? AND id > ? ORDER BY id LIMIT ?"
_CODEBASES = (
    "SELECT c.codebase_id, count(*), max(f.created_at) FROM codebases c JOIN findings f ON f.codebase = c.number "
    "WHERE c.org_id = ? GROUP BY c.number ORDER BY c.codebase_id"
)


@dataclass(slots=True, kw_only=True)
class _Loaded:
    """One codebase in memory. The number is never reused, and `seen` is the last change that was read."""

    index: FindingIndex
    store: str = ""
    number: int = 0
    seen: int = 0
    missing: dict[str, Finding] = field(default_factory=dict)
    """Findings that have no vector of this embedder yet."""


class LocalFindings:
    """The findings of codebases in a SQLite file, which may also hold patterns; without a path, in memory.

    The file is opened on first use and created, with its folder, by the first `put`. Every call sees what other
    processes changed before it. Without an `embedder` the library's own is used. Vectors are stored per embedder:
    findings without vectors of this one are embedded by the first search of their codebase, and the vectors are saved
    if the file is writable. A finding that cannot be read is left out and logged once. At most `most` findings are kept
    per codebase.

    Raises `StoreError` for a file that cannot be read or written, `StoreFull` beyond the limit, and `BadAnswer` for
    invalid output of an embedder, whose own exceptions propagate. After an error nothing has changed. Thread-safe. A
    fork closes the file; each process opens it again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedder: Embedder | None = None,
        most: int = MOST_FINDINGS,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self._given, self._most = embedder, most
        self._database = Database(self.path, self)
        self._left_out = LeftOut(self._database.name)
        self._cached: OrderedDict[Codebase, _Loaded] = OrderedDict()

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder. The library's own is loaded on first use."""
        return embedders.default() if self._given is None else self._given

    def put(self, codebase: Codebase, findings: Sequence[Finding]) -> tuple[str, ...]:
        """Store findings, all or none. When this returns, they are on the disk."""
        given = {finding.finding_id: finding for finding in findings}
        if given:
            units = self._embedded(given.values())
            with no_fork, self._database.border(), self._database.transaction() as (db, change):
                self._put(db, codebase, change, zip(given.values(), units))
        return tuple(finding.finding_id for finding in findings)

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        """Return the findings with at least this score, the best first, ties by id, at most `top_k`."""
        (unit,) = self._vectors.embed([query])
        loaded = self._loaded(codebase)
        with no_fork:
            missing = dict(loaded.missing)
        if missing:
            self._fill(codebase, loaded, missing, self._embedded(missing.values()))
        with no_fork:
            return loaded.index.search(query, unit, top_k=top_k, score_threshold=score_threshold)

    def page(self, codebase: Codebase, *, after: str = "", limit: int = 100) -> tuple[Finding, ...]:
        """Return at most `limit` findings by id, beginning after the id `after`; none at their end."""
        with no_fork, self._database.border():
            db = self._reading()
            if db is None or (number := _number(db, codebase)) is None:
                return ()
            found: list[Finding] = []
            while rows := db.execute(_PAGE, (number, after, limit - len(found))).fetchall():
                found += [finding for row in rows if (finding := self._finding(row)) is not None]
                after = rows[-1][0]
            return tuple(found)

    def remove(self, codebase: Codebase, *, finding_ids: Sequence[str] = (), file_paths: Sequence[str] = ()) -> int:
        """Remove the findings with these ids, and those about these files or files in these folders; count them."""
        ids, paths = {*finding_ids}, {path.rstrip("/") or path for path in file_paths}
        return self._remove(codebase, lambda name, path: name in ids or _is_within(path, paths))

    def clear(self, codebase: Codebase) -> int:
        """Remove all findings of a codebase; return their number."""
        return self._remove(codebase, lambda name, path: True)

    def codebases(self, org_id: str) -> tuple[CodebaseSummary, ...]:
        """Return the codebases of an org that have findings, by id."""
        with no_fork, self._database.border():
            db = self._reading()
            found = [] if db is None else db.execute(_CODEBASES, (org_id,)).fetchall()
        return tuple(CodebaseSummary(codebase_id=name, findings=count, newest=newest) for name, count, newest in found)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        with no_fork:
            self._database.close()

    def __enter__(self) -> LocalFindings:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _vectors(self) -> Vectors:
        from ..stores.vectors import Vectors  # imports numpy, which listing and removing do not need

        return Vectors(self.embedder)

    def _embedded(self, findings: Iterable[Finding]) -> Rows:
        from ..stores.finding_index import embedded_text

        return self._vectors.embed([embedded_text(finding) for finding in findings])

    def _reading(self) -> sqlite3.Connection | None:
        """Return the connection if the file has findings, or may have."""
        db = self._database.reading()
        return db if self._database.form >= FORM else None

    def _put(
        self, db: sqlite3.Connection, codebase: Codebase, change: int, found: Iterable[tuple[Finding, Rows]]
    ) -> None:
        db.execute(_ENTER, (codebase.org_id, codebase.codebase_id, change))
        number = _number(db, codebase)
        space = (self.embedder.id, self.embedder.dim)
        for finding, unit in found:
            key = (number, finding.finding_id)
            db.execute(_PUT, (*_values(finding), number, change))
            db.execute(_FORGET_VECTORS, key)
            db.execute(_PUT_VECTOR, (*space, unit.tobytes(), *key))
        (count,) = db.execute("SELECT count(*) FROM findings WHERE codebase = ?", (number,)).fetchone()
        if count > self._most:
            rule = f"a codebase may have {self._most:,} findings, and this would make {count:,}: forget some first"
            raise StoreFull(self._database.name, rule)

    def _remove(self, codebase: Codebase, wanted: Callable[[str, str], bool]) -> int:
        """Remove the findings whose id and path are wanted."""
        if not self._database.exists():
            return 0
        with no_fork, self._database.border():
            db = self._reading()
            if db is None or _number(db, codebase) is None:
                return 0
            with self._database.transaction() as (db, change):
                return _removed(db, codebase, change, wanted)

    def _loaded(self, codebase: Codebase) -> _Loaded:
        """Return the codebase as it is now. One that is not cached is indexed while other threads use their stores."""
        with no_fork:
            cached = self._cached.get(codebase)
            with self._database.border():
                loaded, rows, seen = self._read(codebase, cached)
            if loaded is cached:
                self._take(loaded, rows, seen)
        if loaded is not cached:
            self._take(loaded, rows, seen)
        with no_fork:
            self._cached[codebase] = loaded
            self._cached.move_to_end(codebase)
            self._drop_oldest()
        return loaded

    def _drop_oldest(self, findings: int = CACHED_FINDINGS, codebases: int = CACHED_CODEBASES) -> None:
        """Drop the codebases that were used the longest ago until so many are left; the last one stays."""
        sizes = [len(one.index.ids) + len(one.missing) for one in self._cached.values()]
        count = sum(sizes)
        for size in sizes[:-1]:
            if count <= findings and len(self._cached) <= codebases:
                break
            self._cached.popitem(last=False)
            count -= size

    def _read(self, codebase: Codebase, cached: _Loaded | None) -> tuple[_Loaded, list[Sequence[Any]], int]:
        """Return the codebase without what was removed, the rows that have changed, and the last change."""
        from ..stores.finding_index import FindingIndex

        db = self._reading()
        if db is None:
            return _Loaded(index=FindingIndex()), [], 0
        with self._database.snapshot(db):
            state = db.execute(_STATE, (codebase.org_id, codebase.codebase_id)).fetchone()
            if state is None:
                raise StoreError(self._database.name, DAMAGED)
            store, number, changed, shrunk = state
            if number is None:
                return _Loaded(index=FindingIndex()), [], 0
            loaded = cached
            if loaded is None or (loaded.store, loaded.number) != (store, number) or changed < loaded.seen:
                loaded = _Loaded(index=FindingIndex(), store=store, number=number)
            if changed == loaded.seen:
                return loaded, [], changed
            if shrunk > loaded.seen:
                self._drop_removed(db, loaded)
            space = (self.embedder.id, self.embedder.dim)
            return loaded, db.execute(_CHANGED, (*space, loaded.number, loaded.seen)).fetchall(), changed

    def _drop_removed(self, db: sqlite3.Connection, loaded: _Loaded) -> None:
        kept = {name for (name,) in db.execute("SELECT id FROM findings WHERE codebase = ?", (loaded.number,))}
        loaded.index.remove([name for name in loaded.index.ids if name not in kept])
        loaded.missing = {name: finding for name, finding in loaded.missing.items() if name in kept}

    def _take(self, loaded: _Loaded, rows: Iterable[Sequence[Any]], seen: int) -> None:
        """Add the rows that have changed up to the change `seen`."""
        import numpy as np

        size = self.embedder.dim * np.dtype(np.float32).itemsize
        for name, *values, data in rows:
            finding = self._finding((name, *values))
            loaded.missing.pop(name, None)
            if finding is not None and isinstance(data, bytes) and len(data) == size:
                loaded.index.put(finding, np.frombuffer(data, np.float32))
                continue
            loaded.index.remove([name])
            if finding is not None:  # without a vector of this embedder, or with a damaged one
                loaded.missing[name] = finding
        loaded.seen = seen

    def _fill(self, codebase: Codebase, loaded: _Loaded, missing: Mapping[str, Finding], units: Rows) -> None:
        """Add findings that were stored with another embedder, unless they have changed since."""
        found = [(finding, unit) for finding, unit in zip(missing.values(), units)]
        with no_fork:
            for finding, unit in found:
                if loaded.missing.get(finding.finding_id) is finding:
                    loaded.index.put(finding, unit)
                    del loaded.missing[finding.finding_id]
            with suppress(StoreError):  # a read-only file can still be searched
                self._keep(loaded.number, found)

    def _keep(self, number: int, found: Iterable[tuple[Finding, Rows]]) -> None:
        with self._database.border():
            db = self._reading()
            if db is not None:
                space = (self.embedder.id, self.embedder.dim)
                keys = [(number, finding.finding_id, finding.content, finding.file_path) for finding, _ in found]
                with self._database.at_once(db):
                    rows = [(*space, unit.tobytes(), *key) for key, (_, unit) in zip(keys, found)]
                    db.executemany(_KEEP_VECTOR, rows)

    def _finding(self, values: Sequence[Any]) -> Finding | None:
        """Return the finding of a row; None, and log it, if it cannot be read."""
        name, path, kind, content, metadata, created_at, file_hash, git_blob = values
        try:
            return finding_of(
                {
                    "content": content, "file_path": path, "finding_type": kind, "metadata": json.loads(metadata),
                    "finding_id": name, "created_at": created_at, "file_hash": file_hash, "git_blob": git_blob,
                }
            )  # fmt: skip
        except (ValueError, TypeError, RecursionError) as exc:  # a column may hold a value of any type
            self._left_out.add(repr(name), exc)
            return None


def _values(finding: Finding) -> tuple[str, ...]:
    texts = (finding.finding_id, finding.file_path, finding.finding_type, finding.content)
    return (*texts, compact(dict(finding.metadata)), finding.created_at, finding.file_hash, finding.git_blob)


def _number(db: sqlite3.Connection, codebase: Codebase) -> int | None:
    found = db.execute(_NUMBER, (codebase.org_id, codebase.codebase_id)).fetchone()
    return None if found is None else int(found[0])


def _is_within(path: str, paths: Collection[str]) -> bool:
    """Return True for one of the paths, and for what is below one. The empty path is no folder."""
    if path in paths:
        return True
    at = path.rfind("/")
    while at >= 0:
        if (path[:at] or "/") in paths:
            return True
        at = path.rfind("/", 0, at)
    return False


def _removed(db: sqlite3.Connection, codebase: Codebase, change: int, wanted: Callable[[str, str], bool]) -> int:
    """Remove findings in one pass over the codebase, however many paths are given."""
    number = _number(db, codebase)
    rows = db.execute("SELECT number, id, file_path FROM findings WHERE codebase = ?", (number,))
    chosen = [(row,) for row, name, path in rows if wanted(name, path)]
    db.executemany("DELETE FROM finding_vectors WHERE finding = ?", chosen)
    db.executemany("DELETE FROM findings WHERE number = ?", chosen)
    count = len(chosen)
    if db.execute("SELECT 1 FROM findings WHERE codebase = ? LIMIT 1", (number,)).fetchone() is None:
        db.execute("DELETE FROM codebases WHERE number = ?", (number,))
    elif count:
        db.execute("UPDATE codebases SET changed = ?, shrunk = ? WHERE number = ?", (change, change, number))
    return count
