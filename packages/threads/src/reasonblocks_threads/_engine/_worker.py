"""Does due works in daemon threads for as long as its block lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from reasonblocks._process import on_fork
from reasonblocks._threads import in_daemon

from ._doctor import Doctor

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
    """Threads that do due works, as a context manager, also with `async with`.

    The first lets the doctor visit at start and every minute. No error ends them: each kind is logged once. A forked
    process has none of them.
    """

    def __init__(self, engine: Engine, *, threads: int) -> None:
        self._engine = engine
        self._number = threads
        self._forget()
        on_fork(self._forget)

    def _forget(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Worker:
        for number in range(self._number):
            doctor = Doctor(self._engine) if number == 0 else None
            thread = threading.Thread(
                target=self._serve, args=(self._stop, doctor), name="reasonblocks-threads", daemon=True
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

    async def __aenter__(self) -> Worker:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_daemon(lambda: self.__exit__(kind, error, trace))

    def _serve(self, stop: threading.Event, doctor: Doctor | None) -> None:
        visit = time.monotonic()
        while not stop.is_set():
            seen = self._engine.changes
            if doctor is not None and time.monotonic() >= visit:
                self._contained("the doctor", partial(doctor.visit, repair=True, whole=False))
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
