"""What one request carries of a decision, and which model it may go to."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from reasonblocks.types import FSMState, StepDecision
from reasonblocks_langchain._request import steer, with_message, with_tail, without_foreign_thinking
from reasonblocks_langchain.models import chat_model, model_name, takes_cache_control
from tests.langchain.scripted import ScriptedModel

SAID = StepDecision(step=1, fsm_state=FSMState.NORMAL, guidance="[REASONBLOCKS]\nLook up.", placement="system")
MESSAGES: list[AnyMessage] = [HumanMessage("Fix it.")]


def test_an_agent_without_a_prompt_gets_the_guidance_alone() -> None:
    assert steer(None, MESSAGES, SAID, cache_control=False)["system_message"].content == SAID.guidance


def test_the_system_message_keeps_what_else_it_had() -> None:
    system = SystemMessage("Base.", id="s1", name="boss")
    changed = steer(system, MESSAGES, SAID, cache_control=False)["system_message"]
    assert (changed.id, changed.name, system.content) == ("s1", "boss", "Base.")


def test_the_tail_joins_content_blocks_as_a_block() -> None:
    (last,) = with_tail([HumanMessage([{"type": "text", "text": "Fix it."}])], "Look up.")
    assert last.content == [{"type": "text", "text": "Fix it."}, {"type": "text", "text": "Look up."}]


def test_a_message_of_its_own_follows_a_tool_result() -> None:
    result = ToolMessage("ok", tool_call_id="c")
    messages = with_message([*MESSAGES, result], "Look up.")
    assert (messages[-2].content, messages[-1].content, type(messages[-1])) == ("ok", "Look up.", HumanMessage)


# --- thinking that another model signed


def thinking(model: str | None, *rest: Any, **fields: Any) -> AIMessage:
    signed = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    return AIMessage([signed, *rest], response_metadata={"model_name": model} if model else {}, **fields)


def test_thinking_of_another_model_is_left_out_and_kept_in_the_history() -> None:
    foreign = thinking("claude-a", {"type": "text", "text": "yes"})
    sent = without_foreign_thinking([foreign], "claude-b", "claude-a")
    assert sent[0].content == [{"type": "text", "text": "yes"}]
    assert len(foreign.content) == 2


def test_thinking_of_the_called_model_is_sent() -> None:
    messages: list[AnyMessage] = [thinking("claude-a-20250101", "yes")]
    assert without_foreign_thinking(messages, "anthropic:claude-a", "claude-b") is messages


def test_an_answer_that_does_not_say_its_model_is_the_agents() -> None:
    messages: list[AnyMessage] = [thinking(None, "yes")]
    assert without_foreign_thinking(messages, "claude-a", "claude-a") is messages
    assert without_foreign_thinking(messages, "claude-b", "claude-a")[0].content == ["yes"]


def test_reasoning_that_nobody_signed_is_sent_to_anyone() -> None:
    plain = AIMessage([{"type": "reasoning", "reasoning": "hm"}], response_metadata={"model_name": "a"})
    messages: list[AnyMessage] = [plain]
    assert without_foreign_thinking(messages, "b", "a") is messages


@pytest.mark.parametrize(
    "block",
    [
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "reasoning", "encrypted_content": "xyz", "summary": []},
        {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "xyz"}},
    ],
)
def test_every_form_of_sealed_thinking_is_left_out(block: dict[str, Any]) -> None:
    foreign = AIMessage([block, "yes"], response_metadata={"model_name": "a"})
    assert without_foreign_thinking([foreign], "b", "a")[0].content == ["yes"]


def test_an_answer_of_nothing_but_foreign_thinking_is_left_out_whole() -> None:
    call: Any = {"id": "c", "name": "look", "args": {}}
    assert without_foreign_thinking([thinking("a")], "b", "a") == []
    assert len(without_foreign_thinking([thinking("a", tool_calls=[call])], "b", "a")) == 1


# --- models


@pytest.mark.parametrize(
    ("provider", "name", "takes"),
    [
        ("anthropic", "whatever", True),
        ("someone", "claude-sonnet-4-5", True),
        ("someone", "gpt-5", False),
        ("openai", "claude-sonnet-4-5", False),
        ("azure", "claude-sonnet-4-5", False),
        ("amazon_bedrock", "anthropic.claude-sonnet-4-5-v1:0", False),
        ("google_vertexai", "claude-sonnet-4-5", False),
    ],
)
def test_cache_control_goes_to_anthropic_only(provider: str, name: str, takes: bool) -> None:
    model = ScriptedModel(script=lambda messages: "", provider=provider, model_name=name)
    assert takes_cache_control(model) is takes


def test_a_real_anthropic_and_a_real_openai_model_are_told_apart() -> None:
    anthropic = pytest.importorskip("langchain_anthropic").ChatAnthropic(model="claude-sonnet-4-5", api_key="none")
    openai = pytest.importorskip("langchain_openai").ChatOpenAI(model="claude-like", api_key="none")
    assert (takes_cache_control(anthropic), takes_cache_control(openai)) == (True, False)
    assert (model_name(anthropic), model_name(openai)) == ("claude-sonnet-4-5", "claude-like")


def test_a_chat_model_may_be_routed_to() -> None:
    model = ScriptedModel(script=lambda messages: "")
    assert chat_model(model) is model


def test_what_is_no_model_is_said_so() -> None:
    with pytest.raises(TypeError, match="no chat model"):
        chat_model(3)


def seconds(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=1, repeat=7))


def test_a_long_history_without_sealed_thinking_costs_little_more_than_to_walk_it() -> None:
    said: Any = {"model_name": "claude-sonnet-4-20250514"}
    turn: list[AnyMessage] = [AIMessage("x", response_metadata=said), ToolMessage("r", tool_call_id="c")]
    messages = turn * 4_000
    assert without_foreign_thinking(messages, "claude-x", "claude-y") is messages
    walk = seconds(lambda: [message.content for message in messages])
    assert seconds(lambda: without_foreign_thinking(messages, "claude-x", "claude-y")) < 15 * walk


def test_a_message_between_foreign_thinking_stays_the_same_object() -> None:
    plain = AIMessage("plain", response_metadata={"model_name": "a"})
    messages: list[AnyMessage] = [thinking("a"), plain, thinking("a", "yes"), thinking("b", "mine")]
    sent = without_foreign_thinking(messages, "b", "a")
    assert [message.content for message in sent] == ["plain", ["yes"], messages[3].content]
    assert sent[0] is plain
