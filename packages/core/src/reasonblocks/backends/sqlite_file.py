"""Creates and opens SQLite files for this user only, brings them to their newest form, and notices a lost one."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..util.files import create_private, identity, regular_or_missing

__all__ = ["SQLiteFile", "Schema", "WrongFile", "to_wal"]

PAUSE_S = 0.01
"""Seconds between two attempts to switch a file to its log."""


class SQLiteFile:
    """The path of a SQLite file, and the file that was last opened there.

    SQLite itself goes on with a file that was deleted or replaced: what it writes to a file without a name is lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._was_opened = False
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None

    def connect(self, busy_s: float, *, mode: str = "rw", create: bool = False) -> sqlite3.Connection:
        """Return a connection in autocommit mode for any thread. Raises `OSError` for a pipe, which would block.

        `mode` is SQLite's, with further parameters of its URI.
        """
        regular_or_missing(self.path, f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal")
        if create:
            self.create()
        uri = f"{Path(os.path.abspath(self.path)).as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False)

    def create(self) -> None:
        """Create the file if it is missing, for this user only; SQLite gives the files beside it the same mode.

        What a deleted file left beside it is removed first: SQLite would read the index of the old log.
        """
        real = os.path.realpath(self.path)
        left = {name: identity(name) for name in (f"{real}-wal", f"{real}-shm")}
        if not os.path.exists(real):
            for name, found in left.items():
                if found is not None and identity(name) == found:  # not that of a process which was faster
                    with suppress(OSError):
                        os.unlink(name)
            create_private(real)

    def opened(self) -> None:
        """Remember the file with its log. Call it after opening the file and after switching it to its log."""
        self._was_opened = True
        self._file, self._log = identity(self.path), identity(self._log_path())

    def is_lost(self) -> bool:
        """Return True if the file that was opened has been deleted or replaced."""
        return self._was_opened and (self._file is None or identity(self.path) != self._file)

    def old_log(self) -> str | None:
        """Return why the file that took the place of a lost one must not be opened; None if it may be.

        SQLite would write the log of the old file into the new one.
        """
        log = self._log_path()
        if not os.path.exists(self.path) or self._log is None or identity(log) != self._log or not os.path.getsize(log):
            return None
        return (
            f"the file was replaced, but the log of the one before is still beside it: delete {log} and "
            f"{log[:-3]}shm, then try again"
        )

    def _log_path(self) -> str:
        return f"{os.path.realpath(self.path)}-wal"


class WrongFile(sqlite3.DatabaseError):
    """The file belongs to another program or to a newer version of ours. `rule` and `advice`."""

    def __init__(self, rule: str, advice: str) -> None:
        self.rule, self.advice = rule, advice
        super().__init__(f"{rule}: {advice}")


_STATE = (
    "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), "
    "(SELECT count(*) FROM sqlite_master)"
)
"""One statement, so that a file which another process is just creating is either empty or complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The newest form of the tables in a kind of file. SQLite's `user_version` of a file is its form.

    `statements` returns what changes an older form into the newest one; form 0 is an empty file.
    """

    form: int
    statements: Callable[[int], Iterable[str]]
    application: int
    """SQLite's `application_id` of these files; with 0, another program's file may take the tables as well."""
    distribution: str = "reasonblocks-core"
    has_log: bool = True

    def form_of(self, db: sqlite3.Connection) -> int:
        """Return the form of a file. Raises `WrongFile`."""
        form, application, tables = db.execute(_STATE).fetchone()
        is_empty = (form, application, tables) == (0, 0, 0)
        if self.application and not is_empty and application != self.application:
            raise WrongFile("this SQLite file belongs to another program", "give the path of another file")
        if form > self.form:
            rule = f"its form {form} is newer than this library's {self.form}"
            raise WrongFile(rule, f"upgrade {self.distribution}")
        return int(form)

    def migrate(self, db: sqlite3.Connection, busy_s: float) -> None:
        """Change an older form into the newest one, in one transaction. Raises `WrongFile`."""
        if self.form_of(db) == self.form:
            return
        if self.has_log:
            to_wal(db, busy_s)
        with db:  # rolls back after an error
            db.execute("BEGIN IMMEDIATE")
            if (form := self.form_of(db)) != self.form:  # not changed by another process meanwhile
                for statement in self.statements(form):
                    db.execute(statement)
                if self.application:
                    db.execute(f"PRAGMA application_id={self.application}")
                db.execute(f"PRAGMA user_version={self.form}")
            db.execute("COMMIT")


def to_wal(db: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to its write-ahead log. Raises `sqlite3.OperationalError` if it stays locked for so long.

    SQLite itself does not wait here: it fails at once if two connections switch the same file.
    """
    ends = time.monotonic() + seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > ends:
                raise
            time.sleep(PAUSE_S)
        else:
            return
