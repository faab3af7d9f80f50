"""A slow server costs a step its deadline and no more, blocks no event loop, and loses its connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from reasonblocks.backends.http import Exchange, address_of
from reasonblocks.backends.http.evaluator import HttpEvaluator
from reasonblocks.exceptions import DeadlineExceeded, Unavailable
from reasonblocks_testing.rb_api import Drip, Hang, ScriptedRbApi, Slow
from reasonblocks_testing.rb_api._faults import Fault
from tests.core.http.world import EVALUATE, SHORT_MS, Silent, arun, asked, at, client, gates, run

SLOW: list[Fault] = [Hang(), Slow(seconds=60), Drip(seconds=0.01)]
LATE_S = 1.0
"""Seconds above the deadline that a busy machine may take."""
GAP_S, TRIES = 0.05, 4
"""The longest gap of an event loop, in the best of so many tries: the server runs in this process, too, and the machine
may be busy. A call that blocked the loop would take the whole deadline. benchmarks/faults.py measures the real gap."""


def evaluator(url: str) -> HttpEvaluator:
    return HttpEvaluator(Exchange(address_of("url", url, None)))


@pytest.mark.parametrize("fault", SLOW, ids=lambda fault: type(fault).__name__)
def test_a_slow_server_costs_a_step_its_deadline(api: ScriptedRbApi, fault: Fault) -> None:
    session = client(api, step_deadline_ms=SHORT_MS).session()
    run(session, 1)
    api.misbehave(fault)
    begun = time.monotonic()
    (decided,) = run(session, 1, start=1)
    assert time.monotonic() - begun < SHORT_MS / 1000 + LATE_S
    assert decided.gate_decision == "unavailable"
    assert session.faults == {}


@pytest.mark.parametrize("fault", SLOW, ids=lambda fault: type(fault).__name__)
def test_a_slow_server_does_not_block_an_event_loop(api: ScriptedRbApi, fault: Fault) -> None:
    api.misbehave(fault)

    async def beside(number: int) -> tuple[list[str | None], float]:
        rb = client(api, api_key=f"rbk_{number}_key", step_deadline_ms=SHORT_MS)  # another key has its own breaker
        gap, beat, running = 0.0, time.monotonic(), asyncio.ensure_future(arun(rb.session(), 2))
        while not running.done():
            await asyncio.sleep(0.001)
            now = time.monotonic()
            gap, beat = max(gap, now - beat), now
        return gates(await running), gap

    decided, gap = min((asyncio.run(beside(number)) for number in range(TRIES)), key=lambda done: done[1])
    assert decided[1] == "unavailable"
    assert gap < GAP_S
    assert len(at(api, EVALUATE)) == TRIES


def test_after_a_slow_step_the_next_is_evaluated(api: ScriptedRbApi) -> None:
    session = client(api, step_deadline_ms=SHORT_MS * 10).session()
    run(session, 2)
    api.misbehave(Hang(), times=1)
    assert gates(run(session, 1, start=2)) == ["unavailable"]
    assert gates(run(session, 1, start=3))[0] != "unavailable"
    assert at(api, EVALUATE)[-1].body["account"]["steps"] == 3


def sync_call(backend: HttpEvaluator) -> None:
    backend.evaluate(asked(ends=time.monotonic() + 1))


def async_call(backend: HttpEvaluator) -> None:
    asyncio.run(backend.aevaluate(asked(ends=time.monotonic() + 1)))


@pytest.mark.parametrize("call", [sync_call, async_call])
def test_a_missed_deadline_closes_the_connection(call: Callable[[HttpEvaluator], None]) -> None:
    with Silent() as server:
        backend = evaluator(server.url)
        with pytest.raises(DeadlineExceeded):
            call(backend)
        assert server.closed.wait(30)


def test_a_cancelled_caller_closes_the_connection() -> None:
    async def cancelled(backend: HttpEvaluator, server: Silent) -> None:
        asking = asyncio.ensure_future(backend.aevaluate(asked(ends=time.monotonic() + 60)))
        await asyncio.to_thread(server.asked.wait, 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with Silent() as server:
        asyncio.run(cancelled(evaluator(server.url), server))
        assert server.closed.wait(30)


def test_the_server_is_told_how_long_it_has(api: ScriptedRbApi) -> None:
    run(client(api, step_deadline_ms=5_000).session(), 2)
    left = int(at(api, EVALUATE)[0].headers["reasonblocks-deadline-ms"])
    assert 1_000 < left <= 5_000


def test_a_passed_deadline_sends_nothing(api: ScriptedRbApi) -> None:
    with pytest.raises(DeadlineExceeded):
        evaluator(api.url).evaluate(asked(ends=time.monotonic() - 1))
    assert api.requests == []


def test_closing_the_client_closes_its_connections() -> None:
    async def closed_meanwhile(backend: HttpEvaluator, server: Silent) -> None:
        asking = asyncio.ensure_future(backend.aevaluate(asked(ends=time.monotonic() + 60)))
        await asyncio.to_thread(server.asked.wait, 5)
        backend.close()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(asking, 5)

    with Silent() as server:
        asyncio.run(closed_meanwhile(evaluator(server.url), server))
        assert server.closed.wait(30)


def test_a_closed_client_connects_again(api: ScriptedRbApi) -> None:
    rb = client(api)
    run(rb.session(), 2)
    rb.close()
    assert "unavailable" not in gates(run(rb.session(), 2))
