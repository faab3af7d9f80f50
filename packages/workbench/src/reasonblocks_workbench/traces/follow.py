"""Follows the log of a sink while it is written: each poll returns the events since the one before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Protocol

from reasonblocks.events import Event, RunStart, StepEvent
from reasonblocks.exceptions import RecordError
from reasonblocks.util.files import identity

from ._files import Record, os_reason, parsed
from ._logs import event_in
from ._sqlite import MAGIC, finish_of, is_sqlite, open_for_reading

if TYPE_CHECKING:
    import sqlite3

SHOWN_AT_FIRST = 200
"""Steps before the first poll that are returned by it, the newest."""
OVERLAP = 200
"""Rows that each poll reads again: those of a run that starts anew under its id may get the numbers of deleted ones."""
OPEN_RUNS = 1_000
"""Open runs whose finish is waited for, the newest."""
TAIL_BYTES = 1_000_000
"""The end of a JSON Lines file that the first poll reads."""
BLOCK_BYTES = 4_000_000
"""The most that one poll reads; the next continues there."""
BUSY_S = 0.5
NO_LOG = "is not the file of a SQLiteMonitorSink or a JsonlSink; `reasonblocks replay` reads other formats"
HEAD_LINES = 8
"""The number of first lines that may hold no event before a file is rejected."""


class Follower(Protocol):
    """A growing log. `poll` returns its new events, in order, and raises `RecordError` for a file that is not a log.

    `unread` is the reason why there was no event yet, "" once there was one.
    """

    unread: str

    def poll(self) -> list[Event]: ...


class Following:
    """Follows a file, which need not exist yet; its first bytes decide the kind of log.

    Another file that takes its place, as when logs are rotated, is followed from then on.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._follower: Follower | None = None
        self._file: tuple[int, int] | None = None

    @property
    def exists(self) -> bool:
        return self._follower is not None

    @property
    def unread(self) -> str:
        """The reason why the file had no event yet; "" once it had one."""
        return self._follower.unread if self._follower else "no such file, or an empty one"

    def poll(self) -> list[Event]:
        """Return the new events; none without a file. Raises `RecordError` for a file that is no log."""
        file = identity(self.path)
        if self._follower is None or file != self._file:
            self._file = file
            self._follower = _follower(self.path)
        return self._follower.poll() if self._follower else []


def _follower(path: str) -> Follower | None:
    try:
        with open(path, "rb") as file:
            head = file.read(len(MAGIC))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(path, None, os_reason(error)) from error
    if is_sqlite(head):
        return SQLiteFollower(path)
    if head.startswith(b"{"):
        return JsonlFollower(path)
    if not head.strip():
        return None
    raise RecordError(path, None, NO_LOG)


class SQLiteFollower:
    """Follows the file of a `SQLiteMonitorSink`. It is opened for each poll, read-only, and never locked for long."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[int, int] = {}
        self._last: int | None = None
        self._open: dict[str, None] = {}
        self._could_open = True
        self.unread = "it has no steps"

    def poll(self) -> list[Event]:
        """Return the steps since the last poll, each run's start before its first step, and the finishes.

        A file that is being made, moved or written may be impossible to open once; the second time is an error.
        """
        import sqlite3  # not part of every Python

        could_open, self._could_open = self._could_open, True
        try:
            with closing(open_for_reading(self.path, BUSY_S)) as db:
                found = [*self._steps(db), *self._finishes(db)]
                self.unread = "" if found else self.unread
                return found
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordError(self.path, None, os_reason(error)) from error
        except sqlite3.Error as error:
            if "no such table" in str(error):
                self._check_tables()
                self.unread = f"{error}"
                return []
            if "locked" in str(error):
                return []
            self._could_open = "unable to open" not in str(error)
            if could_open and not self._could_open:
                return []
            raise RecordError(self.path, None, f"cannot be read as a SQLite file: {error}") from error

    def _check_tables(self) -> None:
        """Raise `RecordError` for a database of another program."""
        import sqlite3

        with suppress(sqlite3.Error, OSError), closing(open_for_reading(self.path, BUSY_S)) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            if tables and not tables & {"runs", "steps"}:
                raise RecordError(self.path, None, NO_LOG)

    def _steps(self, db: sqlite3.Connection) -> Iterator[Event]:
        newest: int = db.execute("SELECT coalesce(max(rowid), 0) FROM steps").fetchone()[0]
        last = newest - SHOWN_AT_FIRST if self._last is None else min(self._last, newest) - OVERLAP
        self._last = newest
        known: dict[int, int] = {}
        for rowid, body in db.execute("SELECT rowid, body FROM steps WHERE rowid > ? ORDER BY rowid", (last,)):
            known[rowid] = hash(body)
            event = _event(body) if self._known.get(rowid) != known[rowid] else None
            if isinstance(event, StepEvent):
                yield from self._start(db, event)
                yield event
        self._known = known

    def _start(self, db: sqlite3.Connection, event: StepEvent) -> Iterator[Event]:
        """Yield the start of a run whose first step this is here, or that starts anew."""
        if event.run_id in self._open:
            return
        row = db.execute("SELECT body FROM runs WHERE run_id=?", (event.run_id,)).fetchone()
        start = _event(row[0]) if row else None
        if isinstance(start, RunStart):
            yield start
        self._open[event.run_id] = None
        while len(self._open) > OPEN_RUNS:
            del self._open[next(iter(self._open))]

    def _finishes(self, db: sqlite3.Connection) -> Iterator[Event]:
        for run_id in list(self._open):
            row = db.execute("SELECT outcome, finished FROM runs WHERE run_id=?", (run_id,)).fetchone()
            finish = finish_of(run_id, *row) if row else None
            if finish is not None:
                del self._open[run_id]
                yield finish


def _event(body: object) -> Event | None:
    """Return the event of a row, None for one that holds none."""
    line = body.encode("utf-8", "replace") if isinstance(body, str) else body
    event = _event_of_line("", line) if isinstance(line, bytes) else None
    return None if isinstance(event, RecordError) else event


def _event_of_line(path: str, line: bytes) -> Event | RecordError | None:
    """Return the event of a line, or why it is none; None for an empty line."""
    if not line.strip():
        return None
    record = parsed(path, (0, line))
    return event_in(path, record) if isinstance(record, Record) else record


class JsonlFollower:
    """Follows the file of a `JsonlSink`. A line counts once it is complete; a file that was cut begins anew."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at: int | None = None
        self._strange = 0
        """The number of lines so far that are JSON and no event, until there was an event."""
        self.unread = "its first line is not complete"

    def poll(self) -> list[Event]:
        """Return the events of the lines since the last poll."""
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if self._at is None:
                    self._at = max(0, size - TAIL_BYTES)
                    file.seek(self._at)
                    self._at += len(file.readline()) if self._at else 0
                if size < self._at:
                    self._at = 0
                file.seek(self._at)
                block = file.read(BLOCK_BYTES)
        except FileNotFoundError:
            self._at = 0
            return []
        except OSError as error:
            raise RecordError(self.path, None, os_reason(error)) from error
        whole = block.rfind(b"\n") + 1 or (len(block) if len(block) == BLOCK_BYTES else 0)
        self._at += whole
        return [event for line in block[:whole].split(b"\n") if (event := self._read(line)) is not None]

    def _read(self, line: bytes) -> Event | None:
        event = _event_of_line(self.path, line)
        if not isinstance(event, RecordError):
            self.unread = "" if event is not None else self.unread
            return event
        if self.unread:
            self.unread = f"its newest line {event.reason}"
            self._strange += line.lstrip().startswith(b"{")
            if self._strange == HEAD_LINES:
                raise RecordError(self.path, None, NO_LOG)
        return None
