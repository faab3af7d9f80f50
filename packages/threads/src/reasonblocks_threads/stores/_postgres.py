"""Threads in PostgreSQL, which several hosts share. It needs psycopg."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from reasonblocks.concurrency.forks import on_fork
from reasonblocks.concurrency.interrupts import Condition, holding
from reasonblocks.exceptions import ConfigError

from ..errors import StoreUnavailable
from ..ports import Reading, Writing
from ..values import Letter
from ._gate import gate
from ._reading import SqlReading
from ._tables import FORM, POSTGRES, SCHEMA, changes
from ._transaction import Cursor, Duplicate, Transaction
from ._writing import SqlWriting

BUSY_S = 5.0
"""Seconds to wait for a connection, and for a lock of another transaction."""
STATEMENT_S = 30.0
"""Seconds after which PostgreSQL ends a statement, and a transaction whose process says nothing."""
SILENT_MS = 10_000
"""Milliseconds without an answer from PostgreSQL's host after which a connection is closed."""
CONNECTIONS = 16
"""The most connections of a process."""
POLL_S = 0.2
"""Seconds for which waiting letters are remembered."""
RUNS = 1_000
"""Runs whose waiting letters are remembered."""
POSITIONS, TABLES = 7_266_830_001, 7_266_830_002
"""Advisory locks: of appending to the log, and of creating the tables."""

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """A store in PostgreSQL. Safe to use from any thread, and after a fork.

    The tables are created by the first use, in a schema of their own.
    """

    inline = False
    """A call may take as long as the network does."""

    def __init__(self, url: str, *, busy_s: float = BUSY_S, poll_s: float = POLL_S) -> None:
        self._url, self._busy_s, self._poll_s = url, busy_s, poll_s
        try:
            self._name = f"PostgreSQL database {conninfo_to_dict(url).get('dbname') or 'of this user'!r}"
        except psycopg.Error:
            rule = "it is no valid PostgreSQL URL"
            raise ConfigError("database", "postgresql://...", rule) from None  # the cause may have the password
        self._idle: list[Connection] = []
        self._lent: set[Connection] = set()
        """Connections in use; one that is not among them when it comes back is closed."""
        self._letters: dict[str, tuple[float, int, tuple[Letter, ...]]] = {}
        self._changes = 0
        self._free_all()
        on_fork(self._free_all)
        gate.stores.add(self)

    def _free_all(self) -> None:
        self._freed = Condition()
        self._in_use: set[object] = set()
        """One object for each transaction."""

    @holding
    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> Iterator[Writing]:
        """Begin a transaction that no other one changes these threads in.

        Without `durable`, a power cut of PostgreSQL's host may undo it, but no other failure.
        """
        begin = "BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit = off"
        with gate.passed(), self._begun(begin) as transaction:
            if thread_ids:
                transaction.all("SELECT id FROM thread WHERE id = ANY(?) ORDER BY id FOR UPDATE", (list(thread_ids),))
            yield SqlWriting(transaction)
        self._changes += 1

    @holding
    def read(self) -> Iterator[Reading]:
        with gate.passed(), self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as transaction:
            yield SqlReading(transaction)

    def waiting(self, run_id: str) -> Sequence[Letter]:
        """Return the waiting letters of a run; another process's change is seen after `poll_s` seconds at most."""
        now, changes = time.monotonic(), self._changes
        known = self._letters.get(run_id)
        if known is not None and known[1] == changes and now - known[0] < self._poll_s:
            return known[2]
        with self.read() as reading:
            found = tuple(reading.letters(run_id))
        if len(self._letters) >= RUNS:
            self._letters.clear()
        self._letters[run_id] = (now, changes, found)
        return found

    def close(self) -> None:
        with gate.passed():
            self._lent.clear()
            self._close_idle()

    def disconnect(self) -> None:
        """Close the connections before a fork. No other thread uses one."""
        for connection in self._lent:  # this thread's own
            connection.close()
        self._lent.clear()
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @holding
    def _begun(self, begin: str) -> Iterator[Transaction]:
        with self._one_of_most():
            connection = self._connection(begin)
            try:
                self._lent.add(connection)
                with self._transaction(connection) as transaction:
                    yield transaction
            finally:
                self._take_back(connection)

    @holding
    def _one_of_most(self) -> Iterator[None]:
        """Wait until less than the most connections are in use."""
        use = object()
        try:
            with self._freed:
                if not self._freed.wait_for(lambda: len(self._in_use) < CONNECTIONS, self._busy_s):
                    raise StoreUnavailable(f"{self._name}: all {CONNECTIONS} connections are in use; try again")
                self._in_use.add(use)
            yield
        finally:
            self._in_use.discard(use)
            with self._freed:
                self._freed.notify_all()

    @holding
    def _transaction(self, connection: Connection) -> Iterator[Transaction]:
        def execute(sql: str, values: Sequence[Any]) -> Cursor:
            return connection.execute(_translated(sql), values)

        lock = f"SELECT pg_advisory_xact_lock({POSITIONS})"
        transaction = Transaction(execute, self._mapped, skip_locked=" FOR UPDATE SKIP LOCKED", positions=lock)
        try:
            yield transaction
            transaction.check()
            with self._errors():
                connection.execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            transaction.is_over = True

    def _connection(self, begin: str) -> Connection:
        """Return a connection in a transaction. One that was lost since its last use is replaced."""
        settings = f"{begin}; {self._settings()}".encode()
        with suppress(IndexError):
            kept = self._idle.pop()
            try:
                kept.execute(settings)
            except psycopg.OperationalError:
                kept.close()
            else:
                return kept
        with self._errors():
            connection = self._connected()
            try:
                connection.execute(settings)
            except BaseException:
                connection.close()
                raise
            return connection

    def _settings(self) -> str:
        """Return what a transaction sets for itself, because behind a pooler a connection's settings are lost."""
        return (
            f"SET LOCAL search_path = {SCHEMA}, pg_temp; SET LOCAL lock_timeout = {self._busy_s * 1000:.0f}; "
            f"SET LOCAL statement_timeout = {STATEMENT_S * 1000:.0f}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {STATEMENT_S * 1000:.0f}"
        )

    def _connected(self) -> Connection:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,  # a prepared statement is lost behind a pooler
            connect_timeout=max(2, round(self._busy_s)),
            tcp_user_timeout=SILENT_MS,
            keepalives_idle=SILENT_MS // 2_000,
            keepalives_interval=SILENT_MS // 2_000,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        """Check the form of the tables; create missing ones and change older ones, one process at a time."""
        if self._missing(connection):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (TABLES,))
                statements = self._missing(connection)
                connection.execute(f"SET LOCAL search_path = {SCHEMA}".encode())
                for statement in statements:
                    connection.execute(statement.encode())
        form = self._form(connection)
        if form is None or form > FORM:
            raise StoreUnavailable(
                f"{self._name}: the form {form} of its tables is newer than this library's {FORM}; "
                "upgrade reasonblocks-threads"
            )

    def _missing(self, connection: Connection) -> Sequence[str]:
        """Return the statements that lead to the tables of the present form; none if a newer version wrote them."""
        if not self._has_tables(connection):
            return POSTGRES
        form = self._form(connection)
        if form is None or form >= FORM:
            return ()
        return (*changes(form), f"UPDATE form SET number = {FORM}")

    def _form(self, connection: Connection) -> int | None:
        found = connection.execute(f"SELECT number FROM {SCHEMA}.form".encode()).fetchone()
        return None if found is None else found[0]

    def _has_tables(self, connection: Connection) -> bool:
        sql = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = 'form'"  # `to_regclass` is cached
        return connection.execute(sql, (SCHEMA,)).fetchone() == (1,)

    def _take_back(self, connection: Connection) -> None:
        is_lent = connection in self._lent
        self._lent.discard(connection)
        is_idle = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        if is_idle and is_lent:
            self._idle.append(connection)
        else:
            connection.close()

    def _mapped(self, error: Exception) -> Exception | None:
        if isinstance(error, UnicodeEncodeError) or (isinstance(error, psycopg.DataError) and "NUL" in str(error)):
            return None
        if isinstance(error, psycopg.errors.UniqueViolation):
            return Duplicate(error.diag.constraint_name or str(error))
        return self._unavailable(error) if isinstance(error, psycopg.Error) else error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: psycopg.Error) -> StoreUnavailable:
        lines = str(error).strip().splitlines()
        text = lines[0] if lines else type(error).__name__
        return StoreUnavailable(f"{self._name}: {_REASONS.get(error.sqlstate or '', 'it does not answer')} ({text})")


_REASONS = {
    "55P03": "another transaction held a lock for too long; try again",
    "57014": "a statement took too long; try again",
    "40P01": "two transactions waited for each other, and this one was undone; try again",
    "40001": "another transaction came first; try again",
    "53100": "its disk is full; free some space",
    "53300": "it has too many connections; raise max_connections, or try again",
    "42501": "the user lacks a right; it must be allowed to create a schema, or own this one",
    "P0001": "the log is damaged; run the doctor",
}


@cache
def _translated(sql: str) -> bytes:
    """Return the statement with psycopg's marks of parameters."""
    return sql.replace("?", "%s").encode()
