"""Reads LangChain messages: the objects of `langchain_core.messages`, or the `data` that `messages_to_dict` writes.

Both have the same field names. The sources of the rules are `langchain_core` 1.x and, for fields that LangChain passes
on unchanged, the provider's own API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..types import Step, ToolCall, ToolResult, Usage
from . import first_int, first_text, get, plain
from .content import output_of, text_of

Message: TypeAlias = Any
"""A message object, or its `data` as a dictionary or a validated model."""

ANSWERS = frozenset({"ai", "AIMessageChunk"})
"""Values of `type` of the model's messages (`AIMessage`, `AIMessageChunk`)."""
RESULTS = frozenset({"tool", "ToolMessageChunk", "function"})
"""Values of `type` of tool results (`ToolMessage`, its chunk, the older `FunctionMessage`)."""
HUMANS = frozenset({"human", "HumanMessageChunk"})
"""Values of `type` of the user's messages (`HumanMessage` and its chunk)."""


def is_made(message: Message) -> bool:
    """Return True for a human message that LangChain itself wrote, such as the summary of removed messages.

    Source: `additional_kwargs["lc_source"]` of `langchain.agents.middleware`.
    """
    return bool(get(get(message, "additional_kwargs"), "lc_source"))


def answer_of(message: Message, results: Iterable[Message] = ()) -> Step:
    """Return the step that an `AIMessage` began, with the results of its calls (each a `ToolMessage`)."""
    calls = calls_of(message)
    names = {call.id: call.name for call in calls}
    return Step(
        thought=text_of(get(message, "content")),
        reasoning=reasoning_of(message),
        tool_calls=calls,
        tool_results=tuple(result_of(result, names) for result in results),
    )


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """Return an `AIMessage`'s calls; one with malformed arguments has their text as its argument `input`.

    Source: `AIMessage.tool_calls` and `.invalid_tool_calls` (`id`, `name`, `args`; all but `args` may be None).
    """
    good = [_call(call, plain(get(call, "args"))) for call in get(message, "tool_calls") or ()]
    bad = [_call(call, {"input": get(call, "args")}) for call in get(message, "invalid_tool_calls") or ()]
    return (*good, *bad)


def call_ids_of(message: Message) -> set[str]:
    """Return the ids of an `AIMessage`'s calls; "" stands for a missing one, as in `calls_of`."""
    calls = (*(get(message, "tool_calls") or ()), *(get(message, "invalid_tool_calls") or ()))
    return {get(call, "id") or "" for call in calls}


def _call(call: Any, arguments: Any) -> ToolCall:
    return ToolCall(id=get(call, "id") or "", name=get(call, "name") or "", arguments=arguments)


def result_of(message: Message, names: Mapping[str, str]) -> ToolResult:
    """Return a `ToolMessage` as a result; `names` are the tools by call id, for a message without one.

    `status` is "success" by default, even if the tool returned its error as text: only "error" decides `is_error`.
    """
    call_id = get(message, "tool_call_id") or ""
    return ToolResult(
        call_id=call_id,
        name=get(message, "name") or names.get(call_id, ""),
        output=output_of(get(message, "content")),
        is_error=True if get(message, "status") == "error" else None,
    )


def reasoning_of(message: Message) -> str:
    """Return an `AIMessage`'s reasoning, from its content blocks or else from `additional_kwargs`.

    Source: blocks `thinking` (Anthropic), `reasoning` (LangChain; `summary`: OpenAI), `reasoning_content` (Bedrock: an
    object with `text`); `additional_kwargs` for DeepSeek (`reasoning_content`) and older OpenAI (`reasoning`).
    """
    content = get(message, "content")
    blocks = content if isinstance(content, list) else ()
    found = "\n".join(filter(None, (_block_reasoning(block) for block in blocks if isinstance(block, Mapping))))
    return found or _reasoning_beside(get(message, "additional_kwargs") or {})


def _block_reasoning(block: Mapping[str, Any]) -> str:
    text = block.get("thinking") or block.get("reasoning") or block.get("reasoning_content")
    if isinstance(text, Mapping):
        text = text.get("text")
    return text if isinstance(text, str) else _summary(block.get("summary"))


def _reasoning_beside(extra: Mapping[str, Any]) -> str:
    apart, nested = extra.get("reasoning_content"), extra.get("reasoning")
    if isinstance(apart, str):
        return apart
    return _summary(nested.get("summary")) if isinstance(nested, Mapping) else ""


def _summary(parts: object) -> str:
    found = parts if isinstance(parts, list) else []
    return "\n".join(str(part["text"]) for part in found if isinstance(part, Mapping) and part.get("text"))


def usage_of(message: Message) -> Usage:
    """Return an `AIMessage`'s tokens, from `usage_metadata`, else from the provider's own counts.

    Source: `UsageMetadata` of `langchain_core` (`input_tokens` includes cached ones), and `response_metadata` of
    `langchain_openai` (`token_usage`) and `langchain_anthropic` (`usage`).
    """
    tokens = get(message, "usage_metadata")
    if tokens is None:
        return _provider_usage(get(message, "response_metadata") or {})
    details = get(tokens, "input_token_details")
    return Usage(
        input=first_int(tokens, "input_tokens"),
        output=first_int(tokens, "output_tokens"),
        cache_read=first_int(details, "cache_read"),
        cache_write=_cache_write(details),
        reasoning=first_int(get(tokens, "output_token_details"), "reasoning"),
    )


def _cache_write(details: Any) -> int | None:
    """Return the tokens written to the cache.

    `langchain_anthropic` reports `cache_creation` as 0 if it also reports the writes by their lifetime.
    """
    total = first_int(details, "cache_creation")
    by_lifetime = sum(first_int(details, f"ephemeral_{lifetime}_input_tokens") or 0 for lifetime in ("5m", "1h"))
    return total or by_lifetime or total


def _provider_usage(metadata: Mapping[str, Any]) -> Usage:
    counts = metadata.get("token_usage") or metadata.get("usage")
    return Usage(
        input=first_int(counts, "prompt_tokens", "input_tokens"),
        output=first_int(counts, "completion_tokens", "output_tokens"),
        cache_read=first_int(counts, "cache_read_input_tokens"),
        cache_write=first_int(counts, "cache_creation_input_tokens"),
    )


def model_of(message: Message) -> str | None:
    """Return the name of the model that wrote an `AIMessage`, None if it has none.

    Source: `response_metadata` of `langchain_openai` (`model_name`), `langchain_anthropic` (`model`) and
    `langchain_aws` (`model_id`).
    """
    return first_text(get(message, "response_metadata") or {}, "model_name", "model", "model_id")


def stop_reason_of(message: Message) -> str | None:
    """Return why the model stopped, in the provider's word.

    Source: `response_metadata` for Anthropic (`stop_reason`), OpenAI (`finish_reason`) and Bedrock (`stopReason`).
    """
    return first_text(get(message, "response_metadata") or {}, "stop_reason", "finish_reason", "stopReason")
