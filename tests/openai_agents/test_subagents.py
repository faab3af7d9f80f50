"""An agent that is a tool has a run of its own, which knows whose tool it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agents import Agent

from reasonblocks.testing import Turn, tool_call
from reasonblocks.testing.server import Answer, Asked
from reasonblocks_openai_agents import SteeredRun, steering_of
from tests.openai_agents.world import (
    by_model,
    call,
    crash,
    every_way,
    fixer,
    look,
    looks,
    place,
    said,
    steering,
    whole_and_streamed,
)


def as_tool(agent: Agent[Any], **options: Any) -> Any:
    return agent.as_tool(f"ask_{agent.name}", "Asks it.", **options)


def named(name: str, *tools: Any, **options: Any) -> Agent[Any]:
    """An agent whose model has its name, so that a script can tell whom it answers."""
    return fixer(name=name, model=name, tools=list(tools), **options)


def asking(name: str, *questions: str) -> Turn:
    calls = tuple(tool_call(f"{name} {one}", f"ask_{name}", {"input": one}) for one in questions)
    return Turn(text="I ask.", tool_calls=calls)


def family(run: SteeredRun) -> Any:
    """A run's agent and outcome, and the same of the runs within it."""
    return (run.session.run.agent_name, run.outcome, [family(child) for child in run.children])


@every_way
def test_an_agent_as_a_tool_has_a_run_of_its_own(way: str) -> None:
    inner = named("inner", look)
    answer = by_model(outer=[asking("inner", "Look twice."), said()], inner=looks(2))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(inner)), run_id="outer-run"))
        (child,) = outer.children
        assert family(outer) == ("outer", "success", [("inner", "success", [])])
        assert [entry.step for entry in child.step_log] == [0, 1, 2]
        assert [entry.step for entry in outer.step_log] == [0, 1]
        assert child.run_id != "outer-run"
        told = child.session.run
        assert (told.parent_run_id, told.parent_call_id, told.task) == ("outer-run", "inner Look twice.", "Look twice.")


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


@every_way
def test_agents_of_an_agent_of_a_tool_have_runs_of_their_own(way: str) -> None:
    middle = named("middle", as_tool(named("inner", look)))
    answer = with_question(outer=[asking("middle", "?"), said()], middle=[asking("inner", "a", "b"), said()])
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(middle))))
        assert family(outer) == ("outer", "success", [("middle", "success", [("inner", "success", [])] * 2)])
        (run,) = outer.children
        assert [[entry.step for entry in child.step_log] for child in run.children] == [[0, 1, 2]] * 2
        assert [entry.step for entry in run.step_log] == [0, 1]
        assert {child.session.run.parent_run_id for child in run.children} == {run.run_id}


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
