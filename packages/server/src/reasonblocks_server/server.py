"""Holds the parts of a running server, for its routes."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from ._counting import Counting
from ._evaluations import NoteTakers, OrgEvaluations
from ._shares import SharedPool
from ._summarising import Summarising
from .auth import Auth
from .errors import StorageUnavailable
from .findings import Findings
from .live import Live
from .patterns import Patterns
from .settings import Settings
from .storage import NewerDatabase, Storage
from .threads import OrgThreads
from .values import Principal

logger = logging.getLogger("reasonblocks.server")

MIGRATE_AGAIN_S = 0.5
"""Seconds between attempts to migrate a database that does not answer."""
FIRST_SWEEP_S, SWEEP_S = 300.0, 3_600.0
"""Seconds from the start to the first deletion of old runs, and between deletions."""

SUMMARISED_S, MOST_SUMMARISED = 7 * 86_400.0, 1_000
"""A sweep summarises at most so many runs whose newest event is at most so many seconds old."""


class Migrating:
    """Migrates the database at the start. While the database does not answer, a thread tries again.

    Raises `NewerDatabase` if the database belongs to a newer version. `done` is set when it is migrated.
    """

    def __init__(self, storage: Storage) -> None:
        self.done = threading.Event()
        self._storage, self._ended = storage, threading.Event()
        self._thread: threading.Thread | None = None
        if not self._is_done():
            logger.error("the database does not answer: until then, only keys of REASONBLOCKS_KEYS can evaluate")
            self._thread = threading.Thread(target=self._repeat, name="reasonblocks-migrate", daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _is_done(self) -> bool:
        try:
            self._storage.migrate()
        except StorageUnavailable:
            return False
        self.done.set()
        return True

    def _repeat(self) -> None:
        try:
            while not self._ended.wait(MIGRATE_AGAIN_S) and not self._is_done():
                pass
        except NewerDatabase as error:
            logger.critical("%s; until then, every use of the database fails", error)


class Sweeping:
    """Deletes old runs, expired logins and similar rows every hour, in one of all workers.

    It also summarises the runs that an ended worker has left. The first deletion is some minutes after the start, so
    that repeated restarts do not delete each time.
    """

    def __init__(self, storage: Storage, *, first_s: float = FIRST_SWEEP_S, every_s: float = SWEEP_S) -> None:
        self._storage, self._first_s, self._every_s = storage, first_s, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="reasonblocks-sweep", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _repeat(self) -> None:
        pause = self._first_s
        while not self._ended.wait(pause):
            pause = self._every_s
            try:
                with self._storage.lock("sweep") as held:
                    if held:
                        logger.info("deleted %d old runs", self._storage.orgs.sweep(time.time()))
                        self._summarise()
            except StorageUnavailable as error:
                logger.warning("cannot delete old runs now: %s", error)
            except Exception:  # such as tables that are not made yet: the thread has to try again
                logger.exception("cannot delete old runs now")

    def _summarise(self) -> None:
        for org_id, run_id in self._storage.runs.unsummarised(since=time.time() - SUMMARISED_S, limit=MOST_SUMMARISED):
            if not self._ended.is_set():
                self._storage.runs.summarise(org_id, run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The parts of a worker. All are safe to use from any thread.

    `pool` runs evaluations of many steps, separately from the threads that wait for the database. `threads` is None if
    no database of threads is set.
    """

    settings: Settings
    storage: Storage
    auth: Auth
    evaluations: OrgEvaluations
    takers: NoteTakers
    patterns: Patterns
    findings: Findings
    live: Live
    counting: Counting
    summarising: Summarising
    pool: SharedPool
    migrating: Migrating
    sweeping: Sweeping
    threads: OrgThreads | None

    def audit(self, caller: Principal, action: str, target: str) -> None:
        """Record a change that a caller made. Raises `StorageUnavailable`."""
        self.storage.audit.add(caller.org_id, caller.key_id, action, target, time.time())


async def _of(connection: HTTPConnection) -> Server:
    server: Server = connection.app.state.server
    return server


Used = Annotated[Server, Depends(_of)]
"""The server, as a parameter of a route."""
