"""A tool that a budget limits is refused in a real agent, once its calls are used up."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from reasonblocks import Budget
from reasonblocks_langchain import SteeringMiddleware, middleware
from tests.budget import auto, lines
from tests.langchain.scripted import ScriptedModel, by_position
from tests.langchain.world import QUESTION, Way, agent, scripted, thread, three_ways

USED_UP = "look may not be called any more: its 2 calls are used up."
TWO = Budget(tools={"look": 2})


def limited(**options: Any) -> SteeringMiddleware:
    return middleware(auto(**{"budget": TWO, **options}), run_id="run")


def results(state: Any) -> list[tuple[str, str]]:
    return [(message.text, message.status) for message in state["messages"] if isinstance(message, ToolMessage)]


@three_ways
def test_calls_beyond_the_limit_are_answered_with_an_error(way: Way) -> None:
    mw = limited()
    found = results(way(agent(scripted(4), mw)))
    assert found == [("f0 is empty", "success"), ("f1 is empty", "success"), (USED_UP, "error"), (USED_UP, "error")]
    assert lines(mw.step_log) == ["", "Budget: 1 of 2 calls of look is left.", USED_UP, "", ""]
    assert mw.runs["run"].outcome == "success"


@three_ways
def test_parallel_calls_are_refused_in_their_order(way: Way) -> None:
    calls = [{"name": "look", "args": {"path": f"f{at}"}, "id": f"c{at}"} for at in range(4)]
    model = ScriptedModel(script=by_position(AIMessage("I look.", tool_calls=calls), "Done."))
    found = results(way(agent(model, limited())))
    assert [text for text, _ in found] == ["f0 is empty", "f1 is empty", USED_UP, USED_UP]


def test_each_run_of_a_thread_has_its_own() -> None:
    mw = limited()
    made = agent(scripted(2), mw, checkpointer=InMemorySaver())
    made.invoke(QUESTION, thread("one"))
    assert USED_UP not in [text for text, _ in results(made.invoke(QUESTION, thread("two")))]


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"budget": Budget(tools={"edit": 1})}])
def test_other_tools_and_observed_runs_are_left_alone(options: Any) -> None:
    assert all(status == "success" for _, status in results(agent(scripted(4), limited(**options)).invoke(QUESTION)))


def test_only_a_budget_of_tools_wraps_them() -> None:
    assert type(middleware(auto())) is SteeringMiddleware
    assert type(middleware(auto(), budget=TWO)) is not SteeringMiddleware
