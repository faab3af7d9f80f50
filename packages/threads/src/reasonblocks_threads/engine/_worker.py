"""Does due works in daemon threads for as long as its block lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from reasonblocks.concurrency.forks import on_fork
from reasonblocks.concurrency.workers import in_daemon

from .doctor import Doctor

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
        self._threads: list[threading.Thread] = []
        """The threads of the current block; each ends once this list is replaced."""

    def __enter__(self) -> Worker:
        try:
            for number in range(self._number):
                doctor = Doctor(self._engine) if number == 0 else None
                thread = threading.Thread(
                    target=self._serve, args=(self._threads, doctor), name="reasonblocks-threads", daemon=True
                )
                thread.start()
                self._threads.append(thread)
            return self
        except BaseException:
            self._forget()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        threads = self._threads
        self._forget()
        self._engine.wake()
        until = time.monotonic() + JOIN_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    async def __aenter__(self) -> Worker:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_daemon(lambda: self.__exit__(kind, error, trace))

    def _serve(self, threads: list[threading.Thread], doctor: Doctor | None) -> None:
        visit = time.monotonic()
        seen = self._engine.changes
        while self._threads is threads:
            if doctor is not None and time.monotonic() >= visit:
                self._contained("the doctor", partial(doctor.visit, repair=True, whole=False))
                visit = time.monotonic() + DOCTOR_S
            drained = self._contained(
                "the worker", lambda: self._engine.drain(stop=lambda: self._threads is not threads)
            )
            if not drained:
                seen = self._engine.changes
            if self._threads is threads:
                self._engine.wait_for_change(seen, POLL_S if drained else FAILED_S)
            seen = self._engine.changes

    def _contained(self, source: str, call: Callable[[], object]) -> bool:
        """Call, and log an error. Returns False if there was one."""
        try:
            call()
        except Exception as exc:  # noqa: BLE001 - the thread's edge: it goes on with the next work
            self._engine.log_once(source, exc)
            return False
        return True
