"""Steering is a guest: what goes wrong around a call never reaches the agent, and nothing of the agent's is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage

from reasonblocks.types import Step
from reasonblocks_langchain import middleware
from reasonblocks_langchain._convert import completed_step, outcome_of
from tests.langchain.scripted import ScriptedModel, by_position, calls
from tests.langchain.world import Way, agent, both_ways, invoke, scripted
from tests.steered import steering


class Once(list[Any]):
    """A list that fails the first time it is read: by us."""

    failed = False

    def __iter__(self) -> Iterator[Any]:
        if not self.failed:
            self.failed = True
            raise RuntimeError("not yet")
        return super().__iter__()


class Fragile(AgentMiddleware[Any, Any, Any]):
    """Below us: answers whose messages fail when they are first read."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        response = handler(request)
        response.result = Once(response.result)
        return response

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        response = await handler(request)
        response.result = Once(response.result)
        return response


@both_ways
def test_an_answer_that_cannot_be_recorded_reaches_the_agent_as_it_is(way: Way) -> None:
    mw = middleware(steering(strict=False))
    result = way(agent(scripted(2), mw, Fragile()))
    assert result["messages"][-1].text == "All seen."
    assert [entry.step for entry in mw.step_log] == [0, 1, 2]


class Unsayable(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@both_ways
def test_a_model_error_without_a_text_comes_out_unchanged(way: Way) -> None:
    error = Unsayable()
    mw = middleware(steering(), run_id="run")
    with pytest.raises(Unsayable) as caught:
        way(mw.watch(agent(ScriptedModel(script=by_position(error)), mw)))
    assert caught.value is error
    assert mw.step_log[0].error == "Unsayable"
    assert mw.runs["run"].outcome == "failure: Unsayable"


def test_a_scorer_that_changes_its_step_changes_no_message() -> None:
    def scorer(step: Step) -> float:
        for call in step.tool_calls:
            assert isinstance(call.arguments, dict)
            call.arguments["path"] = "changed"
        return 0.4

    model = scripted(2)
    result = invoke(agent(model, middleware(steering(scorer=scorer))))
    answers = [message for message in result["messages"] if isinstance(message, AIMessage)]
    assert [call["args"] for answer in answers for call in answer.tool_calls] == [{"path": "f0"}, {"path": "f1"}]


def test_no_part_of_the_arguments_is_shared_with_the_message() -> None:
    answer = calls("look", id="c", deep={"list": [{"at": 1}]})
    answer.id = "a"
    step = completed_step([answer], "a")
    assert step is not None
    for call in (*step.tool_calls, *outcome_of(answer, model="m", latency_ms=0.0).tool_calls):
        shown: Any = call.arguments
        assert shown == answer.tool_calls[0]["args"]
        shown["deep"]["list"][0]["at"] = 2
        shown["deep"]["list"].append(3)
    assert answer.tool_calls[0]["args"] == {"deep": {"list": [{"at": 1}]}}
