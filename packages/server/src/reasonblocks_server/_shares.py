"""Shares the threads of a worker among orgs, so that no org waits for the work of another one."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class SharedPool:
    """Threads of which an org uses at most `share` at once. Used by one event loop.

    Work that has begun keeps its place until it ends, even if nobody waits for it any more.
    """

    def __init__(self, name: str, threads: int, share: int) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._share = share
        self._busy: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = defaultdict(list)

    async def run(self, org_id: str, work: Callable[[], T]) -> T:
        """Return the result of `work` in a thread."""
        loop = asyncio.get_running_loop()
        await self._entered(org_id, loop)
        try:
            working = self._pool.submit(work)
        except RuntimeError:  # closed
            self._left(org_id)
            raise
        working.add_done_callback(lambda _: _soon(loop, self._left, org_id))
        return await _result_of(working, loop)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _entered(self, org_id: str, loop: asyncio.AbstractEventLoop) -> None:
        if self._busy[org_id] >= self._share:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting[org_id].append(turn)
            try:
                await turn  # its place is handed over
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._left(org_id)
                raise
        else:
            self._busy[org_id] += 1

    def _left(self, org_id: str) -> None:
        """Hand a place to the next one who waits, or free it."""
        waiting = self._waiting[org_id]
        while waiting:
            turn = waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[org_id]
        self._busy[org_id] -= 1
        if not self._busy[org_id]:
            del self._busy[org_id]


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
