"""Threads in a SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from reasonblocks.backends.sqlite_file import Schema, SQLiteFile, WrongFile
from reasonblocks.concurrency.interrupts import hold, holding

from ..errors import StoreUnavailable
from ..ports import Reading, Writing
from ..values import Letter
from ._gate import gate
from ._reading import SqlReading
from ._tables import FORM, SQLITE, changes
from ._transaction import Duplicate, Transaction
from ._writing import SqlWriting

BUSY_S = 5.0
"""Seconds to wait for the transaction of another thread or process."""
SCHEMA = Schema(
    form=FORM,
    statements=lambda form: changes(form) if form else SQLITE,
    application=0x52425448,  # "RBTH"
    distribution="reasonblocks-threads",
)
LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 0.002, 0.0003
"""Seconds between two attempts to begin a transaction. One takes about 0.5 ms."""
READERS = 4
"""Connections for reading that are kept open."""
RUNS = 1_000
"""Runs whose waiting letters are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """A connection, and its file."""

    db: sqlite3.Connection
    file: SQLiteFile | None


class SqliteStore:
    """A store in a file, or in memory without a path. Safe to use from any thread, and after a fork.

    The file is created by its first use, readable by this user only, in a folder that exists. What is in memory is
    copied by a fork: each process then has its own.
    """

    inline = True
    """A call is short enough to be made in place, without a thread of its own."""

    def __init__(self, path: str | os.PathLike[str] | None, *, busy_s: float = BUSY_S) -> None:
        self._path = None if path is None else os.path.abspath(path)
        self._busy_s = busy_s
        self._lock = threading.RLock()
        """Held by the one that writes; in memory, also by readers."""
        self._writer: _Link | None = None
        self._readers: list[_Link] = []
        self._lent: set[_Link] = set()
        """Connections that read now; one that is not among them when it comes back is closed."""
        self._file: SQLiteFile | None = None
        """The file of the newest connection."""
        self._watching = threading.Lock()
        """Taken before `_lock`."""
        self._watcher: _Link | None = None
        self._letters: dict[str, tuple[Letter, ...]] = {}
        self._seen = -1
        self._changes = 0
        """Transactions of this process, which SQLite does not count in its own connection."""
        gate.stores.add(self)

    @holding
    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> Iterator[Writing]:
        """Begin a transaction, as the only one. A power cut may undo it without `durable`, but no other failure."""
        with gate.passed(), self._alone():
            db = self._writing()
            with self._errors():
                if self._path is not None:
                    db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            try:
                with self._errors():
                    _begin(db, self._busy_s)
                with self._statements(db) as transaction:
                    yield SqlWriting(transaction)
                transaction.check()
                with self._errors():
                    db.execute("COMMIT")
                    if transaction.erases:  # also from the write-ahead log, if nobody reads an older state now
                        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                self._changes += 1
                try:  # noqa: SIM105 - `suppress` would be called first
                    db.rollback()  # nothing after the COMMIT
                except sqlite3.Error:  # a fork closed the connection
                    pass

    @holding
    def read(self) -> Iterator[Reading]:
        with gate.passed():
            if self._path is None:
                with self._alone(nested=True), self._statements(self._writing()) as transaction:
                    yield SqlReading(transaction)
                return
            link = self._reader()
            try:
                self._lent.add(link)
                with self._errors():
                    link.db.execute("BEGIN")
                with self._statements(link.db) as transaction:
                    yield SqlReading(transaction)
            finally:
                try:
                    link.db.rollback()
                except sqlite3.Error:  # a fork closed the connection
                    pass
                finally:
                    self._take_back(link)

    def waiting(self, run_id: str) -> Sequence[Letter]:
        with gate.passed(), self._watching:
            with self._errors():
                seen = self._version()
            if seen != self._seen:
                self._letters.clear()
                self._seen = seen
            found = self._letters.get(run_id)
            if found is None:
                with self.read() as reading:
                    found = tuple(reading.letters(run_id))
                if len(self._letters) >= RUNS:
                    self._letters.clear()
                self._letters[run_id] = found
            return found

    def close(self) -> None:
        with gate.passed(), self._watching, self._lock:
            self._disconnect()

    def disconnect(self) -> None:
        """Close the connections to a file before a fork. No other thread uses them."""
        if self._path is not None:
            for link in self._lent:  # this thread's own: the others wait
                link.db.close()
            self._disconnect()

    def _disconnect(self) -> None:
        opened = [self._writer, self._watcher, *self._readers]
        self._lent.clear()
        self._writer = self._watcher = None
        self._readers, self._seen = [], -1
        for link in opened:
            if link is not None:
                link.db.close()

    @holding
    def _alone(self, *, nested: bool = False) -> Iterator[None]:
        """Be the only one that writes. A reader in memory may be nested in a transaction of its thread."""
        text = f"{self._name}: another thread wrote for more than {self._busy_s:g} s; try again"
        with hold(self._lock, self._busy_s, StoreUnavailable(text)):
            if not nested and self._writer is not None and self._writer.db.in_transaction:
                raise RuntimeError("a transaction of this thread is open: end it before the next one begins")
            yield

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._open()
            self._writer.db.execute("PRAGMA busy_timeout=0")  # `_begin` waits
            self._writer.db.execute("PRAGMA secure_delete=ON")
        elif self._is_stale(self._writer):
            stale, self._writer = self._writer, None
            raise self._gone(stale)
        return self._writer.db

    def _reader(self) -> _Link:
        try:
            link = self._readers.pop()
        except IndexError:
            with self._alone(nested=True):  # the first use creates the tables
                return self._open()
        if self._is_stale(link):
            raise self._gone(link)
        return link

    def _take_back(self, link: _Link) -> None:
        is_lent = link in self._lent
        self._lent.discard(link)
        if is_lent and len(self._readers) < READERS:
            self._readers.append(link)
        else:
            link.db.close()

    def _version(self) -> int:
        """Return a number that is another one after each transaction of any process."""
        if self._path is None:
            return self._changes
        if self._watcher is None:
            self._watcher, self._seen = self._reader(), -1
        elif self._is_stale(self._watcher):
            stale, self._watcher = self._watcher, None
            raise self._gone(stale)
        found: int = self._watcher.db.execute("PRAGMA data_version").fetchone()[0]
        return found

    @property
    def _name(self) -> str:
        return self._path or "the threads in memory"

    def _is_stale(self, link: _Link) -> bool:
        """Return True if the file was deleted or replaced: SQLite would go on with the one that has no name."""
        return link.file is not None and link.file.is_lost()

    def _gone(self, stale: _Link) -> StoreUnavailable:
        stale.db.close()
        while self._readers:
            with suppress(IndexError):  # another thread takes the last one
                self._readers.pop().db.close()
        return StoreUnavailable(f"{self._path}: the file was deleted or replaced; put it back, then try again")

    def _open(self) -> _Link:
        with self._errors():
            if self._path is None:
                db, file = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), None
            else:
                file = SQLiteFile(self._path)
                if self._file is not None:
                    _check_same(self._file)
                db = file.connect(self._busy_s, create=self._file is None)
            try:
                SCHEMA.migrate(db, self._busy_s)
            except BaseException:
                db.close()
                raise
        if file is not None:
            file.opened()
            self._file = file
        return _Link(db, file)

    @holding
    def _statements(self, db: sqlite3.Connection) -> Iterator[Transaction]:
        """Yield the statements of a transaction, of which none is executed later."""
        transaction = Transaction(db.execute, self._mapped)
        try:
            yield transaction
        finally:
            transaction.is_over = True

    def _mapped(self, error: Exception) -> Exception | None:
        if isinstance(error, UnicodeEncodeError):  # an unpaired surrogate
            return None
        if isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error):
            return Duplicate(str(error))
        if isinstance(error, (sqlite3.Error, OSError)):
            return StoreUnavailable(f"{self._name}: {_reason(error)}")
        return error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"{self._name}: {_reason(error)}") from error


def _begin(db: sqlite3.Connection, seconds: float) -> None:
    """Begin a transaction that writes, after those of others.

    SQLite itself asks the more rarely the longer it has waited: of several processes that write without a pause, one
    would wait for seconds. Here the one that has waited longest asks most often.
    """
    start = time.monotonic()
    pause = LONGEST_PAUSE_S
    while True:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > start + seconds:
                raise
        else:
            return
        time.sleep(pause)
        pause = max(pause * 0.7, SHORTEST_PAUSE_S)


def _check_same(file: SQLiteFile) -> None:
    """Raise `StoreUnavailable` if a file that was opened before is gone, or another one has its old log."""
    if not os.path.exists(file.path):
        raise StoreUnavailable(f"{file.path}: the file was deleted; put it back, then try again")
    if file.is_lost() and (rule := file.old_log()) is not None:
        raise StoreUnavailable(f"{file.path}: {rule}")


_REASONS = {
    "locked": "another process wrote for too long; try again",
    "busy": "another process wrote for too long; try again",
    "full": "the disk is full; free some space",
    "disk I/O": "the disk cannot be read or written; look at the disk and its free space",
    "readonly": "the file cannot be written; look at its permissions and its folder's",
    "unable to open": "the file cannot be opened; its folder must exist and be writable",
    "malformed": "the file is damaged; move it away, or put back a copy",
    "not a database": "the file is no SQLite file; give the path of another file",
    "closed database": "the process forked in a transaction, which was rolled back; try again",
}


def _reason(error: Exception) -> str:
    if isinstance(error, WrongFile):
        return f"{error.rule}; {error.advice}"
    if isinstance(error, FileNotFoundError):
        return "its folder does not exist; create it"
    if isinstance(error, PermissionError):
        return f"{_REASONS['readonly']} ({error.strerror})"
    text = f"{error}"
    found = next((reason for mark, reason in _REASONS.items() if mark in text), None)
    return f"{found} ({text})" if found else text
