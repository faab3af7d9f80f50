"""Calls a caller's code with a deadline, and switches it off after repeated deadlines.

A call that hangs keeps its thread; the breaker limits the number of such calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..concurrency.workers import NOT_ITS_OWN, Workers, contained
from ..exceptions import BadAnswer, DeadlineExceeded, SwitchedOff
from .guard import logger

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_Future: TypeAlias = "Future[Any] | asyncio.Future[Any]"

DEADLINES_IN_A_ROW = 3
"""Missed deadlines after which a callable is switched off."""
OFF_SECONDS = 60.0
"""Seconds that it stays off before it is tried once."""


def _consume(late: asyncio.Future[Any]) -> None:
    """Retrieve a late exception, so that asyncio does not log that it was never retrieved."""
    if not late.cancelled():
        late.exception()


class Breaker:
    """Switches a callable off after deadlines in a row, then tries it once. Shared by all runs, so it has a lock."""

    def __init__(self, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._late = 0
        self._off_until: float | None = None
        self._switches = 0

    def check(self) -> int:
        """Raise `SwitchedOff` while off; when the time is over, let one call through.

        Return the number of switches so far, which the call passes to `in_time`.
        """
        with self._lock:
            if self._off_until is None:
                return self._switches
            left = self._off_until - self._monotonic()
            if left > 0:
                raise SwitchedOff(self.name, left)
            self._off_until = self._monotonic() + OFF_SECONDS  # for all others, until this call has answered
            return self._switches

    def in_time(self, switches: int) -> None:
        """Note an answer. That of a call which began before the last switch does not switch it on again."""
        with self._lock:
            if switches != self._switches:
                return
            was_off, self._off_until, self._late = self._off_until is not None, None, 0
        if was_off:
            logger.warning("%s answers in time again and is switched on", self.name)

    def too_late(self) -> None:
        with self._lock:
            self._late += 1
            switch = self._late == DEADLINES_IN_A_ROW
            self._switches += switch
            if self._late >= DEADLINES_IN_A_ROW:
                self._off_until = self._monotonic() + OFF_SECONDS
        if switch:
            logger.warning(
                "%s missed %d deadlines in a row: off, tried again in %d s", self.name, self._late, OFF_SECONDS
            )


class BoundedCall:
    """Runs a caller's callable in a worker thread or on the event loop, behind its breaker, for at most `seconds`."""

    def __init__(self, name: str, workers: Workers, breaker: Breaker | None = None) -> None:
        self.name = name
        self._workers = workers
        self._breaker = breaker or Breaker(name)

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Call and wait. Raises `DeadlineExceeded`, `SwitchedOff`, or what the callable raised."""
        switches = self._may_start(seconds)
        future = self._workers.submit(work)
        try:
            done = future.result(timeout=seconds)
        except FutureTimeout as exc:
            raise self._missed(future, seconds, switches) from exc
        except Exception:
            self._breaker.in_time(switches)
            raise
        self._breaker.in_time(switches)
        return done

    async def acall(self, work: Callable[[], T], seconds: float) -> T:
        """Call in a worker thread without blocking the event loop. Raises as `call` does."""
        import asyncio  # already imported by the awaiting code; others do not pay for it

        switches = self._may_start(seconds)
        future = self._workers.submit(work)
        return await self._awaited(asyncio.wrap_future(future), future, seconds, switches)

    async def wait_for(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Run a coroutine on the caller's event loop; cancel it at the deadline. Raises as `call` does."""
        import asyncio

        switches = self._may_start(seconds)
        task = asyncio.ensure_future(self._without_exit(work))
        return await self._awaited(task, task, seconds, switches)

    async def _without_exit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Raise `BadAnswer` for `SystemExit`, which would end the event loop before anyone could retrieve it."""
        try:
            return await work()
        except SystemExit as exc:
            raise BadAnswer(self.name, "SystemExit", NOT_ITS_OWN) from exc

    async def _awaited(self, waited: asyncio.Future[T], future: _Future, seconds: float, switches: int) -> T:
        import asyncio

        in_time: set[asyncio.Future[T]] = set()
        try:
            in_time, _ = await asyncio.wait(
                (waited,), timeout=seconds
            )  # wait_for would wait for a task that ignores its cancellation
        finally:
            if not in_time:
                waited.cancel()
                waited.add_done_callback(_consume)
        if not in_time:
            raise self._missed(future, seconds, switches)
        self._breaker.in_time(switches)
        with contained(self.name):
            return waited.result()

    def _may_start(self, seconds: float) -> int:
        if seconds <= 0:
            raise DeadlineExceeded(self.name, 0.0)
        return self._breaker.check()

    def _missed(self, future: _Future, seconds: float, switches: int) -> Exception:
        """Return `DeadlineExceeded`, or the callable's own time-out if it raised one in time."""
        own = future.exception() if future.done() and not future.cancelled() else None
        if isinstance(own, Exception):
            self._breaker.in_time(switches)
            return own
        future.cancel()
        self._breaker.too_late()
        return DeadlineExceeded(self.name, seconds)


def bounded_calls(names: Iterable[str], workers: Workers) -> dict[str, BoundedCall]:
    """Return a bounded call for each name, each with its own breaker."""
    return {name: BoundedCall(name, workers) for name in names}
