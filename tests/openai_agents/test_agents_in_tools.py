"""A tool may run an agent itself: steered, it knows whose tool it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.tool_context import ToolContext

from reasonblocks_openai_agents import SteeredRun, openai_run, openai_run_streamed, openai_run_sync, steering_of
from tests.openai_agents.test_subagents import as_tool, asking, family, named
from tests.openai_agents.world import (
    Place,
    by_model,
    call,
    every_way,
    look,
    looks,
    place,
    read,
    said,
    steering,
    whole_and_streamed,
)


@whole_and_streamed
def test_a_tool_that_runs_an_agent_steered_is_its_parent(way: str) -> None:
    inner, found = named("inner", look), list[SteeredRun]()

    @function_tool
    async def delegate(task: str) -> str:
        result = await openai_run(rb, inner, task, run_config=here.config())
        found.append(steering_of(result))
        return str(result.final_output)

    rb = steering()
    answer = by_model(outer=[call("delegate", "d0", task="Look."), said()], inner=looks(2))
    with place(answer, way) as here:
        outer = steering_of(here.run(rb, named("outer", delegate), run_id="outer-run"))
    (child,) = found
    assert (child.session.run.parent_run_id, child.outcome) == ("outer-run", "success")
    assert [[entry.step for entry in run.step_log] for run in (child, outer)] == [[0, 1, 2], [0, 1]]


@whole_and_streamed
def test_a_tool_that_hands_its_configuration_on_steers_whom_it_runs(way: str) -> None:
    inner = named("inner", look)

    @function_tool
    async def delegate(context: ToolContext[Any], task: str) -> str:
        return str((await Runner.run(inner, task, run_config=context.run_config)).final_output)

    answer = by_model(outer=[call("delegate", "d0", task="Look."), said()], inner=looks(2))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", delegate)))
        assert family(outer) == ("outer", "success", [("inner", "success", [])])


@whole_and_streamed
def test_an_agent_with_a_configuration_of_its_own_is_left_alone(way: str) -> None:
    answer = by_model(outer=[asking("inner", "Look."), said()], inner=looks(1))
    with place(answer, way) as here:
        inner = as_tool(named("inner", look), run_config=here.config())
        assert steering_of(here.run(steering(), named("outer", inner))).children == []
        assert here.guided == [True, False, False, True]


def alone_in(here: Place, inner: Agent[Any], rb: Any) -> SteeredRun:
    """A run with a client and a loop of its own, for a tool that has no loop."""
    with place(by_model(inner=looks(2)), here.way.replace("run_streamed", "run_sync")) as there:
        return steering_of(openai_run_sync(rb, inner, "Look.", run_config=there.config()))


@every_way
def test_a_tool_in_a_thread_that_runs_an_agent_steered_is_its_parent(way: str) -> None:
    found: list[SteeredRun] = []

    @function_tool
    def delegate(task: str) -> str:
        found.append(alone_in(here, named("inner", look), rb))
        return "done"

    rb = steering()
    with place(by_model(outer=[call("delegate", "d0", task="Look."), said()]), way) as here:
        outer = steering_of(here.run(rb, named("outer", delegate), run_id="outer-run"))
    (child,) = found
    assert (child.session.run.parent_run_id, child.outcome) == ("outer-run", "success")
    assert [entry.step for entry in outer.step_log] == [0, 1]


@whole_and_streamed
def test_runs_that_a_tool_starts_one_after_the_other_have_the_same_parent(way: str) -> None:
    found: list[SteeredRun] = []

    @function_tool
    async def delegate(task: str) -> str:
        for at in range(2):
            agent = named(f"inner{at}", look)
            found.append(steering_of(await openai_run(rb, agent, task, run_config=here.config())))
        streamed = openai_run_streamed(rb, named("inner2", look), task, run_config=here.config())
        found.append(steering_of(await read(streamed)))
        return "done"

    rb = steering()
    answer = by_model(
        outer=[call("delegate", "d0", task="Look."), said()], inner0=looks(2), inner1=looks(2), inner2=looks(2)
    )
    with place(answer, way) as here:
        here.run(rb, named("outer", delegate), run_id="outer-run")
    assert [run.session.run.parent_run_id for run in found] == ["outer-run"] * 3
    assert [run.outcome for run in found] == ["success"] * 3


@whole_and_streamed
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_runs_that_a_configuration_steers_one_after_the_other_are_told_apart(steps: int, way: str) -> None:
    @function_tool
    async def delegate(context: ToolContext[Any], task: str) -> str:
        for at in range(2):
            await Runner.run(named(f"inner{at}", look), task, run_config=context.run_config)
        return "done"

    answer = by_model(outer=[call("delegate", "d0", task="Look."), said()], inner0=looks(steps), inner1=looks(steps))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", delegate)))
        assert family(outer) == ("outer", "success", [("inner0", "success", []), ("inner1", "success", [])])
        assert [[entry.step for entry in run.step_log] for run in outer.children] == [list(range(steps + 1))] * 2


@whole_and_streamed
def test_runs_that_a_configuration_steers_at_once_are_told_apart(way: str) -> None:
    @function_tool
    async def delegate(context: ToolContext[Any], task: str) -> str:
        agents = [named(f"inner{at}", look) for at in range(3)]
        await asyncio.gather(*(Runner.run(agent, task, run_config=context.run_config) for agent in agents))
        return "done"

    inner = {f"inner{at}": looks(3, mark=f"of {at}, ") for at in range(3)}
    with place(by_model(outer=[call("delegate", "d0", task="Look."), said()], **inner), way) as here:
        outer = steering_of(here.run(steering(), named("outer", delegate)))
        assert [run.outcome for run in outer.children] == ["success"] * 3
        assert [[entry.model_id for entry in run.step_log] for run in outer.children] == [[name] * 4 for name in inner]


@whole_and_streamed
def test_a_run_after_a_run_has_no_parent(way: str) -> None:
    rb = steering()
    with place(by_model(outer=looks(1)), way) as here:
        runs = [steering_of(here.run(rb, named("outer", look))) for _ in range(2)]
    assert [run.session.run.parent_run_id for run in runs] == [None, None]


def test_runs_side_by_side_have_no_parent() -> None:
    async def both() -> list[Any]:
        agent = named("outer", look)
        return await asyncio.gather(*(openai_run(rb, agent, str(at), run_config=here.config()) for at in range(3)))

    rb = steering()
    with place(by_model(outer=looks(1))) as here:
        assert [steering_of(one).session.run.parent_run_id for one in here.until(both())] == [None] * 3
