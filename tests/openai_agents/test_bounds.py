"""A run keeps what it needs, however long it is, and nothing keeps it once its caller lets go."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Model, ModelResponse, RunConfig, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from reasonblocks import ReasonBlocks
from reasonblocks_openai_agents import (
    SteeredRun,
    openai_hooks,
    openai_model,
    openai_run,
    openai_run_streamed,
    steering_of,
)
from tests.openai_agents.world import TASK, Giving, Place, fixer, in_turn, looks, place, whole_and_streamed
from tests.steered import steering

FEW, STEPS = 70, 140
"""Every bound is reached after `FEW` steps, or the tests below fail. The SDK takes longer for each further step."""


class Offline(Model):
    """Calls `look` so many times, and answers then: no server, so that a long run is quick."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.left -= 1
        item = _answer() if self.left < 0 else _call(self.left)
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def _call(at: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"f{at}", call_id=f"c{at}", name="look", arguments='{"path": "a"}', type="function_call"
    )


def _answer() -> ResponseOutputMessage:
    text = ResponseOutputText(text="All seen.", type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")


def long_run(steps: int) -> SteeredRun:
    async def run() -> SteeredRun:
        config = RunConfig(model_provider=Giving(Offline(steps)), tracing_disabled=True)
        return steering_of(await openai_run(steering(), fixer(), TASK, run_config=config, max_turns=None))

    return asyncio.run(run())


def held(run: SteeredRun) -> int:
    """How many things the run itself holds, in what it keeps of calls, tools and other runs."""
    kept = [run.__dict__, *(vars(one) for one in (run.tools,)), *run.__dict__.values(), *vars(run.tools).values()]
    return sum(len(one) for one in kept if isinstance(one, (dict, list, tuple, set)))


@pytest.fixture(scope="module")
def short_and_long() -> tuple[SteeredRun, SteeredRun]:
    return long_run(FEW), long_run(STEPS)


def test_a_long_run_keeps_no_more_than_a_short_one(short_and_long: tuple[SteeredRun, SteeredRun]) -> None:
    few, many = short_and_long
    assert (len(few.step_log), len(many.step_log)) == (FEW + 1, STEPS + 1)
    assert held(many) == held(few)


def test_the_snapshot_of_a_long_run_is_no_longer(short_and_long: tuple[SteeredRun, SteeredRun]) -> None:
    few, many = (len(repr(run.snapshot())) for run in short_and_long)
    assert many < few + 100


# ------------------------------------------------------------ let go


def by_run(here: Place, rb: ReasonBlocks) -> weakref.ref[Any]:
    return weakref.ref(steering_of(here.run(rb, fixer())))


def by_failed_run(here: Place, rb: ReasonBlocks) -> weakref.ref[Any]:
    with pytest.raises(Exception, match="Max turns") as caught:
        here.run(rb, fixer(), max_turns=1)
    run = weakref.ref(steering_of(caught.value))
    caught.value.__traceback__ = None
    return run


def by_abandoned_stream(here: Place, rb: ReasonBlocks) -> weakref.ref[Any]:
    async def leave() -> weakref.ref[Any]:
        result = openai_run_streamed(rb, fixer(), TASK, run_config=here.config())
        assert result.run_loop_task is not None
        await result.run_loop_task
        return weakref.ref(steering_of(result))

    return here.until(leave())


@whole_and_streamed
@pytest.mark.parametrize("run", [by_run, by_failed_run, by_abandoned_stream])
def test_nothing_keeps_a_run_that_is_over(run: Callable[[Place, ReasonBlocks], weakref.ref[Any]], way: str) -> None:
    rb = steering()
    with place(in_turn(*looks(2)), way) as here:
        kept = run(here, rb)
    gc.collect()
    assert kept() is None


@whole_and_streamed
def test_a_client_that_is_let_go_goes_with_its_runs(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        rb = steering()
        here.run(rb, fixer())
        here.plain(fixer(), hooks=openai_hooks(rb))
        here.plain(fixer(model=openai_model(rb, here.model("own"))))
        kept = weakref.ref(rb)
        del rb
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("count", [2_000])
def test_a_run_of_many_agents_in_tools_keeps_the_newest(count: int) -> None:
    rb = steering()
    outer = made(rb, "outer")
    for at in range(count):
        outer.adopt(made(rb, f"inner {at}"))
    assert [child.session.run.agent_name for child in outer.children] == [
        f"inner {at}" for at in range(count - 64, count)
    ]


def made(rb: ReasonBlocks, name: str) -> SteeredRun:
    return SteeredRun(rb.session(agent_name=name))
