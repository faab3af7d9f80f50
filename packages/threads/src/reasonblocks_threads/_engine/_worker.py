"""Does due works in daemon threads for as long as its block lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from reasonblocks._process import on_fork

if TYPE_CHECKING:
    from ._engine import Engine

POLL_S = 0.25
"""Seconds between two looks for works of other processes; those of the same process are begun at once."""
DOCTOR_S = 60.0
FAILED_S = 1.0
"""Seconds before the next try after an error."""
JOIN_S = 2.0
"""Seconds for which the end of the block waits for running works; later ones are abandoned to their leases."""


class Worker:
    """Threads that do due works, as a context manager; the first also calls the `doctor` at start and every minute.

    No error ends them: each kind is logged once. A forked process has none of them.
    """

    def __init__(self, engine: Engine, doctor: Callable[[], object], *, threads: int) -> None:
        self._engine = engine
        self._doctor = doctor
        self._number = threads
        self._forget()
        on_fork(self._forget)

    def _forget(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Worker:
        stop = self._stop
        for number in range(self._number):
            thread = threading.Thread(
                target=self._serve, args=(stop, number == 0), name="reasonblocks-threads", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._engine.wake()
        until = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._forget()

    def _serve(self, stop: threading.Event, with_doctor: bool) -> None:
        visit = time.monotonic() if with_doctor else float("inf")
        while not stop.is_set():
            seen = self._engine.changes
            if time.monotonic() >= visit:
                self._contained("the doctor", self._doctor)
                visit = time.monotonic() + DOCTOR_S
            drained = self._contained("the worker", lambda: self._engine.drain(stop=stop.is_set))
            if not drained:
                stop.wait(FAILED_S)
            elif not stop.is_set():
                self._engine.wait_for_change(seen, POLL_S)

    def _contained(self, source: str, call: Callable[[], object]) -> bool:
        """Call, and log an error. Returns False if there was one."""
        try:
            call()
        except Exception as exc:  # noqa: BLE001 - the thread's edge: it goes on with the next work
            self._engine.log_once(source, exc)
            return False
        return True
