"""Reads the SQLite file of a `SQLiteMonitorSink`, which may still write to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasonblocks.events import Event, RunFinish, RunStart
from reasonblocks.exceptions import RecordError
from reasonblocks.types import RunInfo

from ._files import LINE_BYTES, Progress, os_reason, parsed
from ._logs import Logs, OpenLog, event_in, runs_of_logs
from ._run import Runs

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\0"
WAL_AT, WAL = 18, b"\2"
"""The byte of a file's head that marks WAL mode (SQLite's file format, section 1.3)."""
BUSY_S = 5.0
"""Seconds to wait for a writer's lock, as in the sink."""
NEEDED = {"runs": {"run_id"}, "steps": {"run_id", "step_index", "body"}}
"""The tables and columns without which nothing can be read."""
_RUN_IDS = (
    "SELECT run_id FROM (SELECT run_id, rowid AS at FROM runs) ORDER BY at",
    "SELECT DISTINCT run_id FROM steps WHERE run_id NOT IN (SELECT run_id FROM runs) ORDER BY rowid",
)
_STEPS = f"SELECT CASE WHEN length(body) <= {LINE_BYTES} THEN body END FROM steps WHERE run_id=? ORDER BY step_index"
_INFO = ("agent_name", "task", "model", "framework", "org_id", "project_id", "task_profile")


class SQLiteLog:
    """Reads the tables `runs` and `steps`: the events in their column `body`, and a run's outcome."""

    name = "sqlite-sink"
    title = "SQLite file of SQLiteMonitorSink"

    def opens(self, head: bytes) -> bool:
        return is_sqlite(head)

    def read_file(self, path: str, progress: Progress | None) -> Runs:
        return runs_of_logs(sqlite_logs(path, progress))


def is_sqlite(head: bytes) -> bool:
    """Return True for the first bytes of an SQLite file."""
    return head.startswith(MAGIC)


def sqlite_logs(path: str, progress: Progress | None = None) -> Logs:
    """Yield the runs in the order in which they began, one in memory at a time; never writes to the file."""
    import sqlite3  # not part of every Python

    try:
        with closing(open_for_reading(path)) as db:
            missing = _missing(db)
            run_ids = [] if missing else [run_id for query in _RUN_IDS for (run_id,) in db.execute(query)]
        if missing:
            yield RecordError(path, None, f"is an SQLite file that SQLiteMonitorSink did not write: no {missing}")
        for number, run_id in enumerate(run_ids, 1):
            yield from _log(path, number, run_id)
        if progress:
            progress(os.path.getsize(path))
    except OSError as error:
        yield RecordError(path, None, os_reason(error))
    except sqlite3.Error as error:
        yield RecordError(path, None, f"cannot be read as an SQLite file: {error}")


def open_for_reading(path: str, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open the file for a moment, to read. Raises `OSError` and `sqlite3.Error`.

    Opening a file in WAL mode makes its log, unless it is said not to change. A file without its log has no writer now;
    a writer that opens it changes the log first.
    """
    with open(path, "rb") as file:
        is_wal = file.read(WAL_AT + 1)[WAL_AT:] == WAL
    unchanged = is_wal and not os.path.exists(f"{path}-wal")
    return _connected(path, "immutable=1" if unchanged else "mode=ro", busy_s)


def _connected(path: str, options: str, busy_s: float) -> sqlite3.Connection:
    import sqlite3

    db = sqlite3.connect(f"{Path(path).absolute().as_uri()}?{options}", uri=True, timeout=busy_s)
    try:
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _missing(db: sqlite3.Connection) -> str | None:
    """Return the first table or column that the file lacks."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    for table, needed in NEEDED.items():
        if table not in tables:
            return f"table {table!r}"
        if lacking := sorted(needed - _columns(db, table)):
            return f"column {lacking[0]!r} in the table {table!r}"
    return None


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


def _log(path: str, number: int, run_id: Any) -> Logs:
    """Yield one run, before it the errors of its rows."""
    log = OpenLog(run_id=str(run_id), line=number)
    with closing(open_for_reading(path)) as db:
        db.execute("BEGIN")  # a writer may add steps between two runs, not within one
        row = _row(db, run_id)
        bodies = [body for (body,) in db.execute(_STEPS, (run_id,))]
    for body in [row["body"]] if row.get("body") is not None else []:
        yield from _added(log, path, body)
    for event in _of_columns(log, row):
        log.add(event)
    for body in bodies:
        yield from _added(log, path, body)
    yield log.log(path)


def _row(db: sqlite3.Connection, run_id: Any) -> dict[str, Any]:
    columns = sorted(_columns(db, "runs"))
    quoted = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
    found = db.execute(f"SELECT {quoted} FROM runs WHERE run_id=?", (run_id,)).fetchone()
    return dict(zip(columns, found, strict=True)) if found else {}


def _added(log: OpenLog, path: str, body: object) -> Iterator[RecordError]:
    """Add the event of a column `body`, or yield its error."""
    if not isinstance(body, str):
        yield RecordError(path, log.line, f"run {log.run_id!r} has a row without an event")
        return
    record = parsed(path, (log.line, body.encode("utf-8", "replace")))
    event = record if isinstance(record, RecordError) else event_in(path, record)
    if isinstance(event, RecordError):
        yield event
    elif event.run_id != log.run_id:
        yield RecordError(path, log.line, f"run {log.run_id!r} has a row with an event of {event.run_id!r}")
    else:
        log.add(event)


def _of_columns(log: OpenLog, row: dict[str, Any]) -> Iterator[Event]:
    """Yield the events that the columns of a run's row hold: its finish, and its start if it has no `body`."""
    if log.start is None and isinstance(started := row.get("started"), float):
        info = {name: row[name] for name in _INFO if isinstance(row.get(name), str)}
        yield RunStart(run=RunInfo(run_id=log.run_id, **info), timestamp=started)
    if (finish := finish_of(log.run_id, row.get("outcome"), row.get("finished"))) is not None:
        yield finish


def finish_of(run_id: str, outcome: object, finished: object) -> RunFinish | None:
    """Return the finish in the columns of a run's row; None for a run that has not finished."""
    if not isinstance(outcome, str):
        return None
    return RunFinish(run_id=run_id, outcome=outcome, timestamp=finished if isinstance(finished, float) else 0.0)
