"""An agent within a tool has a run of its own, which knows whose tool it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.tool_context import ToolContext
from openai import BadRequestError

from reasonblocks_openai_agents import (
    SteeredRun,
    openai_model,
    openai_run,
    openai_run_streamed,
    openai_run_sync,
    steering_of,
)
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Answer, Asked
from tests.openai_agents.world import (
    Place,
    as_tool,
    asking,
    by_model,
    call,
    crash,
    every_way,
    family,
    fixer,
    look,
    looks,
    named,
    one_by_one,
    place,
    read,
    said,
    whole_and_streamed,
)
from tests.steered import steering

# ------------------------------------------------------------ agents as tools


@every_way
def test_the_agent_of_a_tool_is_guided_by_its_own_steps(way: str) -> None:
    inner = named("inner", look)
    answer = by_model(outer=[asking("inner", "Look."), said()], inner=looks(4))
    with place(answer, way) as here:
        here.run(steering(), named("outer", as_tool(inner)))
        guided = [spoke for spoke, asked in zip(here.guided, here.requests) if asked.model == "inner"]
    assert guided == [True, True, False, False, True]


def with_question(**turns: Sequence[Turn]) -> Answer:
    """As `by_model`; the calls of the agent that is asked have ids of their own for each question."""

    def answer(asked: Asked) -> Turn:
        if asked.model in turns:
            return turns[asked.model][asked.answers]
        return looks(2, mark=asked.task)[asked.answers]

    return answer


@every_way
def test_two_agents_at_once_have_two_runs(way: str) -> None:
    answer = with_question(outer=[asking("inner", "a", "b"), said()])
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(named("inner", look)))))
        assert family(outer) == ("outer", "success", [("inner", "success", [])] * 2)
        assert {child.session.run.task: child.session.run.parent_call_id for child in outer.children} == {
            "a": "inner a",
            "b": "inner b",
        }
        assert [[entry.step for entry in child.step_log] for child in outer.children] == [[0, 1, 2]] * 2


@whole_and_streamed
def test_agents_are_told_apart_however_deep_they_are(way: str) -> None:
    deepest = named("inner", look)
    third = named("third", as_tool(deepest))
    second = named("second", as_tool(third))
    answer = with_question(
        outer=[asking("second", "2"), said()],
        second=[asking("third", "3"), asking("third", "3 again"), said()],
        third=[asking("inner", "4"), said()],
    )
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(second))))
        inner: Any = ("third", "success", [("inner", "success", [])])
        assert family(outer) == ("outer", "success", [("second", "success", [inner, inner])])


@whole_and_streamed
def test_an_agent_that_hands_off_inside_a_tool_stays_in_its_run(way: str) -> None:
    inner = named("inner", look, handoffs=[named("other", look)])
    answer = by_model(
        outer=[asking("inner", "Look."), said()],
        inner=[call("transfer_to_other", "c0")],
        other=[said(), call("look", "c1", path="a"), said()],
    )
    with place(answer, way) as here:
        (child,) = steering_of(here.run(steering(), named("outer", as_tool(inner)))).children
        assert [entry.model_id for entry in child.step_log] == ["inner", "other", "other"]


@whole_and_streamed
def test_a_tool_that_raises_is_an_error_of_the_agent_that_called_it(way: str) -> None:
    inner = named("inner", crash)
    answer = by_model(outer=[asking("inner", "Try."), said()], inner=[call("crash", "c0", path="a"), said()])
    seen: dict[str, Any] = {}

    def scorer(step: Any) -> float:
        seen.update({result.call_id: result.is_error for result in step.tool_results})
        return 0.4

    with place(answer, way) as here:
        outer = steering_of(here.run(steering(scorer=scorer), named("outer", as_tool(inner))))
        assert family(outer) == ("outer", "success", [("inner", "success", [])])
        assert seen == {"c0": True, "inner Try.": None}


def failing(asked: Asked) -> Turn:
    if asked.model == "inner":
        raise LookupError("no such model")
    return [asking("inner", "Try."), said()][asked.answers]


@every_way
def test_a_run_whose_model_fails_has_failed_and_its_parent_has_not(way: str) -> None:
    with place(failing, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(named("inner", look)))))
        assert family(outer) == ("outer", "success", [("inner", "failure: BadRequestError", [])])
        (child,) = outer.children
        assert "no such model" in (child.step_log[0].error or "")


@whole_and_streamed
def test_a_run_whose_model_fails_has_failed_however_deep_it_is(way: str) -> None:
    def answer(asked: Asked) -> Turn:
        return [asking("middle", "?"), said()][asked.answers] if asked.model == "outer" else failing(asked)

    middle = named("middle", as_tool(named("inner", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(middle))))
        inner: Any = ("inner", "failure: BadRequestError", [])
        assert family(outer) == ("outer", "success", [("middle", "success", [inner])])


@whole_and_streamed
def test_a_run_that_takes_too_many_turns_has_failed(way: str) -> None:
    answer = by_model(outer=[asking("inner", "Try."), said()], inner=looks(9))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(named("inner", look), max_turns=2))))
        assert [child.outcome for child in outer.children] == ["failure: unknown"]


@whole_and_streamed
def test_what_an_agent_of_a_tool_raises_can_end_the_whole_run(way: str) -> None:
    inner = as_tool(named("inner", look), failure_error_function=None)
    with place(failing, way) as here, pytest.raises(Exception, match="no such model") as caught:
        here.run(steering(), named("outer", inner))
    outer = steering_of(caught.value)
    kind = type(caught.value).__name__
    assert family(outer) == ("outer", f"failure: {kind}", [("inner", f"failure: {kind}", [])])


@whole_and_streamed
def test_a_streamed_agent_of_a_tool_is_steered(way: str) -> None:
    answer = by_model(outer=[asking("inner", "Look."), said()], inner=looks(3))
    with place(answer, way) as here:
        inner = as_tool(named("inner", look), on_stream=lambda event: None)
        outer = steering_of(here.run(steering(), named("outer", inner)))
        assert family(outer) == ("outer", "success", [("inner", "success", [])])
        assert [entry.step for entry in outer.children[0].step_log] == [0, 1, 2, 3]


# ------------------------------------------------------------ tools that run an agent themselves


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


def test_runs_side_by_side_have_no_parent() -> None:
    async def both() -> list[Any]:
        agent = named("outer", look)
        return await asyncio.gather(*(openai_run(rb, agent, str(at), run_config=here.config()) for at in range(3)))

    rb = steering()
    with place(by_model(outer=looks(1))) as here:
        assert [steering_of(one).session.run.parent_run_id for one in here.until(both())] == [None] * 3


# ------------------------------------------------------------ parents


@whole_and_streamed
def test_a_run_that_failed_before_is_not_the_parent_of_the_next(way: str) -> None:
    failing = [looks(1)[0], Turn(error=LookupError("no such thing"))]
    with place(one_by_one(*failing, *looks(1)), way) as at:
        rb = steering()
        model = openai_model(rb, at.model("own"))

        async def one_after_another() -> str | None:
            with pytest.raises(BadRequestError):
                await at.aplain(fixer(model=model))
            result = await asyncio.create_task(at.arun(rb, fixer()))
            return steering_of(result).session.run.parent_run_id

        assert at.until(one_after_another()) is None
