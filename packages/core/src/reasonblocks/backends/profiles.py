"""Keeps agents' profiles: the summaries of each agent's newest finished runs, in memory or in a SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from ..concurrency.forks import no_fork, on_fork
from ..concurrency.interrupts import holding
from ..exceptions import Unavailable
from ..monitors.profile import MAX_RUNS, Summary, summary_in
from ..util.files import make_folder, open_private
from ..util.json import compact
from .sqlite_file import Schema, SQLiteFile

K = TypeVar("K")
V = TypeVar("V")

Agent = tuple[str, str, str]
"""The key of a profile: org, agent name, task profile."""
MAX_IN_MEMORY = 100
"""Agents that are kept in memory: those that finished a run last. Each takes up to 120 KB."""
BUSY_S = 5.0
"""Seconds to wait for other processes' transactions, which take some 10 ms each. A run that finishes waits for its
deadline at most; the writing goes on behind it."""
MAX_IN_FILE = 1_000
"""Agents of one file; beyond, the one whose newest run is the oldest is dropped."""
TABLE = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, agent_name TEXT NOT NULL, task_profile TEXT NOT NULL,
  run TEXT NOT NULL, summary TEXT NOT NULL, UNIQUE (org_id, agent_name, task_profile, run)
)
"""
SCHEMA = Schema(form=1, statements=lambda form: (TABLE,), application=0x5242414C, has_log=False)  # "RBAL"
_OF_AGENT = "org_id = ? AND agent_name = ? AND task_profile = ?"
_READ = f"SELECT summary FROM runs WHERE {_OF_AGENT} AND run != ? ORDER BY id DESC LIMIT {MAX_RUNS}"
_ADD = "INSERT OR REPLACE INTO runs (org_id, agent_name, task_profile, run, summary) VALUES (?, ?, ?, ?, ?)"
_DROP_RUNS = (
    f"DELETE FROM runs WHERE {_OF_AGENT} AND id <= "
    f"(SELECT id FROM runs WHERE {_OF_AGENT} ORDER BY id DESC LIMIT 1 OFFSET {MAX_RUNS})"
)
_AGENTS = "SELECT org_id, agent_name, task_profile, count(*) FROM runs GROUP BY 1, 2, 3 ORDER BY max(id) DESC"


class Row(NamedTuple):
    """An agent of a file, and the number of its runs."""

    org_id: str
    agent_name: str
    task_profile: str
    runs: int


class ProfileMemory:
    """The profiles of one client's agents. Safe to use from any thread."""

    inline = True
    keeps_replayed = False

    def __init__(self) -> None:
        self._agents: dict[Agent, dict[str, Summary]] = {}
        self._new_lock()
        on_fork(self._new_lock)

    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]:
        """Return the agent's summaries, the newest last, without that of the run `but`."""
        with self._lock:
            return tuple([summary for run, summary in self._agents.get(agent, {}).items() if run != but])

    def add(self, agent: Agent, run: str, summary: Summary) -> None:
        """Add a run, or replace its summary; drop the oldest run and the oldest agent beyond the limits."""
        with self._lock:
            runs = self._agents.pop(agent, {})
            self._agents[agent] = runs
            runs.pop(run, None)
            runs[run] = summary
            _bound(runs, MAX_RUNS)
            _bound(self._agents, MAX_IN_MEMORY)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()


def _bound(kept: dict[K, V], most: int) -> None:
    """Drop the oldest item beyond `most`."""
    if len(kept) > most:
        del kept[next(iter(kept))]


class ProfileFile:
    """The profiles of a SQLite file: a row for each run, so that a process that adds a run never overwrites another's.

    The file is opened for each call and created with the first run, for this user only. An agent without a name has no
    profile here, because any number of programs would share it. Each method raises `Unavailable` for a file that cannot
    be used.
    """

    inline = False
    keeps_replayed = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]:
        """Return the agent's summaries, the newest last, without that of the run `but`; damaged ones are skipped."""
        self._check_named(agent)
        with self._reading() as db:
            rows = db.execute(_READ, (*agent, but)).fetchall() if db else []
        found = [summary_in(_loaded(text)) for (text,) in reversed(rows)]
        return tuple([summary for summary in found if summary is not None])

    def add(self, agent: Agent, run: str, summary: Summary) -> None:
        """Add a run, or replace its summary; drop the oldest runs and agents beyond the limits."""
        self._check_named(agent)
        with self._writing() as db:
            db.execute(_ADD, (*agent, run, compact(dict(summary))))
            db.execute(_DROP_RUNS, (*agent, *agent))
            for row in db.execute(f"{_AGENTS} LIMIT -1 OFFSET {MAX_IN_FILE}").fetchall():
                db.execute(f"DELETE FROM runs WHERE {_OF_AGENT}", row[:3])

    def agents(self) -> list[Row]:
        """Return the agents, the one with the newest run first."""
        with self._reading() as db:
            return [Row(*row) for row in db.execute(_AGENTS)] if db else []

    def drop(self, agent: Agent) -> None:
        """Drop all runs of an agent."""
        with self._writing() as db:
            db.execute(f"DELETE FROM runs WHERE {_OF_AGENT}", agent)

    def copy_to(self, path: str | os.PathLike[str], agents: list[Agent]) -> None:
        """Write a new file with these agents. Raises `FileExistsError`."""
        with open(path, "xb", opener=open_private):
            pass
        with self._reading() as db:
            rows = [
                row
                for agent in agents
                for row in (db.execute(f"SELECT * FROM runs WHERE {_OF_AGENT} ORDER BY id", agent) if db else ())
            ]
        with ProfileFile(path)._writing() as copy:
            copy.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _check_named(self, agent: Agent) -> None:
        if not agent[1]:
            raise Unavailable("the profile", "runs without an agent_name have none in a file: give an agent_name")

    @holding
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection, None without a file."""
        with self._wrapped():
            if not os.path.exists(self.path):
                yield None
                return
            with no_fork:
                db = SQLiteFile(self.path).connect(BUSY_S)
                try:
                    yield db if SCHEMA.form_of(db) else None
                finally:
                    db.close()

    @holding
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction that no other process interrupts."""
        with self._wrapped():
            make_folder(os.path.dirname(os.path.abspath(self.path)))
            with no_fork:
                db = SQLiteFile(self.path).connect(BUSY_S, create=True)
                try:
                    SCHEMA.migrate(db, BUSY_S)
                    db.execute("BEGIN IMMEDIATE")
                    yield db
                    db.execute("COMMIT")
                finally:
                    db.close()  # rolls back what is not committed

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            raise Unavailable("the profile", f"{self.path!r} cannot be used ({exc})") from exc


def _loaded(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
