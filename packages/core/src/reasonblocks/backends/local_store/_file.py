"""Stores patterns in a SQLite file, and reads what other processes changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from ...concurrency.forks import Closable
from ...exceptions import StoreError
from ...patterns import COUNTED, pattern_of, revise_pattern
from ...types import Pattern
from ...util.text import whole
from ..stores.rows import Row, Stats, body
from ._database import DAMAGED, Database, reason
from ._storage import Changes

_ROWS = (
    "SELECT p.id, p.tier, p.org_id, p.failure_type, p.gate, p.signal, p.off, p.body, v.data FROM patterns p "
    "LEFT JOIN vectors v ON v.id = p.id AND v.embedder = ? AND v.dim = ? WHERE p.changed > ?"
)
_COUNTS = f"SELECT id, {', '.join(COUNTED)} FROM counts WHERE changed > ?"
_PUT = "INSERT OR REPLACE INTO patterns VALUES (?,?,?,?,?,?,?,?,?)"
_PUT_COUNTS = "INSERT OR REPLACE INTO counts VALUES (?,?,?,?,?,?)"
_PUT_VECTORS = "INSERT OR REPLACE INTO vectors VALUES (?,?,?,?)"
_KEEP = "INSERT OR IGNORE INTO vectors SELECT id, ?, ?, ? FROM patterns WHERE id = ? AND body = ?"  # unchanged text


class File:
    """The SQLite file. It is opened on first use and created by the first write; a missing file reads as empty.

    Vectors are stored per embedder, so several embedders may share a file.
    """

    def __init__(self, path: str, space: Callable[[], tuple[str, int]], held: Closable) -> None:
        self.path, self._space = path, space
        self._database = Database(path, held)
        self._version = -1
        self._seen: tuple[str | None, int] = ("", 0)
        """Id of the file that was read last, "" for none and None if unknown; the number of the last change in it."""

    def is_new(self) -> bool:
        try:  # runs on every search, so without `border`
            found = self._database.data_version()
        except sqlite3.Error as exc:
            raise StoreError(self.path, reason(exc)) from exc
        if found is None:
            return self._database.exists() or self._seen[0] != ""
        return found != self._version

    def changes(self) -> Changes:
        with self._database.border():
            db = self._database.reading()
            if db is None:
                found, self._seen = Changes(whole=self._seen[0] != ""), ("", 0)
                return found
            self._version = self._database.data_version() or 0
            with self._database.snapshot(db):
                return self._since(db)

    def forget(self) -> None:
        self._seen, self._version = (None, 0), -1

    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None:
        with self._database.border(), self._changing() as (db, change):
            for pattern in given.values():
                stored = _stored(db, pattern.id)
                new = revise_pattern(pattern, stored, now)
                if new != stored:
                    self._put(db, new, change, stored is not None)
                if new.stats != ({} if stored is None else stored.stats):
                    db.execute(_PUT_COUNTS, (new.id, *(new.stats.get(what, 0) for what in COUNTED), change))
                if (data := vectors.get(new.id)) is not None:
                    db.execute(_PUT_VECTORS, (new.id, *self._space(), data))

    def remove(self, name: str) -> bool:
        if not self._database.exists():
            return False
        with self._database.border(), self._changing() as (db, change):
            found = db.execute("DELETE FROM patterns WHERE id=?", (name,)).rowcount > 0
            if found:
                db.execute("DELETE FROM vectors WHERE id=?", (name,))
                db.execute(_PUT_COUNTS, (name, *(0 for _ in COUNTED), change))
                db.execute("INSERT OR REPLACE INTO gone VALUES (?,?)", (name, change))
        return found

    def count(self, counts: Mapping[str, int], what: str) -> None:
        """Increment counts without waiting for the disk: a power cut may lose a count, but never a pattern."""
        if not self._database.exists():
            return
        more = (
            f"INSERT INTO counts (id, {what}, changed) VALUES (?,?,?) ON CONFLICT (id) "
            f"DO UPDATE SET {what} = {what} + excluded.{what}, changed = excluded.changed"
        )
        with self._database.border(), self._changing("NORMAL") as (db, change):
            db.executemany(more, [(name, times, change) for name, times in counts.items()])

    def keep(self, rows: Sequence[Row]) -> None:
        """Store vectors during a search, which does not wait: raises at once if another process is writing."""
        with self._database.border():
            db = self._database.reading()
            if db is not None:
                with self._database.at_once(db):
                    space = self._space()
                    db.executemany(_KEEP, [(*space, bytes(row.vectors or b""), row.id, row.body) for row in rows])

    def close(self) -> None:
        self._database.close()

    def _changing(self, synchronous: str = "FULL") -> AbstractContextManager[tuple[sqlite3.Connection, int]]:
        self._version = -1  # SQLite does not count this connection's own changes
        return self._database.transaction(synchronous)

    def _since(self, db: sqlite3.Connection) -> Changes:
        if not self._database.form:
            return Changes()
        if (meta := db.execute("SELECT store, change FROM meta").fetchone()) is None:
            raise StoreError(self.path, DAMAGED)
        store, change = meta
        same = store == self._seen[0] and change >= self._seen[1]
        since = self._seen[1] if same else 0
        found = Changes(
            rows=[Row(*values) for values in db.execute(_ROWS, (*self._space(), since))],
            gone=[name for (name,) in db.execute("SELECT id FROM gone WHERE changed > ?", (since,))],
            stats=_stats(db.execute(_COUNTS, (since,))),
            whole=not same,
        )
        self._seen = (store, change)
        return found

    def _put(self, db: sqlite3.Connection, pattern: Pattern, change: int, is_known: bool) -> None:
        kept = (pattern.id, pattern.tier, pattern.org_id, pattern.failure_type, pattern.gate_threshold)
        db.execute(f"DELETE FROM {'vectors' if is_known else 'gone'} WHERE id=?", (pattern.id,))
        db.execute(_PUT, (*kept, pattern.requires_signal, pattern.off, whole(body(pattern)), change))


def _stored(db: sqlite3.Connection, name: str) -> Pattern | None:
    found = db.execute("SELECT body FROM patterns WHERE id=?", (name,)).fetchone()
    if found is None:
        return None
    counts = _stats(db.execute(f"SELECT id, {', '.join(COUNTED)} FROM counts WHERE id=?", (name,)))
    return replace(pattern_of(json.loads(found[0])), stats=counts.get(name, {}))


def _stats(found: sqlite3.Cursor) -> Stats:
    return {name: {what: count for what, count in zip(COUNTED, counts) if count} for name, *counts in found}
