"""Where the server keeps the conversation, requests hold deltas alone: steps are known without the history."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agents import Agent

from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    PROMPT,
    TASK,
    Judged,
    Place,
    call,
    crash,
    fixer,
    in_turn,
    look,
    looks,
    place,
    said,
    steering,
)

RESPONSES = pytest.mark.parametrize("way", ["run/responses", "run_sync/responses", "run_streamed/responses"])
CHAINS = pytest.mark.parametrize("chain", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
"""Chat Completions keep nothing."""


@CHAINS
@RESPONSES
def test_requests_hold_what_is_new_alone(chain: dict[str, Any], way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        result = here.run(steering(), fixer(), **chain)
        assert [asked.texts for asked in here.requests] == [(TASK,), ("f0 is empty",), ("f1 is empty",)]
        assert steering_of(result).outcome == "success"


@CHAINS
@RESPONSES
def test_steps_have_their_thought_and_their_results(chain: dict[str, Any], way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    turns = (call("look", "c0", "I look.", path="a"), call("crash", "c1", "I try.", path="b"), said())
    with place(in_turn(*turns), way) as here:
        here.run(rb, fixer(tools=[look, crash]), **chain)
    assert judged.thoughts == ["I look.", "I try.", "All seen."]
    assert [[(one.name, one.is_error) for one in step.tool_results] for step in judged.steps] == [
        [("look", None)],
        [("crash", True)],
        [],
    ]


@CHAINS
@RESPONSES
@pytest.mark.parametrize("options", [{}, {"placement": "tail"}, {"placement": "system"}])
def test_guidance_stands_in_the_instructions_whatever_the_client_says(
    chain: dict[str, Any], way: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with place(in_turn(*looks(4)), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        result = here.run(steering(**options), fixer(), **chain)
        assert ["[REASONBLOCKS]" in asked.system for asked in here.requests] == [True, True, False, False, True]
        assert all(asked.system.startswith(PROMPT) for asked in here.requests)
        assert {entry.placement for entry in steering_of(result).step_log} == {"system"}
    said = [message for message in caplog.messages if "placement='system'" in message]
    assert len(said) == (0 if options.get("placement") == "system" else 1)


@CHAINS
@RESPONSES
def test_a_run_that_asks_for_the_tail_itself_is_refused(chain: dict[str, Any], way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        with pytest.raises(ConfigError, match="placement"):
            here.run(steering(), fixer(), placement="tail", **chain)
        assert here.requests == []


@RESPONSES
def test_a_run_may_go_on_from_a_response(way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    with place(in_turn(said(), *looks(1)), way) as here:
        first = here.run(rb, fixer())
        judged.steps.clear()
        second = here.run(rb, fixer(), "And now?", previous_response_id=first.last_response_id)
        assert [asked.texts for asked in here.requests[1:]] == [("And now?",), ("f0 is empty",)]
        assert steering_of(second).session.run.task == "And now?"
    assert judged.thoughts == ["I look at file 0.", "All seen."]


def test_a_conversation_is_the_session_of_its_runs() -> None:
    with place(in_turn(*looks(1))) as here:
        result = here.run(steering(), fixer(), conversation_id="conv")
        assert steering_of(result).session.run.session_id == "conv"


@CHAINS
@RESPONSES
def test_a_handoff_stays_in_the_servers_conversation(chain: dict[str, Any], way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    agent = fixer(handoffs=[fixer(name="second", model="other")])
    with place(in_turn(call("transfer_to_second", "c0", "You go on."), *looks(2)[1:]), way) as here:
        run = steering_of(here.run(rb, agent, **chain))
        assert [entry.model_id for entry in run.step_log] == ["own", "other", "other"]
    assert judged.thoughts == ["You go on.", "I look at file 1.", "All seen."]


@CHAINS
@RESPONSES
def test_an_agent_of_a_tool_is_guided_in_its_instructions(chain: dict[str, Any], way: str) -> None:
    inner = fixer(name="inner", model="inner")
    agent: Agent[Any] = fixer(tools=[inner.as_tool("ask", "Asks.")])

    def answer(asked: Any) -> Any:
        outer = [call("ask", "a0", input="Look."), said()]
        return (looks(1) if asked.model == "inner" else outer)[asked.answers]

    with place(answer, way) as here:
        (child,) = steering_of(here.run(steering(placement="tail"), agent, **chain)).children
        assert child.outcome == "success"
        assert {entry.placement for entry in child.step_log} == {"system"}
        assert all("[REASONBLOCKS]" in asked.system for asked in of_model(here, "inner"))


def of_model(here: Place, model: str) -> list[Any]:
    return [asked for asked in here.requests if asked.model == model]
