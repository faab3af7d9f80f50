"""Calls a caller's code with a deadline, and switches it off after repeated deadlines.

A call that hangs keeps its thread; the breaker limits the number of such calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..concurrency.breaker import Breaker
from ..concurrency.workers import NOT_ITS_OWN, Workers, contain_faults
from ..exceptions import BadAnswer, DeadlineExceeded

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_Future: TypeAlias = "Future[Any] | asyncio.Future[Any]"

OFF_SECONDS = 60.0
"""Seconds that a callable stays off before it is tried once."""


def _consume(late: asyncio.Future[Any]) -> None:
    """Retrieve a late exception, so that asyncio does not log that it was never retrieved."""
    if not late.cancelled():
        late.exception()


class BoundedCall:
    """Runs a caller's callable in a worker thread or on the event loop, behind its breaker, for at most `seconds`."""

    def __init__(self, name: str, workers: Workers, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._workers = workers
        self._breaker = Breaker(
            name,
            off_seconds=OFF_SECONDS,
            off_line="%s missed %d deadlines in a row (the last of %s): off, tried again in %d s",
            on_line="%s answers in time again and is switched on",
            monotonic=monotonic,
        )

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Call and wait. Raises `DeadlineExceeded`, `SwitchedOff`, or what the callable raised."""
        turn = self._may_start(seconds)
        future = self._workers.submit(work)
        try:
            done = future.result(timeout=seconds)
        except FutureTimeout as exc:
            raise self._missed(future, seconds, turn) from exc
        except Exception:
            self._breaker.answered(turn)
            raise
        self._breaker.answered(turn)
        return done

    async def acall(self, work: Callable[[], T], seconds: float) -> T:
        """Call in a worker thread without blocking the event loop. Raises as `call` does."""
        import asyncio  # already imported by the awaiting code; others do not pay for it

        turn = self._may_start(seconds)
        future = self._workers.submit(work)
        return await self._awaited(asyncio.wrap_future(future), future, seconds, turn)

    async def wait_for(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Run a coroutine on the caller's event loop; cancel it at the deadline. Raises as `call` does."""
        import asyncio

        turn = self._may_start(seconds)
        task = asyncio.ensure_future(self._without_exit(work))
        return await self._awaited(task, task, seconds, turn)

    async def _without_exit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Raise `BadAnswer` for `SystemExit`, which would end the event loop before anyone could retrieve it."""
        try:
            return await work()
        except SystemExit as exc:
            raise BadAnswer(self.name, "SystemExit", NOT_ITS_OWN) from exc

    async def _awaited(self, waited: asyncio.Future[T], future: _Future, seconds: float, turn: int) -> T:
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
            raise self._missed(future, seconds, turn)
        self._breaker.answered(turn)
        with contain_faults(self.name):
            return waited.result()

    def _may_start(self, seconds: float) -> int:
        if seconds <= 0:
            raise DeadlineExceeded(self.name, 0.0)
        return self._breaker.begin(self.name, seconds)

    def _missed(self, future: _Future, seconds: float, turn: int) -> Exception:
        """Return `DeadlineExceeded`, or the callable's own time-out if it raised one in time."""
        own = future.exception() if future.done() and not future.cancelled() else None
        if isinstance(own, Exception):
            self._breaker.answered(turn)
            return own
        future.cancel()
        self._breaker.failed(turn, f"{seconds:.2g} s")
        return DeadlineExceeded(self.name, seconds)


def bounded_calls(names: Iterable[str], workers: Workers) -> dict[str, BoundedCall]:
    """Return a bounded call for each name, each with its own breaker."""
    return {name: BoundedCall(name, workers) for name in names}
