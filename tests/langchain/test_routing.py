"""Hard runs go to the mapped model and come back, in the request alone."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from reasonblocks import Escalate
from reasonblocks.types import Evaluation
from reasonblocks_langchain import middleware
from reasonblocks_langchain.models import effort_settings
from reasonblocks_testing import ScriptedEvaluator
from tests.langchain.scripted import ScriptedModel, by_position, calls, in_order
from tests.langchain.world import QUESTION, Way, agent, both_ways, scripted
from tests.steered import Hostile, speaking, steering

SLOW: dict[str, Any] = {"fsm_thresholds": {"slow_window": 2, "fast_window": 2}, "scorer": lambda step: 0.7}


def thoughtful(count: int) -> list[Any]:
    """Turns whose thinking is signed."""
    turns = [calls("look", id=f"c{at}", path=f"f{at}") for at in range(count)]
    for at, turn in enumerate(turns):
        turn.content = [
            {"type": "thinking", "thinking": f"Hm {at}.", "signature": "sig"},
            {"type": "text", "text": f"Look {at}."},
        ]
    return [*turns, "Seen."]


def block_types(message: AIMessage) -> list[str]:
    return [block["type"] for block in message.content if isinstance(block, dict)]


def test_a_mapped_model_object_gets_the_tools_and_the_guidance() -> None:
    own = scripted(4, model_name="own")
    strong = scripted(4, model_name="strong")
    mw = middleware(steering(model_routing={"SLOW": strong}, **SLOW))
    agent(own, mw).invoke(QUESTION)
    assert [entry.model_id for entry in mw.step_log] == ["own", "own", "strong", "strong", "strong"]
    assert {seen.tools for seen in strong.seen} == {("look",)}
    assert any("[REASONBLOCKS]" in seen.messages[-1].text for seen in strong.seen)


def test_foreign_thinking_stays_out_of_the_request_and_in_the_history() -> None:
    hard = {"scorer": lambda step: 0.1 if "Look 2" in step.thought else 0.7}
    own = ScriptedModel(script=by_position(*thoughtful(4)), model_name="own")
    strong = ScriptedModel(script=by_position(*thoughtful(4)), model_name="strong")
    mw = middleware(steering(model_routing={"SLOW": strong}, **{**SLOW, **hard}))
    result = agent(own, mw).invoke(QUESTION)
    assert [entry.model_id for entry in mw.step_log] == ["own", "own", "strong", "own", "own"]

    def thoughts(messages: Any) -> list[bool]:
        said = [message for message in messages if isinstance(message, AIMessage) and message.tool_calls]
        return [block_types(message)[0] == "thinking" for message in said]

    assert thoughts(strong.seen[0].messages) == [False, False]
    assert thoughts(own.seen[-1].messages) == [True, True, False, True]
    assert thoughts(result["messages"]) == [True] * 4


def test_without_routing_requests_keep_all_thinking() -> None:
    model = ScriptedModel(script=by_position(*thoughtful(2)), model_name="own")
    agent(model, middleware(steering())).invoke(QUESTION)
    said = [message for message in model.seen[-1].messages if isinstance(message, AIMessage)]
    assert [block_types(message)[0] for message in said] == ["thinking", "thinking"]


def test_an_identifier_is_built_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, str]] = []

    def build(name: str) -> ScriptedModel:
        built.append((name, threading.current_thread().name))
        return scripted(4, model_name=name)

    monkeypatch.setattr("langchain.chat_models.init_chat_model", build)
    mw = middleware(steering(model_routing={"SLOW": "strong"}, **SLOW))
    steered = agent(scripted(4), mw)
    asyncio.run(steered.ainvoke(QUESTION))
    asyncio.run(steered.ainvoke(QUESTION))
    assert [name for name, _ in built] == ["strong"]
    assert built[0][1] != threading.main_thread().name


@both_ways
@pytest.mark.parametrize("made", [lambda: "nobody:has-this", Hostile], ids=["a name", "an object"])
def test_a_model_that_cannot_be_built_is_said_once_and_the_run_is_steered(
    way: Way, made: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    model = scripted(5)
    mw = middleware(steering(model_routing={"NORMAL": made(), "SLOW": made()}, **SLOW))
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        way(agent(model, mw))
    assert [(entry.model_id, entry.route) for entry in mw.step_log] == [("scripted-1", None)] * 6
    assert "Step 0 looked again" in str(model.seen[1].messages[-1].content)
    said = [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]
    assert [text.split(": ")[1].split(" cannot")[0] for text in said] == ["the model for NORMAL", "the model for SLOW"]


def test_a_routed_call_is_written_for_the_model_that_gets_it() -> None:
    own = scripted(3, model_name="gpt-x", provider="openai")
    strong = scripted(3, model_name="claude-x", provider="anthropic")
    agent(own, middleware(steering(model_routing={"SLOW": strong}, placement="system", **SLOW))).invoke(QUESTION)
    assert all(isinstance(seen.system, str) for seen in own.seen)
    assert all(seen.system[0]["cache_control"] == {"type": "ephemeral"} for seen in strong.seen)


# ------------------------------------------------------------ more effort for a stuck run

HARD: dict[str, Any] = {
    "evaluator": ScriptedEvaluator([Evaluation()] * 40),
    "escalate": Escalate(effort="high", after=0, dwell=2, times=1),
}


class ThinkingModel(ScriptedModel):
    """A model that takes an effort, as those of OpenAI and of Anthropic do."""

    reasoning_effort: str | None = None
    _efforts: list[Any] = PrivateAttr(default_factory=list)

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Any:
        self._efforts.append(kwargs.get("reasoning_effort"))
        return super()._turn(messages, kwargs)


def stuck() -> Any:
    return by_position(*[calls("look", id=f"c{at}", path="same") for at in range(8)], "Seen.")


@both_ways
def test_a_stuck_run_gets_more_effort_and_goes_back(way: Way) -> None:
    model = ThinkingModel(script=stuck())
    mw = middleware(steering(**HARD))
    way(agent(model, mw))
    assert model._efforts == [None] * 5 + ["high"] * 2 + [None] * 2
    assert [entry.effort for entry in mw.step_log] == [None] * 5 + ["high"] * 2 + [None] * 2


@both_ways
def test_a_model_without_efforts_is_called_as_it_is(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    mw = middleware(steering(**HARD))
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        way(agent(ScriptedModel(script=stuck()), mw))
    assert {entry.effort for entry in mw.step_log} == {None}
    assert [record.getMessage().count("has no reasoning_effort") for record in caplog.records] == [1]


# ------------------------------------------------------------ an advisor


@both_ways
def test_a_chat_model_gives_advice(way: Way) -> None:
    wise = ScriptedModel(script=in_order("Read the log."))
    told = [*[Evaluation()] * 4, speaking(4), *[Evaluation()] * 40]
    mw = middleware(steering(evaluator=ScriptedEvaluator(told), advisor=wise))
    way(agent(ScriptedModel(script=stuck()), mw))
    (entry,) = [entry for entry in mw.step_log if entry.advisor_ms is not None]
    assert entry.intervention_texts == (
        'Step 4 looked again. Read what it said. Another model, asked for advice, says: "Read the log."',
    )
    assert (entry.advisor_tokens, len(wise.seen), wise.seen[0].tools) == (110, 1, ())


def test_nothing_of_an_advisor_is_in_the_agents_stream() -> None:
    wise = ScriptedModel(script=in_order("Read the log."))
    evaluator = ScriptedEvaluator([*[Evaluation()] * 4, speaking(4), *[Evaluation()] * 40])
    mw = middleware(steering(evaluator=evaluator, advisor=wise))
    streamed = agent(ScriptedModel(script=stuck()), mw).stream(QUESTION, stream_mode="messages")
    assert not any("Read" in message.text for message, _ in streamed)
    assert len(wise.seen) == 1


def test_a_model_with_settings_of_reasoning_gets_the_effort_in_them() -> None:
    class Reasoning(ThinkingModel):
        reasoning: dict[str, Any] | None = None

    model = Reasoning(script=stuck(), reasoning={"summary": "auto", "effort": "low"})
    assert effort_settings(model, "high") == {"reasoning": {"summary": "auto", "effort": "high"}}
    assert effort_settings(Reasoning(script=stuck()), "high") == {"reasoning_effort": "high"}
