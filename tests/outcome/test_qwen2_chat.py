"""Qwen's format for tools: the prompt of a conversation, and the call in a reply."""

from __future__ import annotations

import pytest
from _outcome.backend import Message
from _outcome.backends.qwen2_chat import FORCED, call_in, prompt
from _outcome.environment import Call, tool

GO = tool("go", "Gehe durch eine Tür.", door="its name")
DECLARED = (
    '{"type": "function", "function": {"name": "go", "description": "Gehe durch eine Tür.", "parameters": '
    '{"type": "object", "properties": {"door": {"type": "string", "description": "its name"}}, "required": ["door"]}}}'
)


def called(door: str, text: str | None = None) -> Message:
    function = {"name": "go", "arguments": f'{{"door":"{door}"}}'}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": door, "type": "function", "function": function}],
    }


def told(door: str) -> Message:
    return {"role": "tool", "tool_call_id": door, "content": f"The {door}."}


def test_a_prompt_is_a_conversation_in_qwens_format_and_the_begin_of_a_call() -> None:
    messages = [
        {"role": "system", "content": "Find the exit."},
        {"role": "user", "content": "You are in the hall."},
        called("attic", "Up."),
        told("attic"),
        told("roof"),
        {"role": "user", "content": "A note."},
        called("Küche"),
        told("Küche"),
    ]
    text = prompt(messages, [GO])
    system, end = text.split("<|im_end|>\n", 1)
    assert system.startswith("<|im_start|>system\nFind the exit.\n\n# Tools\n\nYou may call")
    assert f"<tools>\n{DECLARED}\n</tools>" in system
    assert system.endswith('<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>')
    assert end == (
        "<|im_start|>user\nYou are in the hall.<|im_end|>\n"
        "<|im_start|>assistant\nUp."
        '\n<tool_call>\n{"name": "go", "arguments": {"door": "attic"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nThe attic.\n</tool_response>\n"
        "<tool_response>\nThe roof.\n</tool_response><|im_end|>\n"
        "<|im_start|>user\nA note.<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "go", "arguments": {"door": "Küche"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nThe Küche.\n</tool_response><|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "'
    )


def test_a_prompt_goes_on_from_the_last_one_and_its_reply() -> None:
    start: list[Message] = [{"role": "system", "content": "S."}, {"role": "user", "content": "U."}]
    reply = 'go", "arguments": {"door": "attic"}}\n</tool_call>'
    assert prompt([*start, called("attic"), told("attic")], [GO]).startswith(prompt(start, [GO]) + reply)


def test_a_conversation_without_a_system_message_gets_qwens_own() -> None:
    assert prompt([{"role": "user", "content": "U."}], []).startswith("<|im_start|>system\nYou are Qwen, created by")


@pytest.mark.parametrize(
    ("written", "text", "call"),
    [
        ('go", "arguments": {"door": "attic"}}\n', "", Call("go", {"door": "attic"})),
        ('go", "arguments": {"door": "attic"}} and more', "", Call("go", {"door": "attic"})),
        ('look"}', "", Call("look", {})),
        ('go", "arguments": {"door": "att', '{"name": "go", "arguments": {"door": "att', Call("go", {})),
        ('go", "arguments": "attic"}', '{"name": "go", "arguments": "attic"}', Call("go", {})),
        ("go to the attic", '{"name": "go to the attic', None),
    ],
)
def test_the_call_in_a_reply(written: str, text: str, call: Call | None) -> None:
    assert call_in(FORCED + written) == (text, call)
