"""Follows the log of a sink while it is written: each poll returns the events since the one before."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from ..events import Event, RunFinish, RunStart, StepEvent, event_of
from ..exceptions import EventError, RecordError

SQLITE_MAGIC = b"SQLite format 3\0"
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


class Follower(Protocol):
    """A growing log. `poll` returns its new events, in order, and raises `RecordError` for a file that is not a log."""

    def poll(self) -> list[Event]: ...


class Following:
    """Follows a file, which need not exist yet; the kind of log is detected from its first bytes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._follower: Follower | None = None

    @property
    def exists(self) -> bool:
        return self._follower is not None

    def poll(self) -> list[Event]:
        """Return the new events; none without a file. Raises `RecordError` for a file that is not a log."""
        if self._follower is None:
            self._follower = _follower(self.path)
        return self._follower.poll() if self._follower else []


def _follower(path: str) -> Follower | None:
    try:
        with open(path, "rb") as file:
            head = file.read(len(SQLITE_MAGIC))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(path, None, f"cannot be read: {error.strerror or error}") from error
    if head.startswith(SQLITE_MAGIC):
        return SQLiteFollower(path)
    if head.startswith(b"{"):
        return JsonlFollower(path)
    if not head.strip():
        return None
    raise RecordError(path, None, "is not the file of a SQLiteMonitorSink or a JsonlSink")


class SQLiteFollower:
    """Follows the file of a `SQLiteMonitorSink`. It is opened for each poll, read-only, and never locked for long."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[int, int] = {}
        self._last: int | None = None
        self._open: dict[str, None] = {}
        self._told: set[str] = set()

    def poll(self) -> list[Event]:
        """Return the steps since the last poll, each run's start before its first step, and the finishes."""
        try:
            with closing(sqlite3.connect(_read_only(self.path), uri=True, timeout=BUSY_S)) as db:
                return [*self._steps(db), *self._finishes(db)]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error) or "locked" in str(error) or "unable to open" in str(error):
                return []  # the file is being made, moved or written
            raise RecordError(self.path, None, f"cannot be read: {error}") from error
        except sqlite3.DatabaseError as error:
            raise RecordError(self.path, None, f"cannot be read: {error}") from error

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
            if row and isinstance(row[0], str):
                del self._open[run_id]
                yield RunFinish(run_id=run_id, outcome=row[0], timestamp=row[1] or 0.0)


def _read_only(path: str) -> str:
    return f"{Path(path).absolute().as_uri()}?mode=ro"


def _event(body: object) -> Event | None:
    """Return the event of a row, None for a row that holds none."""
    with suppress(ValueError, RecursionError, EventError):
        value = json.loads(body) if isinstance(body, str) else None
        return event_of(value) if isinstance(value, dict) else None
    return None


class JsonlFollower:
    """Follows the file of a `JsonlSink`. A line counts once it is complete; a file that was cut begins anew."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at: int | None = None

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
            raise RecordError(self.path, None, f"cannot be read: {error.strerror or error}") from error
        whole = block.rfind(b"\n") + 1 or (len(block) if len(block) == BLOCK_BYTES else 0)
        self._at += whole
        lines = block[:whole].decode("utf-8", "replace").splitlines()
        return [event for line in lines if (event := _event(line)) is not None]
