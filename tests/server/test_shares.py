"""Threads are shared among orgs: one org's work never takes them all, and what has begun counts until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

import pytest

from reasonblocks_server._shares import SharedPool
from reasonblocks_server.errors import ApiError

Body = Callable[[SharedPool], Awaitable[None]]


def played(body: Body, *, threads: int = 3, share: int = 1, most: int = 99) -> None:
    async def run() -> None:
        pool = SharedPool("test", threads, share, most)
        try:
            await asyncio.wait_for(body(pool), 30)
        finally:
            pool.close()

    asyncio.run(run())


def test_an_org_waits_for_itself_and_for_nobody_else() -> None:
    async def body(pool: SharedPool) -> None:
        gate: Future[int] = Future()
        slow = [asyncio.ensure_future(pool.run("crowd", gate.result)) for _ in range(20)]
        await asyncio.sleep(0)
        assert [await pool.run(f"org {number}", lambda: 7) for number in range(9)] == [7] * 9
        assert not any(one.done() for one in slow)
        gate.set_result(1)
        assert await asyncio.gather(*slow) == [1] * 20

    played(body, share=2)


def test_work_that_nobody_waits_for_keeps_its_place_until_it_ends() -> None:
    async def body(pool: SharedPool) -> None:
        gate: Future[int] = Future()
        begun: Future[None] = Future()

        def work() -> int:
            begun.set_result(None)
            return gate.result()

        left = asyncio.ensure_future(pool.run("o", work))
        await asyncio.wrap_future(begun)
        left.cancel()
        next_one = asyncio.ensure_future(pool.run("o", lambda: 2))
        await asyncio.sleep(0.02)
        assert not next_one.done()
        gate.set_result(1)
        assert await next_one == 2

    played(body)


def test_work_that_has_not_begun_is_dropped_with_its_request() -> None:
    async def body(pool: SharedPool) -> None:
        gate: Future[int] = Future()
        done = list[str]()
        first = asyncio.ensure_future(pool.run("o", gate.result))
        waiting = [asyncio.ensure_future(pool.run("o", lambda: done.append("o"))) for _ in range(3)]
        queued = asyncio.ensure_future(pool.run("p", lambda: done.append("p")))
        await asyncio.sleep(0.02)
        for one in (*waiting, queued):
            one.cancel()
        await asyncio.gather(*waiting, queued, return_exceptions=True)
        gate.set_result(1)
        assert await first == 1
        assert await pool.run("o", lambda: 2) == await pool.run("p", lambda: 2) == 2
        assert done == []
        while pool.places._busy or pool.places._waiting:
            await asyncio.sleep(0.001)  # a place is given back soon after the result

    played(body, threads=1)


def test_an_error_of_the_work_is_raised_and_frees_its_place() -> None:
    async def body(pool: SharedPool) -> None:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await pool.run("o", lambda: 1 // 0)
        assert await pool.run("o", lambda: 1) == 1

    played(body)


def test_an_org_has_only_so_many_requests_in_progress() -> None:
    async def body(pool: SharedPool) -> None:
        gate: Future[int] = Future()
        held = [asyncio.ensure_future(pool.run("crowd", gate.result)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="4 requests in progress") as refused:
            await pool.run("crowd", gate.result)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
        held.pop().cancel()
        await asyncio.sleep(0)
        held.append(asyncio.ensure_future(pool.run("crowd", lambda: 2)))
        assert await pool.run("other", lambda: 3) == 3
        gate.set_result(1)
        assert await asyncio.gather(*held) == [1, 1, 1, 2]

    played(body, share=2, most=4)
