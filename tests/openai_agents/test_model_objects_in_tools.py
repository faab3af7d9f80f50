"""The agent of a tool that holds a model object asks it past us: its steps are known all the same."""

from __future__ import annotations

from typing import Any

from agents import Agent

from reasonblocks.testing import Turn
from reasonblocks.testing.server import Asked
from reasonblocks_openai_agents import SteeredRun, steering_of
from tests.openai_agents.world import Place, by_model, call, fixer, looks, place, said, steering, whole_and_streamed

STEPS = 3
TURNS: dict[str, list[Turn]] = {"own": [call("ask", input="Look."), said()], "inner": looks(STEPS)}


def child_of(at: Place) -> SteeredRun:
    """The run of the agent of the tool, after a run of the agent that has it."""
    reader: Agent[Any] = fixer(name="reader", model=at.model("inner"))
    result = at.run(steering(), fixer(tools=[reader.as_tool("ask", "Asks.")]))
    (child,) = steering_of(result).children
    return child


def asked_inside(at: Place) -> list[Asked]:
    return [request for request in at.requests if request.model == "inner"]


@whole_and_streamed
def test_each_of_its_calls_has_an_entry_with_what_it_called(way: str) -> None:
    with place(by_model(**TURNS), way) as at:
        log = child_of(at).step_log
        assert [entry.tool_calls for entry in log] == [("look",), ("look",), ("look",), ()]


@whole_and_streamed
def test_no_entry_says_that_it_was_not_called(way: str) -> None:
    with place(by_model(**TURNS), way) as at:
        assert [entry.error for entry in child_of(at).step_log] == [None] * (STEPS + 1)


@whole_and_streamed
def test_each_of_its_steps_is_judged(way: str) -> None:
    with place(by_model(**TURNS), way) as at:
        assert [entry.difficulty for entry in child_of(at).step_log] == [None, 0.4, 0.4, 0.4]


@whole_and_streamed
def test_what_is_for_its_first_call_is_in_no_other(way: str) -> None:
    with place(by_model(**TURNS), way) as at:
        child_of(at)
        rules = ["Check before you say" in str(request.body) for request in asked_inside(at)]
        assert rules == [True, False, False, False]
