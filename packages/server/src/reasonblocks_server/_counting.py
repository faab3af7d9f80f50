"""Counts the effects of patterns in finished runs, once for each run, in a background thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from reasonblocks.backends.pattern_stats import Counts, PatternStats
from reasonblocks.concurrency.interrupts import Condition
from reasonblocks.events import Event, event_of
from reasonblocks.exceptions import EventError, ReasonBlocksError

from .errors import StorageUnavailable
from .storage import Storage

logger = logging.getLogger("reasonblocks.server")

MAX_WAITING = 10_000
"""The most finished runs that wait to be counted. Beyond this, the oldest is dropped."""
RETRY_SECONDS = 5.0
ATTEMPTS = 12
"""Attempts to count a run while the database or the pattern store is not available: one minute in all."""
STEPS = 500
"""Steps of one query."""
READ = ("event", "run_id", "step_index", "timestamp", "monitors_fired", "composite", "metadata")
"""The fields of a step that counting reads. The texts of a long run would not fit into memory."""


class Counting:
    """Reads the events of each finished run, and adds to the counts of its org's patterns.

    A run that finishes again is not counted again. Runs that still wait when the process ends are not counted.
    """

    def __init__(self, storage: Storage, counts: Callable[[str], Counts]) -> None:
        """`counts` returns the counts of an org's patterns. They ignore the ids of other patterns."""
        self._storage, self._counts = storage, counts
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MAX_WAITING)
        self._lock = Condition()
        self._is_busy = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def finished(self, org_id: str, run_ids: Iterable[str]) -> None:
        """Queue these runs to be counted."""
        runs = [(org_id, run_id) for run_id in run_ids]
        if not runs:
            return
        with self._lock:
            if self._ended.is_set():
                return
            self._waiting.extend(runs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reasonblocks-counting", daemon=True)
                self._thread.start()
            self._lock.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until all finished runs are counted; return False if that takes longer."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._waiting and not self._is_busy, seconds)

    def close(self) -> None:
        """End the thread after the run that it counts."""
        self._ended.set()
        with self._lock:
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._is_busy = False
                self._lock.notify_all()
                self._lock.wait_for(lambda: self._waiting or self._ended.is_set())
                if self._ended.is_set():
                    return
                org_id, run_id = self._waiting.popleft()
                self._is_busy = True
            self._try(org_id, run_id)

    def _try(self, org_id: str, run_id: str) -> None:
        """Count a run. Try again while its events cannot be read. Nothing is counted twice."""
        for _ in range(ATTEMPTS):
            try:
                events = list(self._events(org_id, run_id))
            except StorageUnavailable:
                if self._ended.wait(RETRY_SECONDS):
                    return
                continue
            try:
                _count(events, self._counts(org_id))
            except (ReasonBlocksError, StorageUnavailable) as exc:
                logger.warning("cannot count the patterns of run %r: %s", run_id, exc)
            except Exception:  # the thread serves all runs of the worker
                logger.exception("cannot count the patterns of run %r", run_id)
            return
        logger.warning("cannot count the patterns of run %r: the database is not available", run_id)

    def _events(self, org_id: str, run_id: str) -> Iterator[Event]:
        """Yield the steps of a run, without their texts, and its end."""
        after = -1
        while True:
            steps, has_more = self._storage.runs.page(org_id, run_id, after=after, limit=STEPS)
            for body in steps:
                try:
                    yield event_of({name: body[name] for name in READ if name in body})
                except EventError:  # of another version
                    continue
            if not steps or not has_more:
                break
            after = steps[-1]["step_index"]
        finish = self._storage.runs.finish_body(org_id, run_id)
        if finish:
            yield event_of(finish)


def _count(events: Sequence[Event], counts: Counts) -> None:
    stats = PatternStats(counts)
    for event in events:
        stats.emit(event)
    stats.close()
