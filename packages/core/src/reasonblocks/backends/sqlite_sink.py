"""Writes runs and steps to a SQLite file, for offline analysis."""

from __future__ import annotations

import os
import sqlite3

from ..concurrency.forks import close_at_fork, no_fork
from ..events import Event, RunStart, StepEvent
from ..exceptions import ConfigError
from ..util.json import compact
from ..util.text import whole
from .sqlite_file import Schema, SQLiteFile, WrongFile

BUSY_S = 5.0
"""Seconds to wait for another process's transaction."""
TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  run_id TEXT PRIMARY KEY, started REAL, finished REAL, outcome TEXT, agent_name TEXT, task TEXT, model TEXT,
  framework TEXT, org_id TEXT, project_id TEXT, task_profile TEXT, body TEXT
);
CREATE TABLE IF NOT EXISTS steps (
  run_id TEXT, step_index INTEGER, timestamp REAL, fsm_state TEXT, difficulty REAL, composite REAL,
  failure_type TEXT, gate_decision TEXT, model TEXT, tokens INTEGER, body TEXT,
  PRIMARY KEY (run_id, step_index)
);
CREATE TABLE IF NOT EXISTS scores (
  run_id TEXT, step_index INTEGER, monitor TEXT, score REAL, fired INTEGER,
  PRIMARY KEY (run_id, step_index, monitor)
);
"""
SCHEMA = Schema(form=1, statements=lambda form: TABLES.split(";"), application=0)
_AGAIN = "run_id=:run_id AND EXISTS (SELECT 1 FROM runs WHERE run_id=:run_id AND started!=:started)"
"""Matches the rows of an earlier run of this id, which started at another time."""
_NEW_RUN = (
    f"DELETE FROM steps WHERE {_AGAIN}",
    f"DELETE FROM scores WHERE {_AGAIN}",
    f"UPDATE runs SET finished=NULL, outcome=NULL WHERE {_AGAIN}",
)
_RUN = (
    "INSERT INTO runs (run_id, started, agent_name, task, model, framework, org_id, project_id, task_profile, body) "
    "VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (run_id) DO UPDATE SET started=excluded.started, "
    "agent_name=excluded.agent_name, task=excluded.task, model=excluded.model, framework=excluded.framework, "
    "org_id=excluded.org_id, project_id=excluded.project_id, task_profile=excluded.task_profile, body=excluded.body"
)
_STEP = (
    "INSERT INTO steps VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (run_id, step_index) DO UPDATE SET "
    "timestamp=excluded.timestamp, fsm_state=excluded.fsm_state, difficulty=excluded.difficulty, "
    "composite=excluded.composite, failure_type=excluded.failure_type, gate_decision=excluded.gate_decision, "
    "model=excluded.model, tokens=excluded.tokens, body=excluded.body "
    "WHERE steps.gate_decision='final' AND excluded.gate_decision IS NOT 'final'"
)
"""A call takes the place of the final step of a run that continued after its end; any other repeated step is ignored.
"""
_SCORE = "INSERT OR IGNORE INTO scores VALUES (?,?,?,?,?)"
_FINISH = (
    "INSERT INTO runs (run_id, finished, outcome) VALUES (?,?,?) ON CONFLICT (run_id) DO UPDATE SET "
    "finished=excluded.finished, outcome=excluded.outcome WHERE runs.outcome IS NULL OR excluded.outcome != 'success'"
)


class SQLiteMonitorSink:
    """Fills the tables `runs`, `steps` and `scores` (each monitor's score of each step); `body` is the event as JSON.

    Upserts by run and step: a repeated step changes nothing, an explicit failure replaces success, and a call replaces
    the final step of a run that continued after its end. A run that starts again under its id replaces the earlier one.
    The file is opened with the first event, and created for this user only; one that was deleted meanwhile is created
    again, and one that was replaced is left for the new one. Used by one thread at a time; several processes may write
    one file, forked ones too: a fork closes it, and each process opens it again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if self.path == ":memory:":
            raise ConfigError("path", self.path, "a database in memory is lost with the process: give a file's path")
        self._file = SQLiteFile(self.path)
        self._db: sqlite3.Connection | None = None

    def emit(self, event: Event) -> None:
        with no_fork, self._opened() as db:  # a transaction: an event is there whole or not at all
            db.execute("BEGIN IMMEDIATE")
            if isinstance(event, RunStart):
                _start(db, event)
            elif isinstance(event, StepEvent):
                db.execute(_STEP, _clean(_step_row(event)))
                db.executemany(_SCORE, _score_rows(event))
            else:
                db.execute(_FINISH, _clean((event.run_id, event.timestamp, event.outcome)))
            db.execute("COMMIT")

    def close(self) -> None:
        with no_fork:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def _opened(self) -> sqlite3.Connection:
        if self._file.is_lost():
            if (rule := self._file.old_log()) is not None:
                raise sqlite3.DatabaseError(f"{self.path}: {rule}")
            self.close()
        if self._db is None:
            db = self._file.connect(BUSY_S, create=True)
            try:
                SCHEMA.migrate(db, BUSY_S)
            except WrongFile as exc:
                db.close()
                raise sqlite3.DatabaseError(f"{self.path}: {exc}") from exc
            except BaseException:
                db.close()
                raise
            close_at_fork(self)
            self._file.opened()
            self._db = db
        return self._db


def _start(db: sqlite3.Connection, event: RunStart) -> None:
    row = _clean(_run_row(event))
    for statement in _NEW_RUN:
        db.execute(statement, {"run_id": row[0], "started": row[1]})
    db.execute(_RUN, row)


def _clean(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(whole(value) if isinstance(value, str) else value for value in row)


def _run_row(event: RunStart) -> tuple[object, ...]:
    run = event.run
    columns = (run.agent_name, run.task, run.model, run.framework, run.org_id, run.project_id, run.task_profile)
    return (run.run_id, event.timestamp, *columns, compact(event.as_dict()))


def _step_row(event: StepEvent) -> tuple[object, ...]:
    metadata = event.metadata
    return (
        event.run_id,
        event.step_index,
        event.timestamp,
        metadata.get("fsm_state"),
        metadata.get("difficulty"),
        event.composite,
        event.failure_type,
        metadata.get("gate_decision"),
        event.step_model,
        event.tokens,
        compact(event.as_dict()),
    )


def _score_rows(event: StepEvent) -> list[tuple[object, ...]]:
    fired = event.monitors_fired
    return [(event.run_id, event.step_index, name, score, name in fired) for name, score in event.scores.items()]
