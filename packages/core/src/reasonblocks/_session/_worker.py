"""Where a caller's callable runs: a daemon thread, so that neither a step nor the exit ever waits for it.

`concurrent.futures` joins its threads at exit; these are daemons. A thread that is done takes the next call or, after
some idle seconds, ends. One that hangs is left behind, and the breaker sees to it that there are few.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..exceptions import DeadlineExceeded, SwitchedOff
from ._guard import logger, tamed

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_Future: TypeAlias = "Future[Any] | asyncio.Future[Any]"

IDLE_SECONDS = 5.0
DEADLINES_IN_A_ROW = 3
OFF_SECONDS = 60.0

_Job = tuple["Future[Any]", Callable[[], Any]]


class Workers:
    """Idle daemon threads of this process, as many as there are calls at once."""

    def __init__(self) -> None:
        self._forget_threads()

    def _forget_threads(self) -> None:
        """None is there yet, or none came along into a forked process."""
        self._pid = os.getpid()
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        if self._pid != os.getpid():
            self._forget_threads()
        future: Future[T] = Future()
        context = copy_context()
        job: _Job = (future, lambda: context.run(call))
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="reasonblocks-worker", daemon=True).start()
        inbox.put(job)
        return future

    def _serve(self, inbox: SimpleQueue[_Job | None]) -> None:
        while (job := self._next(inbox)) is not None:
            _run(*job)
            del job
            with self._lock:
                self._idle.append(inbox)

    def _next(self, inbox: SimpleQueue[_Job | None]) -> _Job | None:
        try:
            return inbox.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return None
            return inbox.get()  # a job was handed over at the last moment


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        with tamed("a callable"):
            result = call()
    except BaseException as exc:  # noqa: BLE001 - the thread's edge: the guard on the other side decides
        future.set_exception(exc)
    else:
        future.set_result(result)


def _heard(late: asyncio.Future[Any]) -> None:
    """An error that comes after the deadline is nobody's any more, and the event loop need not speak of it."""
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

    def check(self) -> None:
        """Raises `SwitchedOff` while off; when the time is over, lets one call through."""
        with self._lock:
            if self._off_until is None:
                return
            left = self._off_until - self._monotonic()
            if left > 0:
                raise SwitchedOff(self.name, left)
            self._off_until = self._monotonic() + OFF_SECONDS  # for all others, until this one has answered

    def in_time(self) -> None:
        with self._lock:
            was_off, self._off_until, self._late = self._off_until is not None, None, 0
        if was_off:
            logger.warning("%s answers in time again: it is back on", self.name)

    def too_late(self) -> None:
        with self._lock:
            self._late += 1
            switch = self._late == DEADLINES_IN_A_ROW
            if self._late >= DEADLINES_IN_A_ROW:
                self._off_until = self._monotonic() + OFF_SECONDS
        if switch:
            logger.warning(
                "%s missed %d deadlines in a row: off, tried again in %d s", self.name, self._late, OFF_SECONDS
            )


class Guest:
    """A caller's callable behind its breaker: called in a worker thread, for at most `seconds`."""

    def __init__(self, name: str, workers: Workers, breaker: Breaker | None = None) -> None:
        self.name = name
        self._workers = workers
        self._breaker = breaker or Breaker(name)

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Raises `DeadlineExceeded`, `SwitchedOff`, or what the callable raised."""
        future = self._start(work, seconds)
        try:
            done = future.result(timeout=seconds)
        except FutureTimeout as exc:
            raise self._missed(future, seconds) from exc
        except Exception:
            self._breaker.in_time()
            raise
        self._breaker.in_time()
        return done

    async def acall(self, work: Callable[[], T], seconds: float) -> T:
        """The same, while the event loop goes on."""
        import asyncio  # there already, in whoever awaits this; others are spared its cost

        future = self._start(work, seconds)
        return await self._awaited(asyncio.wrap_future(future), future, seconds)

    async def wait_for(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The same for a coroutine, which runs on the caller's event loop and is cancelled at the deadline."""
        import asyncio

        self._may_start(seconds)
        task = asyncio.ensure_future(work())
        return await self._awaited(task, task, seconds)

    async def _awaited(self, waited: asyncio.Future[T], future: _Future, seconds: float) -> T:
        import asyncio

        in_time: set[asyncio.Future[T]] = set()
        try:
            in_time, _ = await asyncio.wait((waited,), timeout=seconds)  # wait_for waits for what ignores its end, too
        finally:
            if not in_time:
                waited.cancel()
                waited.add_done_callback(_heard)
        if not in_time:
            raise self._missed(future, seconds)
        self._breaker.in_time()
        with tamed(self.name):
            return waited.result()

    def _start(self, work: Callable[[], T], seconds: float) -> Future[T]:
        self._may_start(seconds)
        return self._workers.submit(work)

    def _may_start(self, seconds: float) -> None:
        if seconds <= 0:
            raise DeadlineExceeded(self.name, 0.0)
        self._breaker.check()

    def _missed(self, future: _Future, seconds: float) -> Exception:
        """A deadline, unless the callable itself raised a time-out in time."""
        own = future.exception() if future.done() and not future.cancelled() else None
        if isinstance(own, Exception):
            self._breaker.in_time()
            return own
        future.cancel()
        self._breaker.too_late()
        return DeadlineExceeded(self.name, seconds)
