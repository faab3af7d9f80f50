"""Opens the SQLite file of patterns and findings, brings it to the newest form, and runs transactions on it."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from ...concurrency.forks import Closable, close_at_fork
from ...concurrency.interrupts import holding
from ...exceptions import ConfigError, StoreError
from ...util.files import make_folder
from ..sqlite_file import Schema, SQLiteFile, WrongFile

DAMAGED = "the file is damaged: move it away, or put back a copy; nothing was deleted"
BUSY_S = 5.0
"""Seconds to wait for another process's transaction; importing 10,000 patterns takes a tenth of that."""


def connect(file: SQLiteFile, *, make: bool) -> sqlite3.Connection:
    """Return a connection in autocommit mode. With `make`, create a missing file and its folder, for this user only.

    Raises `OSError` if the file, or one of SQLite's files beside it, is not a regular file: a pipe would block.
    """
    if make:
        make_folder(os.path.dirname(os.path.abspath(file.path)))
    try:
        return _readable(file.connect(BUSY_S, create=make))
    except sqlite3.OperationalError:
        if make:
            raise
    log = f"{file.path}-wal"  # without a WAL file nothing is newer; SQLite would have to write to find that out
    unchanged = not os.path.exists(log) or not os.path.getsize(log)
    return _readable(file.connect(BUSY_S, mode="ro&immutable=1" if unchanged else "ro"))


def _readable(db: sqlite3.Connection) -> sqlite3.Connection:
    try:
        db.execute("PRAGMA user_version").fetchone()
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


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
    """
    CREATE TABLE codebases (
      number INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, codebase_id TEXT NOT NULL,
      changed INTEGER NOT NULL, shrunk INTEGER NOT NULL, UNIQUE (org_id, codebase_id)
    );
    CREATE TABLE findings (
      number INTEGER PRIMARY KEY, codebase INTEGER NOT NULL, id TEXT NOT NULL, file_path TEXT NOT NULL,
      finding_type TEXT NOT NULL, content TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL,
      file_hash TEXT NOT NULL, git_blob TEXT NOT NULL, changed INTEGER NOT NULL, UNIQUE (codebase, id)
    );
    CREATE INDEX findings_changed ON findings (codebase, changed);
    CREATE INDEX findings_path ON findings (codebase, file_path);
    CREATE TABLE finding_vectors (
      finding INTEGER NOT NULL, embedder TEXT NOT NULL, dim INTEGER NOT NULL, data BLOB NOT NULL,
      PRIMARY KEY (finding, embedder)
    );
    """,
)
"""Statements that change form n into n + 1."""
SCHEMA = Schema(
    form=len(MIGRATIONS),
    statements=lambda form: "".join(MIGRATIONS[form:]).split(";"),
    application=0x52425053,  # "RBPS"
)


class Database:
    """The file, or without a path a database in memory. The caller holds `no_fork`.

    The file is opened on first use and created by the first write. Reading changes neither the file nor its form, and
    a missing file reads as empty. A file that was deleted or replaced is noticed before each use: the new one is read,
    and the first write creates a deleted one again. `held` is closed before a fork.
    """

    def __init__(self, path: str | None, held: Closable) -> None:
        if path == ":memory:":
            raise ConfigError("path", path, "would be a file of that name: give None for a store in memory")
        self.name = "in memory" if path is None else path
        self.form = 0
        """The file's form when it was last used: 0 for an empty file."""
        self._path, self._held = path, held
        self._file = None if path is None else SQLiteFile(path)
        self._db: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._path is None or os.path.exists(self._path)

    def data_version(self) -> int | None:
        """Return a number that changes when another connection writes; None if the file is not open."""
        self._close_lost()
        if self._db is None:
            return None
        found: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        return found

    def reading(self) -> sqlite3.Connection | None:
        """Return the connection; None if there is no file."""
        self._close_lost()
        if self._db is None and self.exists():
            self._open(make=False)
        elif self._db is not None and self.form < SCHEMA.form:  # another process may have written since
            self.form = SCHEMA.form_of(self._db)
        return self._db

    def writing(self) -> sqlite3.Connection:
        """Return the connection to a file of the newest form."""
        self._close_lost()
        if self._db is None:
            self._open(make=True)
        assert self._db is not None
        SCHEMA.migrate(self._db, BUSY_S)
        before, self.form = self.form, SCHEMA.form
        if self._file is not None and not before:  # it has a log now
            self._file.opened()
        return self._db

    @holding
    def snapshot(self, db: sqlite3.Connection) -> Iterator[None]:
        """Read one consistent state."""
        with db:
            db.execute("BEGIN")
            yield

    @holding
    def transaction(self, synchronous: str = "FULL") -> Iterator[tuple[sqlite3.Connection, int]]:
        """Run a transaction and yield the change's number. After the commit the data is on the disk."""
        db = self.writing()
        db.execute(f"PRAGMA synchronous={synchronous}")
        with db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE meta SET change = change + 1")
            yield db, db.execute("SELECT change FROM meta").fetchone()[0]
            db.execute("COMMIT")

    @holding
    def at_once(self, db: sqlite3.Connection) -> Iterator[None]:
        """Run a transaction that does not wait: it raises at once if another process is writing."""
        with db:
            try:
                db.execute("PRAGMA busy_timeout=0")
                db.execute("BEGIN IMMEDIATE")
            finally:
                db.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
            yield

    @contextmanager
    def border(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            raise StoreError(self.name, reason(exc)) from exc

    def close(self) -> None:
        """Close the file. A database in memory stays, because it would be lost."""
        if self._path is not None:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def _open(self, *, make: bool) -> None:
        if self._file is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._db.close)
            return
        db = connect(self._file, make=make)
        try:
            self.form = SCHEMA.form_of(db)
        except BaseException:
            db.close()
            raise
        close_at_fork(self._held)
        self._db = db
        self._file.opened()

    def _close_lost(self) -> None:
        """Close a file that was deleted or replaced. Raises `StoreError` if the new one must not be opened."""
        if self._file is not None and self._file.is_lost():
            if (rule := self._file.old_log()) is not None:
                raise StoreError(self.name, rule)
            self.close()
            self._file, self.form = SQLiteFile(self._file.path), 0


def reason(exc: Exception) -> str:
    if isinstance(exc, WrongFile):
        return str(exc)
    if type(exc) is sqlite3.DatabaseError:  # not a subclass, which means another fault
        return f"the file is damaged or no store ({exc}): move it away, or put back a copy; nothing was deleted"
    return f"{type(exc).__name__}: {exc}"
