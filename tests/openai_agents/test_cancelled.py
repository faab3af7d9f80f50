"""A run that is cancelled, or whose stream nobody reads any more, leaves what it did, and no wrong outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import Runner, RunResultStreaming

from reasonblocks import ReasonBlocks
from reasonblocks.testing import Turn
from reasonblocks.testing.server import Asked
from reasonblocks_openai_agents import SteeredRun, openai_run, openai_run_streamed, steering_of
from tests.openai_agents.world import TASK, Judged, Place, fixer, in_turn, looks, place, read, steering

STREAMED = pytest.mark.parametrize("way", ["run_streamed/responses", "run_streamed/chat"])


def begun(here: Place, rb: ReasonBlocks, **options: Any) -> RunResultStreaming:
    return openai_run_streamed(rb, fixer(), TASK, run_config=here.config(), **options)


# ------------------------------------------------------------ streams that nobody reads to the end


@STREAMED
def test_a_stream_that_is_left_goes_on_and_is_recorded(way: str) -> None:
    async def leave(here: Place) -> SteeredRun:
        result = begun(here, steering())
        async for _ in result.stream_events():
            break
        assert result.run_loop_task is not None
        await result.run_loop_task
        return steering_of(result)

    with place(in_turn(*looks(3)), way) as here:
        run = here.until(leave(here))
        assert here.guided == [True, True, False, False]
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2, 3])
    assert run.final is not None


@STREAMED
def test_a_stream_that_nobody_reads_at_all_goes_on_and_is_recorded(way: str) -> None:
    async def leave(here: Place) -> SteeredRun:
        result = begun(here, steering())
        assert result.run_loop_task is not None
        await result.run_loop_task
        return steering_of(result)

    with place(in_turn(*looks(1)), way) as here:
        assert here.until(leave(here)).outcome == "success"


@STREAMED
def test_a_run_is_over_when_its_stream_is(way: str) -> None:
    async def outcomes(here: Place) -> list[str | None]:
        result = begun(here, steering())
        before = steering_of(result).outcome
        await read(result)
        return [before, steering_of(result).outcome]

    with place(in_turn(*looks(1)), way) as here:
        assert here.until(outcomes(here)) == [None, "success"]


@STREAMED
def test_a_stream_tells_what_it_tells_without_steering(way: str) -> None:
    async def told(result: RunResultStreaming) -> list[str]:
        return [type(getattr(event, "data", event)).__name__ async for event in result.stream_events()]

    async def both(here: Place) -> list[list[str]]:
        plain = Runner.run_streamed(fixer(), TASK, run_config=here.config())
        return [await told(begun(here, steering())), await told(plain)]

    with place(in_turn(*looks(2)), way) as here:
        steered, plain = here.until(both(here))
    assert steered == plain


# ------------------------------------------------------------ `result.cancel()`


async def stopped(here: Place, rb: ReasonBlocks, mode: Any) -> RunResultStreaming:
    """A run that is cancelled as soon as its model is heard."""
    result = begun(here, rb)
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            result.cancel(mode=mode)
    return result


@STREAMED
def test_a_run_that_is_cancelled_at_once_is_neither_finished_nor_failed(way: str) -> None:
    with place(in_turn(*looks(9)), way) as here:
        run = steering_of(here.until(stopped(here, steering(), "immediate")))
    assert (run.outcome, run.final) == (None, None)
    assert [entry.step for entry in run.step_log] == [0]


@STREAMED
def test_a_run_that_is_cancelled_at_once_is_abandoned_when_its_client_is_closed(way: str) -> None:
    with place(in_turn(*looks(9)), way) as here:
        rb = steering()
        run = steering_of(here.until(stopped(here, rb, "immediate")))
        rb.close()
    assert run.outcome == "failure: abandoned"


@STREAMED
def test_a_run_that_is_cancelled_after_a_turn_waits(way: str) -> None:
    with place(in_turn(*looks(9)), way) as here:
        rb = steering()
        run = steering_of(here.until(stopped(here, rb, "after_turn")))
        rb.close()
    assert run.outcome is None
    assert [entry.error for entry in run.step_log] == [None]


@STREAMED
def test_a_run_that_was_cancelled_after_a_turn_goes_on(way: str) -> None:
    judged = Judged()

    async def twice(here: Place) -> SteeredRun:
        rb = steering(scorer=judged)
        first = await stopped(here, rb, "after_turn")
        second = await here.arun(rb, fixer(), first.to_state(), snapshot=steering_of(first).snapshot())
        return steering_of(second)

    with place(in_turn(*looks(2)), way) as here:
        run = here.until(twice(here))
        assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [1, 2])
    assert judged.results == [[("f0 is empty", None)], [("f1 is empty", None)], []]


# ------------------------------------------------------------ tasks that are cancelled


class Held:
    """A model that holds its answer to one call until it is let go."""

    def __init__(self, call: int) -> None:
        self.call, self.asked, self.let_go = call, threading.Event(), threading.Event()

    def __call__(self, request: Asked) -> Turn:
        if request.answers == self.call:
            self.asked.set()
            self.let_go.wait(60)
        return looks(9)[request.answers]

    async def reached(self) -> None:
        await asyncio.to_thread(self.asked.wait, 60)


async def cancel(task: asyncio.Task[Any], held: Held) -> None:
    await held.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def time_out(task: asyncio.Task[Any], held: Held) -> None:
    await held.reached()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.001)


def cancelled(way: str, how: Callable[[asyncio.Task[Any], Held], Awaitable[None]]) -> tuple[ReasonBlocks, SteeredRun]:
    held, rb, runs = Held(1), steering(), list[SteeredRun]()

    async def run(here: Place) -> None:
        if way.startswith("run_streamed"):
            result = begun(here, rb)
            runs.append(steering_of(result))
            await read(result)
        try:
            await openai_run(rb, fixer(), TASK, run_config=here.config())
        except asyncio.CancelledError as exc:
            runs.append(steering_of(exc))
            raise

    async def both(here: Place) -> None:
        await how(asyncio.create_task(run(here)), held)

    with place(held, way) as here:
        try:
            here.until(both(here))
        finally:
            held.let_go.set()
    return rb, runs[0]


EVERY = pytest.mark.parametrize("way", ["run/responses", "run/chat", "run_streamed/responses", "run_streamed/chat"])


@EVERY
@pytest.mark.parametrize("how", [cancel, time_out])
def test_a_cancelled_run_is_neither_finished_nor_failed(
    way: str, how: Callable[[asyncio.Task[Any], Held], Awaitable[None]]
) -> None:
    _, run = cancelled(way, how)
    assert (run.outcome, run.final, [entry.step for entry in run.step_log]) == (None, None, [0, 1])


@EVERY
def test_the_entry_of_a_call_that_was_cancelled_says_so(way: str) -> None:
    _, run = cancelled(way, cancel)
    assert [(entry.attempts, entry.error) for entry in run.step_log] == [(1, None), (1, "CancelledError")]


@EVERY
def test_a_cancelled_run_is_abandoned_when_its_client_is_closed(way: str) -> None:
    rb, run = cancelled(way, cancel)
    rb.close()
    assert run.outcome == "failure: abandoned"
