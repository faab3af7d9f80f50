"""Stores patterns in a SQLite file, and reads what other processes changed."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..._files import regular
from ..._json import evolve
from ..._patterns import COUNTED, pattern_of, revised
from ..._text import whole
from ...exceptions import StoreError
from ...types import Pattern
from .._forks import Closable, opened
from .._stores.rows import Row, Stats, body
from .._wal import to_wal
from ._storage import Changes

BUSY_S = 5.0
"""Seconds to wait for another process's transaction; importing 10,000 patterns takes a tenth of that."""


def connect(path: str, *, make: bool) -> sqlite3.Connection:
    """Return a connection in autocommit mode. With `make`, create a missing file and its folder.

    Raises `OSError` if the file, or one of SQLite's files beside it, is not a regular file: a pipe would block.
    """
    for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        if os.path.exists(name):
            regular(name)
    if make:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        return _opened(path, "mode=rwc")
    try:
        return _opened(path, "mode=rw")
    except sqlite3.OperationalError:
        if make:
            raise
    log = f"{path}-wal"  # without a WAL file nothing is newer; SQLite would have to write to find that out
    unchanged = not os.path.exists(log) or not os.path.getsize(log)
    return _opened(path, "mode=ro&immutable=1" if unchanged else "mode=ro")


def _opened(path: str, mode: str) -> sqlite3.Connection:
    uri = f"{Path(os.path.abspath(path)).as_uri()}?{mode}"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA user_version").fetchone()
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


APPLICATION = 0x52425053
"""SQLite's `application_id` of our files: "RBPS"."""
MIGRATIONS = (
    """
    CREATE TABLE meta (store TEXT NOT NULL, change INTEGER NOT NULL);
    CREATE TABLE patterns (
      id TEXT PRIMARY KEY, tier TEXT NOT NULL, org_id TEXT, failure_type TEXT, gate REAL, signal INTEGER NOT NULL,
      off INTEGER NOT NULL, body TEXT NOT NULL, changed INTEGER NOT NULL
    );
    CREATE INDEX patterns_changed ON patterns (changed);
    CREATE TABLE vectors (
      id TEXT NOT NULL, embedder TEXT NOT NULL, dim INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (id, embedder)
    );
    CREATE TABLE counts (
      id TEXT PRIMARY KEY, retrieved INTEGER NOT NULL DEFAULT 0, injected INTEGER NOT NULL DEFAULT 0,
      recovered INTEGER NOT NULL DEFAULT 0, not_recovered INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL
    );
    CREATE INDEX counts_changed ON counts (changed);
    CREATE TABLE gone (id TEXT PRIMARY KEY, changed INTEGER NOT NULL);
    CREATE INDEX gone_changed ON gone (changed);
    INSERT INTO meta VALUES (lower(hex(randomblob(16))), 0);
    """,
)
"""Statements that migrate a file from version n to n + 1; `PRAGMA user_version` holds the version."""


def prepared(db: sqlite3.Connection, path: str, *, write: bool) -> int:
    """Return the file's version after checking it and, for writing, migrating it. 0 means an empty file."""
    found = _form(db, path)
    if not write or found == len(MIGRATIONS):
        return found
    if found == 0:
        to_wal(db, BUSY_S)
    db.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_form(db, path), len(MIGRATIONS)):
            for statement in MIGRATIONS[number].split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA application_id={APPLICATION}")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return len(MIGRATIONS)


_STATE = (
    "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), "
    "(SELECT count(*) FROM sqlite_master)"
)
"""One statement, so that a file which another process is just creating is either empty or complete."""


def _form(db: sqlite3.Connection, path: str) -> int:
    form, application, tables = db.execute(_STATE).fetchone()
    empty = (form, application, tables) == (0, 0, 0)
    if not empty and application != APPLICATION:
        raise StoreError(path, "this SQLite file belongs to another program: give the path of another file")
    if form > len(MIGRATIONS):
        rule = f"its form {form} is newer than this library's {len(MIGRATIONS)}: upgrade reasonblocks-core"
        raise StoreError(path, rule)
    return int(form)


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
        self.path, self._space, self._held = path, space, held
        self._db: sqlite3.Connection | None = None
        self._form = 0
        self._version = -1
        self._seen = ("", 0)
        """Id of the file that was read last, and the number of the last change that was read."""

    def is_new(self) -> bool:
        if self._db is None:
            return os.path.exists(self.path)
        try:  # runs on every search, so without `_border`
            found: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as exc:
            raise StoreError(self.path, _reason(exc)) from exc
        return found != self._version

    def changes(self) -> Changes:
        with self._border():
            db = self._reading()
            if db is None:
                found, self._seen = Changes(whole=self._seen[0] != ""), ("", 0)
                return found
            self._version = db.execute("PRAGMA data_version").fetchone()[0]
            db.execute("BEGIN")  # one consistent snapshot for all reads
            try:
                return self._since(db)
            finally:
                db.execute("COMMIT")

    def add(self, given: Mapping[str, Pattern], vectors: Mapping[str, bytes], now: str) -> None:
        with self._border(), self._transaction() as (db, change):
            for pattern in given.values():
                stored = _stored(db, pattern.id)
                new = revised(pattern, stored, now)
                if new != stored:
                    self._put(db, new, change, stored is not None)
                if new.stats != ({} if stored is None else stored.stats):
                    db.execute(_PUT_COUNTS, (new.id, *(new.stats.get(what, 0) for what in COUNTED), change))
                if (data := vectors.get(new.id)) is not None:
                    db.execute(_PUT_VECTORS, (new.id, *self._space(), data))

    def remove(self, name: str) -> bool:
        if not os.path.exists(self.path):
            return False
        with self._border(), self._transaction() as (db, change):
            found = db.execute("DELETE FROM patterns WHERE id=?", (name,)).rowcount > 0
            if found:
                db.execute("DELETE FROM vectors WHERE id=?", (name,))
                db.execute(_PUT_COUNTS, (name, *(0 for _ in COUNTED), change))
                db.execute("INSERT OR REPLACE INTO gone VALUES (?,?)", (name, change))
        return found

    def count(self, counts: Mapping[str, int], what: str) -> None:
        """Increment counts without waiting for the disk: a power cut may lose a count, but never a pattern."""
        if not os.path.exists(self.path):
            return
        more = (
            f"INSERT INTO counts (id, {what}, changed) VALUES (?,?,?) ON CONFLICT (id) "
            f"DO UPDATE SET {what} = {what} + excluded.{what}, changed = excluded.changed"
        )
        with self._border(), self._transaction("NORMAL") as (db, change):
            db.executemany(more, [(name, times, change) for name, times in counts.items()])

    def keep(self, rows: Sequence[Row]) -> None:
        """Store vectors during a search, which does not wait: raises at once if another process is writing."""
        with self._border():
            db = self._writing()
            db.execute("PRAGMA busy_timeout=0")
            try:
                db.execute("BEGIN IMMEDIATE")
            finally:
                db.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
            try:
                space = self._space()
                db.executemany(_KEEP, [(*space, bytes(row.vectors or b""), row.id, row.body) for row in rows])
            finally:
                db.execute("COMMIT")

    def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _since(self, db: sqlite3.Connection) -> Changes:
        if not self._form:
            return Changes()
        if (meta := db.execute("SELECT store, change FROM meta").fetchone()) is None:
            raise StoreError(self.path, "the file is damaged: move it away, or put back a copy; nothing was deleted")
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

    def _reading(self) -> sqlite3.Connection | None:
        if self._db is None and os.path.exists(self.path):
            self._open(make=False)
        elif self._db is not None and not self._form:  # the file was empty at that time
            self._form = prepared(self._db, self.path, write=False)
        return self._db

    def _writing(self) -> sqlite3.Connection:
        if self._db is None:
            self._open(make=True)
        assert self._db is not None
        self._form = prepared(self._db, self.path, write=True)
        return self._db

    def _open(self, *, make: bool) -> None:
        db = connect(self.path, make=make)
        try:
            form = prepared(db, self.path, write=False)
            self._form = prepared(db, self.path, write=form > 0)
        except BaseException:
            db.close()
            raise
        self._db = db
        opened(self._held)

    @contextmanager
    def _transaction(self, synchronous: str = "FULL") -> Iterator[tuple[sqlite3.Connection, int]]:
        """Run a transaction and yield the change's number. After the commit the data is on the disk."""
        db = self._writing()
        db.execute(f"PRAGMA synchronous={synchronous}")
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute("UPDATE meta SET change = change + 1")
            yield db, db.execute("SELECT change FROM meta").fetchone()[0]
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def _border(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            raise StoreError(self.path, _reason(exc)) from exc


def _stored(db: sqlite3.Connection, name: str) -> Pattern | None:
    found = db.execute("SELECT body FROM patterns WHERE id=?", (name,)).fetchone()
    if found is None:
        return None
    counts = _stats(db.execute(f"SELECT id, {', '.join(COUNTED)} FROM counts WHERE id=?", (name,)))
    return evolve(pattern_of(json.loads(found[0])), stats=counts.get(name, {}))


def _stats(found: sqlite3.Cursor) -> Stats:
    return {name: {what: count for what, count in zip(COUNTED, counts) if count} for name, *counts in found}


def _reason(exc: Exception) -> str:
    if type(exc) is sqlite3.DatabaseError:  # not a subclass, which means another fault
        return f"the file is damaged or no store ({exc}): move it away, or put back a copy; nothing was deleted"
    return f"{type(exc).__name__}: {exc}"
