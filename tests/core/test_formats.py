"""The readers of the message formats give the same step for the same answer, as dictionaries and as objects."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.messages import MAX_COPIED, anthropic, langchain, openai, openai_chat, plain
from reasonblocks.types import Step, ToolCall, ToolResult, Usage

ANSWER = Step(
    thought="I look.", reasoning="Which file?", tool_calls=(ToolCall(id="c1", name="look", arguments={"path": "a"}),)
)
LANGCHAIN = {
    "content": [{"type": "thinking", "thinking": "Which file?"}, {"type": "text", "text": "I look."}],
    "tool_calls": [{"id": "c1", "name": "look", "args": {"path": "a"}}],
}
CHAT = {
    "role": "assistant",
    "content": "I look.",
    "reasoning_content": "Which file?",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}}],
}
OPENAI: list[dict[str, Any]] = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Which file?"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"path": "a"}'},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Which file?", "signature": "s"},
    {"type": "text", "text": "I look."},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    {"type": "tool_use", "id": "c1", "name": "mcp__files__look", "input": {"path": "a"}},
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def as_object(value: Mapping[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**value)


def test_one_answer_is_one_step_in_every_format() -> None:
    assert langchain.answer_of(LANGCHAIN) == openai.answer_of(OPENAI) == anthropic.answer_of(ANTHROPIC) == ANSWER
    assert openai_chat.answer_of(CHAT) == ANSWER


def test_objects_are_read_by_attribute() -> None:
    assert langchain.answer_of(as_object(LANGCHAIN)) == ANSWER
    assert openai.answer_of([as_object(item) for item in OPENAI]) == ANSWER
    assert anthropic.answer_of([as_object(block) for block in ANTHROPIC]) == ANSWER
    call = as_object({"id": "c1", "function": as_object(CHAT["tool_calls"][0]["function"])})  # type: ignore[index]
    assert openai_chat.answer_of(as_object({**CHAT, "tool_calls": [call]})) == ANSWER


def test_a_failed_result_is_an_error_in_every_format() -> None:
    failed = ToolResult(call_id="c1", name="", output="No such file.", is_error=True)
    message = {"tool_call_id": "c1", "content": "No such file.", "status": "error"}
    item = {"type": "function_call_output", "call_id": "c1", "output": "No such file.", "status": "failed"}
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "No such file.", "is_error": True}
    assert langchain.result_of(message, {}) == openai.result_of(item) == anthropic.result_of(block) == failed


def test_input_tokens_include_cached_ones_in_every_format() -> None:
    message = {"input_tokens": 100, "output_tokens": 9, "input_token_details": {"cache_read": 70, "cache_creation": 20}}
    response = {
        "input_tokens": 100,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 20},
    }
    answer = {"input_tokens": 10, "output_tokens": 9, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    completion = {
        "prompt_tokens": 100,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 20},
    }
    expected = Usage(input=100, output=9, cache_read=70, cache_write=20)
    assert langchain.usage_of({"usage_metadata": message}) == expected
    assert openai.usage_of(response) == openai_chat.usage_of(completion) == anthropic.usage_of(answer) == expected


@pytest.mark.parametrize("read", [langchain.usage_of, openai.usage_of, openai_chat.usage_of, anthropic.usage_of])
def test_without_counts_no_tokens_are_made_up(read: Any) -> None:
    assert read({}) == read(None) == Usage()


@given(json_values, json_values, json_values)
def test_malformed_optional_fields_of_a_message_read_as_absent(usage: Any, metadata: Any, extra: Any) -> None:
    message = {"content": "Done.", "usage_metadata": {"input_token_details": usage}, "additional_kwargs": {"x": extra}}
    assert langchain.usage_of(message).input is None
    assert langchain.answer_of(message) == Step(thought="Done.")
    assert langchain.usage_of({"response_metadata": {"usage": metadata}}).cache_read is None


def test_a_copied_value_shares_nothing_with_the_original() -> None:
    original = {"at": ["a", {"deep": (1, 2)}]}
    copy = plain(original)
    original["at"].clear()
    assert copy == {"at": ["a", {"deep": [1, 2]}]}


def test_a_value_too_deep_for_the_stack_is_no_error() -> None:
    value: Any = "bottom"
    for _ in range(MAX_COPIED * 100):
        value = [value]
    assert isinstance(plain(value), list)
