"""Summarises long finished runs in a background thread, so that no batch of events waits for it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable

from reasonblocks.concurrency.interrupts import Condition

from .errors import StorageUnavailable
from .storage import Storage

logger = logging.getLogger("reasonblocks.server")

GATHER_SECONDS = 1.0
"""Seconds before a run is summarised, for which its late batches are gathered."""
MAX_WAITING = 10_000
"""The most runs that wait to be summarised. Beyond this, the oldest is left to the hourly sweep."""


class Summarising:
    """Summarises each given run once for its batches of a second.

    The hourly sweep summarises those that still wait when the process ends.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting = OrderedDict[tuple[str, str], None]()
        self._lock = Condition()
        self._is_busy = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def stored(self, org_id: str, run_ids: Iterable[str]) -> None:
        """Queue finished runs whose summary is missing."""
        runs = dict.fromkeys((org_id, run_id) for run_id in run_ids)
        if not runs:
            return
        with self._lock:
            if self._ended.is_set():
                return
            self._waiting.update(runs)
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reasonblocks-summarising", daemon=True)
                self._thread.start()
            self._lock.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until all runs are summarised; return False if that takes longer."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._waiting and not self._is_busy, seconds)

    def close(self) -> None:
        """End the thread after the run that it summarises."""
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
                self._lock.wait_for(self._ended.is_set, GATHER_SECONDS)
                if self._ended.is_set():
                    return
                (org_id, run_id), _ = self._waiting.popitem(last=False)
                self._is_busy = True
            try:
                self._storage.runs.summarise(org_id, run_id)
            except StorageUnavailable as error:
                logger.warning("cannot summarise run %r before the next sweep: %s", run_id, error)
            except Exception:  # the thread serves all runs of the worker
                logger.exception("cannot summarise run %r", run_id)
