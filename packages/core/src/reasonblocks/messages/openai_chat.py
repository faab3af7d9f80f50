"""Reads messages and answers of the OpenAI Chat Completions API: dictionaries, or the models of `openai.types.chat`.

The source of the rules is the API reference, "Chat", unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..types import Step, ToolCall, ToolResult, Usage
from . import first_int, get, parsed_arguments
from .content import output_of, text_of

Message: TypeAlias = Any
"""A message of a request, or the `message` of an answer's choice."""

RESULTS = frozenset({"tool", "function"})
"""Values of `role` of a tool's result; the older `function` names its tool instead of the call."""


def answer_of(message: Message, results: Iterable[Message] = ()) -> Step:
    """Return the step that a message of the model began, with the results of its calls (messages of role `tool`)."""
    calls = calls_of(message)
    names = {call.id: call.name for call in calls}
    return Step(
        thought="\n".join(filter(None, (text_of(get(message, "content")), _text(get(message, "refusal"))))),
        reasoning=reasoning_of(message),
        tool_calls=calls,
        tool_results=tuple(result_of(result, names) for result in results),
    )


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls of a message, with the older `function_call`, which has no id."""
    calls = get(message, "tool_calls")
    older = get(message, "function_call")
    found = [_call(call) for call in (calls if isinstance(calls, (list, tuple)) else ()) if call is not None]
    return (*found, *([_named(older, "arguments")] if older else ()))


def _call(call: Any) -> ToolCall:
    """Return a call of a function, or of a custom tool, whose `input` is free text."""
    custom = get(call, "custom")
    called = _named(custom, "input") if custom else _named(get(call, "function"), "arguments")
    return ToolCall(id=str(get(call, "id") or ""), name=called.name, arguments=called.arguments)


def _named(called: Any, field: str) -> ToolCall:
    return ToolCall(id="", name=str(get(called, "name") or ""), arguments=parsed_arguments(get(called, field)))


def result_of(message: Message, names: Mapping[str, str]) -> ToolResult:
    """Return a message of role `tool` or `function` as a result; `names` are the tools by call id."""
    call_id = str(get(message, "tool_call_id") or "")
    return ToolResult(
        call_id=call_id,
        name=str(get(message, "name") or names.get(call_id, "")),
        output=output_of(get(message, "content")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def reasoning_of(message: Message) -> str:
    """Return the reasoning of a message. OpenAI sends none.

    Source: `reasoning_content` (DeepSeek, vLLM), `reasoning` (OpenRouter, newer vLLM).
    """
    return _text(get(message, "reasoning_content")) or _text(get(message, "reasoning"))


def usage_of(usage: Any) -> Usage:
    """Return the tokens of an answer's `usage`. `cache_write_tokens` is OpenRouter's."""
    prompt, answer = get(usage, "prompt_tokens_details"), get(usage, "completion_tokens_details")
    return Usage(
        input=first_int(usage, "prompt_tokens"),
        output=first_int(usage, "completion_tokens"),
        cache_read=first_int(prompt, "cached_tokens"),
        cache_write=first_int(prompt, "cache_write_tokens"),
        reasoning=first_int(answer, "reasoning_tokens"),
    )
