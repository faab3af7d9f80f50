"""Shares the threads and requests of a worker among orgs, so that no org waits for the work of another one."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from .errors import ApiError

T = TypeVar("T")

IN_PROGRESS = 128
"""An org's requests that a worker has in progress, or in one of its pools of threads, at most."""


class Places:
    """Lets each org have `share` places at once, and wait for one with at most `most` requests in all.

    Used by one event loop.
    """

    def __init__(self, share: int, most: int) -> None:
        self._share, self._most = share, most
        self._busy: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)

    @asynccontextmanager
    async def of(self, org_id: str) -> AsyncIterator[None]:
        """Hold a place of an org."""
        await self.take(org_id)
        try:
            yield
        finally:
            self.give_back(org_id)

    async def take(self, org_id: str) -> None:
        """Wait for a place. Raises `ApiError` 429 if too many requests of the org wait."""
        if self._busy[org_id] < self._share:
            self._busy[org_id] += 1
            return
        waiting = self._waiting[org_id]
        if self._share + len(waiting) >= self._most:
            detail = f"this org has {self._most} requests in progress at this worker"
            raise ApiError(429, detail, {"Retry-After": "1"})
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn  # a place is handed over
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(org_id)
            elif turn in waiting:
                waiting.remove(turn)
            raise

    def give_back(self, org_id: str) -> None:
        """Hand a place to the next request that waits, or free it."""
        waiting = self._waiting[org_id]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[org_id]
        self._busy[org_id] -= 1
        if not self._busy[org_id]:
            del self._busy[org_id]


class SharedPool:
    """Threads of which an org uses at most `share` at once, for at most `most` requests in all.

    Work that has begun keeps its place until it ends, even if nobody waits for it any more.
    """

    def __init__(self, name: str, threads: int, share: int, most: int = IN_PROGRESS) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self.places = Places(share, most)

    async def run(self, org_id: str, work: Callable[[], T]) -> T:
        """Return the result of `work` in a thread. Raises `ApiError` 429 as `Places.take`."""
        loop = asyncio.get_running_loop()
        await self.places.take(org_id)
        try:
            working = self._pool.submit(work)
        except RuntimeError:  # closed
            self.places.give_back(org_id)
            raise
        working.add_done_callback(lambda _: _soon(loop, self.places.give_back, org_id))
        return await _result_of(working, loop)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


async def _result_of(working: Future[T], loop: asyncio.AbstractEventLoop) -> T:
    """Return the result. If nobody waits for it any more, work that has not begun is dropped."""
    waited = asyncio.wrap_future(working, loop=loop)
    try:
        return await asyncio.shield(waited)
    except asyncio.CancelledError:
        working.cancel()
        waited.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[str], None], org_id: str) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call, org_id)
