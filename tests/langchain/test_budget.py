"""The `recursion_limit` of a real agent is told in calls, and its last call is the last whose answer comes through."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from reasonblocks import Budget
from reasonblocks_langchain import SteeringMiddleware, middleware
from tests.budget import LANDING, LAST, auto, lines, numbered
from tests.langchain.scripted import ScriptedModel, calls, in_order
from tests.langchain.test_second_look import AROUND
from tests.langchain.world import QUESTION, Way, agent, scripted, thread, three_ways

ENDLESS = 60


def ended(limit: int, around: Any = ((), ())) -> tuple[SteeringMiddleware, int]:
    """The steering of an agent that never answers, and the number of its calls when LangGraph ended it."""
    model, mw, (before, after) = scripted(ENDLESS), middleware(auto()), around
    with pytest.raises(GraphRecursionError):
        agent(model, *before, mw, *after).invoke(QUESTION, {"recursion_limit": limit})
    return mw, len(model.seen)


def comes_through(limit: int, call: int, around: Any = ((), ())) -> bool:
    """Return True if the agent's answer comes through that calls a tool at each call before this one."""
    before, after = around
    made = agent(scripted(call), *before, middleware(auto()), *after)
    try:
        return str(made.invoke(QUESTION, {"recursion_limit": limit})["messages"][-1].text) == "All seen."
    except GraphRecursionError:
        return False


@three_ways
def test_a_recursion_limit_is_told_in_calls(way: Way) -> None:
    model = scripted(ENDLESS)
    with middleware(auto(), run_id="run") as mw, pytest.raises(GraphRecursionError):
        way(agent(model, mw), QUESTION, {"recursion_limit": 40})
    assert numbered(mw.step_log) == {6: "Budget: at most 6 calls are left.", 9: LANDING, 11: LAST}
    assert [LAST in seen.messages[-1].text for seen in model.seen][:12] == [False] * 11 + [True]
    assert mw.runs["run"].outcome == "failure: GraphRecursionError"


@pytest.mark.parametrize("limit", range(8, 30))
def test_the_last_call_is_the_last_whose_answer_comes_through(limit: int) -> None:
    mw, made = ended(limit)
    last = lines(mw.step_log).index(LAST)
    assert (comes_through(limit, last), comes_through(limit, last + 1)) == (True, False)
    assert made - last in (1, 2)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("limit", [20, 31, 45])
def test_beside_other_middlewares_no_more_answers_come_through_than_were_told(limit: int, around: Any) -> None:
    mw, made = ended(limit, around)
    newest = max(call for call in range(made) if comes_through(limit, call, around))
    told = lines(mw.step_log)
    assert any(told)
    for number, line in enumerate(told):
        if found := re.search(r"[Aa]t most (\d+) calls", line):
            assert number + int(found[1]) > newest
        assert line != LAST or number >= newest


def test_each_run_of_a_thread_has_the_whole_limit() -> None:
    turns: list[Any] = [*(calls("look", "I look.", id=f"c{at}", path=f"f{at}") for at in range(2)), "Done."]
    model, mw = ScriptedModel(script=in_order(*turns, *turns)), middleware(auto(), run_id="run")
    made = agent(model, mw, checkpointer=InMemorySaver())
    for _ in range(2):
        made.invoke(QUESTION, {**thread(), "recursion_limit": 40})
    assert [lines(view.step_log) for view in mw.runs.values()] == [[""] * 3] * 2


def test_an_option_of_the_middleware_is_enough() -> None:
    mw = middleware(auto(budget=Budget(calls=100)), budget="auto")
    with pytest.raises(GraphRecursionError):
        agent(scripted(ENDLESS), mw).invoke(QUESTION, {"recursion_limit": 20})
    assert LAST in lines(mw.step_log)


def test_the_default_limit_is_far_away() -> None:
    mw = middleware(auto())
    agent(scripted(9), mw).invoke(QUESTION)
    assert lines(mw.step_log) == [""] * 10
