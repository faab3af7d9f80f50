"""Opens transactions in SQLite and PostgreSQL, and turns the drivers' errors into `StorageUnavailable`."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from zlib import crc32

from sqlalchemy import Connection, Engine, Table, create_engine, event, exc, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import QueuePool

from reasonblocks.backends.sqlite_file import SQLiteFile, to_wal
from reasonblocks.concurrency.interrupts import hold, holding
from reasonblocks.util.files import make_folder

from ..errors import StorageUnavailable

T = TypeVar("T")
Synchronous: TypeAlias = Literal["OFF", "NORMAL", "FULL", "EXTRA"]

BUSY_S = 5.0
"""Seconds to wait for another transaction."""
SILENT_MS = 10_000
"""Milliseconds without an answer from PostgreSQL's host after which a connection is closed."""
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
PAGE_BYTES = 8_192
"""The page size of SQLite's file. A step of 2.2 KB takes 2.8 KB, and with pages of half the size 4.0 KB."""
CONNECTIONS = 16
"""Connections that a process keeps open. Under load, it opens as many more."""
UNAVAILABLE = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
"""Errors of the database and not of the program."""
CONFLICTS = ("40001", "40P01")
"""PostgreSQL's codes for a transaction that conflicted with another one and may be repeated."""
ATTEMPTS = 5
NO_TABLE = "42P01"
"""PostgreSQL's code of a database that is not migrated yet, which SQLite reports as an error of the database."""


class NewerDatabase(Exception):
    """The database was written by a newer version of the server."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        super().__init__(
            f"the database has the revision {revision!r}, which a newer version wrote: upgrade reasonblocks-server"
        )


class Database:
    """A pool of connections. Safe to use from any thread.

    Writers of one process wait for a lock of their own, because SQLite waits by sleeping. A deleted file is noticed
    before it is written: SQLite would go on writing to a file that no longer has a name.
    """

    def __init__(self, url: str, synchronous: Synchronous, busy_s: float) -> None:
        self.url = _url(url)
        self.path = self.url.database if self.url.drivername == "sqlite" else None
        self.synchronous = synchronous
        self.busy_s = busy_s
        self._writing = threading.RLock()
        self._file: SQLiteFile | None = None
        """The file of the newest connection."""
        self.engine = self._engine(create=False)

    @property
    def is_sqlite(self) -> bool:
        return self.path is not None

    @holding
    def reading(self) -> Iterator[Connection]:
        """Yield a connection for one or more queries."""
        with _wrapped(), self.engine.connect() as connection:
            self._check_file(connection)
            yield connection

    @holding
    def writing(self) -> Iterator[Connection]:
        """Yield a connection in a transaction, which is committed at the end or rolled back after an error."""
        with _wrapped(), self._alone(), self.engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                self._check_file(connection)
                yield connection

    def repeated(self, write: Callable[[Connection], T]) -> T:
        """Return the result of a transaction. Repeat it if PostgreSQL rolls it back because of a deadlock."""
        for attempt in range(ATTEMPTS):
            try:
                with self.writing() as connection:
                    return write(connection)
            except StorageUnavailable as error:
                cause = getattr(error.__cause__, "orig", None)
                if getattr(cause, "sqlstate", None) not in CONFLICTS or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    @holding
    def lock(self, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
        """Hold a lock over all processes. Yield False if another process holds it."""
        with _wrapped(), self._file_lock(name, wait_s) if self.path else self._row_lock(name, wait_s) as held:
            yield held

    @holding
    def creating(self) -> Iterator[Connection]:
        """Yield a connection in a transaction, for the migrations; a missing SQLite file is created for its user."""
        if self.path is not None:
            make_folder(os.path.dirname(os.path.abspath(self.path)))
        engine = self._engine(create=True)
        try:
            with _wrapped(), engine.connect() as connection:
                connection = connection.execution_options(writes=True)
                with connection.begin():
                    yield connection
        finally:
            engine.dispose()

    def close(self) -> None:
        self.engine.dispose()

    def _engine(self, *, create: bool) -> Engine:
        if self.path is None:
            return self._postgresql()
        engine = create_engine(
            self.url,
            creator=lambda: self._connected(create=create),
            poolclass=QueuePool,
            pool_size=CONNECTIONS,
            max_overflow=CONNECTIONS,
            pool_timeout=self.busy_s,
        )
        event.listen(engine, "begin", _begin)
        return engine

    def _postgresql(self) -> Engine:
        engine = create_engine(
            self.url,
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            max_overflow=CONNECTIONS,
            pool_timeout=self.busy_s,
            connect_args={
                "connect_timeout": max(1, round(self.busy_s)),
                "tcp_user_timeout": SILENT_MS,
                "keepalives_idle": SILENT_MS // 2_000,  # also while it waits for an answer
                "keepalives_interval": SILENT_MS // 2_000,
                "prepare_threshold": None,  # a prepared statement is lost behind PgBouncer
            },
        )

        def limit_waiting(connection: Any, record: object) -> None:
            connection.execute(f"SET lock_timeout = {round(1_000 * self.busy_s)}")
            connection.commit()

        event.listen(engine, "connect", limit_waiting)
        return engine

    def _connected(self, *, create: bool) -> sqlite3.Connection:
        assert self.path is not None
        if self._file is not None and self._file.is_lost() and (rule := self._file.old_log()) is not None:
            raise sqlite3.OperationalError(rule)
        if create:
            SQLiteFile(self.path).create()
        address = f"{Path(os.path.abspath(self.path)).as_uri()}?mode=rw"
        db = sqlite3.connect(address, uri=True, timeout=self.busy_s, check_same_thread=False, isolation_level=None)
        try:
            if create:
                db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # only changes a new file
            to_wal(db, self.busy_s)
            db.execute(f"PRAGMA synchronous={self.synchronous}")
            db.create_function("lower", 1, _lower, deterministic=True)
        except sqlite3.Error:
            db.close()
            raise
        return db

    @holding
    def _alone(self) -> Iterator[None]:
        """Let one thread of this process at a time write to SQLite."""
        if not self.is_sqlite:
            yield
            return
        with hold(self._writing, self.busy_s, StorageUnavailable("database is locked")):
            yield

    def _check_file(self, connection: Connection) -> None:
        """Refuse a connection whose file was deleted or replaced, and close all connections to that file."""
        if self.path is None:
            return
        file: SQLiteFile | None = connection.info.get("file")
        if file is None:
            file = self._file = connection.info["file"] = SQLiteFile(self.path)
            file.opened()
        if file.is_lost():
            self.engine.dispose()
            connection.invalidate()
            raise StorageUnavailable(f"the file was deleted or replaced: {self.path}")

    @holding
    def _row_lock(self, name: str, wait_s: float) -> Iterator[bool]:
        number = crc32(f"reasonblocks:{name}".encode())
        with self.engine.connect() as connection, connection.begin():
            ends = time.monotonic() + wait_s
            while True:
                held = connection.execute(text("SELECT pg_try_advisory_xact_lock(:n)"), {"n": number}).scalar_one()
                if held or time.monotonic() >= ends:
                    break
                time.sleep(0.05)
            yield bool(held)

    @holding
    def _file_lock(self, name: str, wait_s: float) -> Iterator[bool]:
        """Lock a second SQLite file. If the process is killed, the lock is released."""
        assert self.path is not None
        make_folder(os.path.dirname(os.path.abspath(self.path)))
        try:
            path = f"{self.path}.{name}-lock"
            SQLiteFile(path).create()
            db = sqlite3.connect(path, timeout=wait_s, isolation_level=None)
        except sqlite3.Error as error:
            raise StorageUnavailable(str(error)) from error
        try:
            held = _exclusive(db)
            yield held
        finally:
            db.close()


def add_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are new."""
    connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


def add_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row. Return False if its key exists already."""
    insert = _insert(connection, table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return bool(connection.execute(insert, dict(row)).rowcount)


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or replace the row with the same key."""
    keys = [column.name for column in table.primary_key]
    others = {name: value for name, value in row.items() if name not in keys}
    insert = _insert(connection, table).on_conflict_do_update(index_elements=keys, set_=others)
    connection.execute(insert, dict(row))


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def _exclusive(db: sqlite3.Connection) -> bool:
    try:
        db.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise StorageUnavailable(str(error)) from error
        return False
    return True


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _lower(value: Any) -> Any:
    """Convert all letters to lower case. SQLite's own function converts ASCII letters only."""
    return value.lower() if isinstance(value, str) else value


@contextmanager
def _wrapped() -> Iterator[None]:
    try:
        yield
    except UNAVAILABLE as error:
        raise StorageUnavailable(_reason(error)) from error
    except exc.DatabaseError as error:
        if getattr(error.orig, "sqlstate", None) == NO_TABLE:
            raise StorageUnavailable(_reason(error)) from error
        if isinstance(error, (exc.ProgrammingError, exc.IntegrityError, exc.DataError, exc.NotSupportedError)):
            raise
        raise StorageUnavailable(_reason(error)) from error


def _reason(error: exc.SQLAlchemyError) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _url(given: str) -> URL:
    """Return the URL with the driver that this package requires. Raises `ValueError` for an unsupported database."""
    try:
        url = make_url(given)
        driver = DRIVERS[url.get_backend_name()]
    except (exc.ArgumentError, KeyError):
        raise ValueError("database_url: use sqlite:///PATH or postgresql://...") from None  # it may have a password
    if driver == "sqlite" and url.database in (None, "", ":memory:"):
        raise ValueError("database_url: a database in memory is not kept; use sqlite:///PATH")
    return url.set(drivername=driver)
