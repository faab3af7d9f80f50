"""Some models give their calls the same ids in every conversation: a run is still known by where it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import function_tool

from reasonblocks.testing import Turn, tool_call
from reasonblocks.testing.server import Asked
from reasonblocks_openai_agents import SteeredRun, openai_hooks, openai_model, steering_of
from tests.openai_agents.test_subagents import as_tool, family, named
from tests.openai_agents.world import by_model, every_way, fixer, place, said, steering, whole_and_streamed

FIRST = "functions.look:0"
"""The id of each conversation's first call, as Kimi's models have it."""


@function_tool
async def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


@function_tool
async def fail(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def looks(who: str, count: int, *, tool: str = "look") -> list[Turn]:
    """So many turns that call a tool, each with the id of its place in the conversation."""
    turns = [
        Turn(text=f"{who} looks {at}.", tool_calls=(tool_call(f"functions.look:{at}", tool, {"path": f"{who}{at}"}),))
        for at in range(count)
    ]
    return [*turns, said(f"{who} has seen all.")]


def both(*names: str) -> Turn:
    """Asks each at once; the ids are like those of the answers' own calls."""
    calls = tuple(
        tool_call(f"functions.look:{at}", f"ask_{name}", {"input": f"Look, {name}."}) for at, name in enumerate(names)
    )
    return Turn(text="I ask.", tool_calls=calls)


def thoughts(run: SteeredRun) -> list[str]:
    return [entry.thought_preview for entry in run.step_log[1:]]


def results(run: SteeredRun) -> list[str]:
    return [record.observation for record in run.trace.state.steps]


def assert_its_own(child: SteeredRun, name: str, count: int, parent: SteeredRun, call_id: str) -> None:
    about = child.session.run
    assert (about.agent_name, about.parent_run_id, about.parent_call_id) == (name, parent.run_id, call_id)
    assert [entry.step for entry in child.step_log] == list(range(count + 1))
    assert thoughts(child) == [f"{name} looks {at}." for at in range(count)]
    assert results(child)[:count] == [f"{name}{at} is empty" for at in range(count)]


@every_way
def test_agents_that_run_side_by_side_have_their_own_runs(way: str) -> None:
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3))
    outer_agent = named("outer", as_tool(named("one", look)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    children = {run.session.run.agent_name: run for run in outer.children}
    assert family(outer)[:2] == ("outer", "success")
    assert len(outer.children) == 2
    for at, name in enumerate(("one", "two")):
        assert_its_own(children[name], name, 3, outer, f"functions.look:{at}")
        assert children[name].outcome == "success"
    assert thoughts(outer) == ["I ask."]


@every_way
def test_agents_of_a_tool_that_run_side_by_side_have_their_own_runs(way: str) -> None:
    """The SDK tells nothing of the tools of an agent that is a tool itself."""
    answer = by_model(
        outer=[both("middle"), said()], middle=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3)
    )
    middle = named("middle", as_tool(named("one", look)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(middle))))
    (child,) = outer.children
    runs = {run.session.run.agent_name: run for run in child.children}
    assert len(child.children) == 2
    for name in ("one", "two"):
        assert runs[name].session.run.parent_run_id == child.run_id
        assert thoughts(runs[name]) == [f"{name} looks {at}." for at in range(3)]
        assert results(runs[name])[:3] == [f"{name}{at} is empty" for at in range(3)]


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_runs_of_one_steered_model_side_by_side_keep_their_own_calls(way: str) -> None:
    scripts = {name: looks(name, 3) for name in ("one", "two")}

    def answer(asked: Asked) -> Turn:
        return scripts[asked.task][asked.answers]

    with place(answer, f"{way}/responses") as here:
        model = openai_model(steering(), here.model("own"))
        agent = fixer(model=model, tools=[look])

        async def together() -> None:
            await asyncio.gather(*(here.aplain(agent, name) for name in scripts))

        here.until(together())
        views = list(model.runs.values())
    assert sorted([entry.thought_preview for entry in view.step_log[1:]] for view in views) == [
        [f"{name} looks {at}." for at in range(3)] for name in scripts
    ]
    assert [view.outcome for view in views] == ["success"] * 2


@whole_and_streamed
def test_agents_within_agents_have_their_own_runs(way: str) -> None:
    inner = named("inner", look)
    answer = by_model(
        outer=[both("one", "two"), said()],
        one=[both("inner"), said()],
        two=[both("inner"), said()],
        inner=looks("inner", 2),
    )
    outer_agent = named("outer", as_tool(named("one", as_tool(inner))), as_tool(named("two", as_tool(inner))))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    assert len(outer.children) == 2
    for child in outer.children:
        (grandchild,) = child.children
        assert_its_own(grandchild, "inner", 2, child, FIRST)


@whole_and_streamed
def test_a_failure_marks_the_call_of_its_own_run_alone(way: str) -> None:
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 2, tool="fail"), two=looks("two", 2))
    outer_agent = named("outer", as_tool(named("one", fail)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    children = {run.session.run.agent_name: run for run in outer.children}
    assert [record.is_error for record in children["one"].trace.state.steps[:2]] == [True, True]
    assert [record.is_error for record in children["two"].trace.state.steps[:2]] == [None, None]
    assert [record.is_error for record in outer.trace.state.steps[:1]] == [None]


@whole_and_streamed
def test_recorded_runs_side_by_side_keep_their_own_calls(way: str) -> None:
    hooks: Any = openai_hooks(steering())
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3))
    tools = [as_tool(named(name, look), hooks=hooks) for name in ("one", "two")]
    with place(answer, way) as here:
        here.plain(named("outer", *tools), hooks=hooks, run_config=here.config())
    logs = sorted([entry.thought_preview for entry in view.step_log[1:]] for view in hooks.runs.values())
    assert logs == [["I ask."], [f"one looks {at}." for at in range(3)], [f"two looks {at}." for at in range(3)]]
