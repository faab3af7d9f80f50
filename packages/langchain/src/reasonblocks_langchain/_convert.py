"""Says in our words what LangChain's messages say. Pure; the way back is `_request`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reasonblocks.types import JSON, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage

from ._channel import step_key

Content: TypeAlias = "str | list[str | dict[Any, Any]]"

# --- what the messages say


def step_input(
    messages: Sequence[BaseMessage],
    *,
    before_run: str | None,
    seen: str | None,
    last_key: str | None,
    model: str,
    agent_name: str | None,
    guard: Callable[[str], AbstractContextManager[None]],
) -> StepInput:
    """What the next call is decided from. The same answer gives the same key, so that it is decided once.

    `before_run` and `seen` are ids of answers, as in `newest_answer`; `last_key` is that of the last decision.
    """
    answer = newest_answer(messages, before_run, seen)
    completed: Step | None = None
    with guard("reading the messages"):
        completed = completed_step(messages, answer)
    return StepInput(key=step_key(answer, last_key), completed=completed, default_model=model, agent_name=agent_name)


def last_answer(messages: Sequence[BaseMessage], before_run: str | None) -> AIMessage | None:
    """This run's newest answer; `before_run` is the id of the newest one that an earlier run left."""
    newest = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return None if newest is None or (before_run is not None and newest.id == before_run) else newest


def newest_answer(messages: Sequence[BaseMessage], before_run: str | None, seen: str | None) -> str | None:
    """The id of the run's last answer, None before there is one: it names the next call.

    `seen` is the one that the run's last call gave. It stays when it was taken out of the messages, as summarisation
    does; an answer that came after it without a call goes first.
    """
    answer = last_answer(messages, before_run)
    newest = answer.id if answer else None
    if seen is None or newest is None or newest == seen:
        return seen or newest
    return newest if any(message.id == seen for message in reversed(messages)) else seen


def completed_step(messages: Sequence[BaseMessage], answer_id: str | None) -> Step | None:
    """The step that this answer began, with all that came back; None before the first answer.

    Of an answer that was taken out of the messages only the results are left: steering knows the rest.
    """
    if answer_id is None:
        return None
    at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id == answer_id), None)
    if at is None:
        return Step(tool_results=_results(_trailing_results(messages), {}))
    answer = messages[at]
    calls = tool_calls(answer) if isinstance(answer, AIMessage) else ()
    names = {call.id: call.name for call in calls}
    later = (message for message in messages[at + 1 :] if isinstance(message, ToolMessage))
    own = [
        message for message in later if message.tool_call_id in names
    ]  # a repeated id keeps its first answer's place
    return Step(
        thought=text_of(answer.content),
        reasoning=reasoning_of(answer),
        tool_calls=calls,
        tool_results=_results(own, names),
    )


def task_of(messages: Sequence[BaseMessage], before_run: str | None) -> str:
    """What this run was asked: the first human message after what earlier runs left, else the first of all."""
    start = next((at for at, message in enumerate(messages, 1) if before_run and message.id == before_run), 0)
    humans = (message for part in (messages[start:], messages) for message in part if isinstance(message, HumanMessage))
    return next((text_of(message.content) for message in humans), "")


def tool_calls(answer: AIMessage) -> tuple[ToolCall, ...]:
    """The calls, those with malformed arguments too: their text is the argument `input`."""
    good = [
        ToolCall(id=call["id"] or "", name=call["name"], arguments=_copy(call["args"])) for call in answer.tool_calls
    ]
    bad = [
        ToolCall(id=call.get("id") or "", name=call.get("name") or "", arguments={"input": call.get("args")})
        for call in answer.invalid_tool_calls
    ]
    return (*good, *bad)


def _copy(value: JSON) -> JSON:
    """So that nobody who reads a step, a caller's scorer for one, holds what is in the agent's messages."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def text_of(content: Content) -> str:
    """The visible text of a message, its blocks one below the other. Images and the like have none."""
    if isinstance(content, str):
        return content
    return "\n".join(text for text in map(_block_text, content) if text)


def reasoning_of(message: BaseMessage) -> str:
    """The reasoning text, from content blocks or from beside the content, where some providers put it."""
    content = [] if isinstance(message.content, str) else message.content
    blocks = [block for block in content if isinstance(block, Mapping)]
    texts = [text for text in map(_block_reasoning, blocks) if text]
    return "\n".join(texts) or _reasoning_beside(message.additional_kwargs)


def _block_text(block: str | Mapping[Any, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") in ("text", "output_text") else block.get("refusal")
    return text if isinstance(text, str) else ""


def _block_reasoning(block: Mapping[Any, Any]) -> str:
    text = block.get("thinking") or block.get("reasoning") or block.get("reasoning_content")
    if isinstance(text, Mapping):  # Bedrock
        text = text.get("text")
    return text if isinstance(text, str) else _summary(block.get("summary"))


def _reasoning_beside(extra: Mapping[str, Any]) -> str:
    apart, nested = extra.get("reasoning_content"), extra.get("reasoning")
    if isinstance(apart, str):
        return apart
    return _summary(nested.get("summary")) if isinstance(nested, Mapping) else ""


def _summary(parts: object) -> str:
    """OpenAI's form: a list of summary texts."""
    found = parts if isinstance(parts, list) else []
    return "\n".join(str(part["text"]) for part in found if isinstance(part, Mapping) and part.get("text"))


def _trailing_results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        found.append(message)
    return found[::-1]


def _results(messages: Iterable[ToolMessage], names: Mapping[str, str]) -> tuple[ToolResult, ...]:
    return tuple(
        ToolResult(
            call_id=message.tool_call_id,
            name=message.name or names.get(message.tool_call_id, ""),
            output=text_of(message.content),
            # "success" is what every result starts with, also that of a tool which returns its error as text
            is_error=True if message.status == "error" else None,
        )
        for message in messages
    )


# --- what a call did


def outcome_of(answer: AIMessage, *, model: str, latency_ms: float) -> StepOutcome:
    """What one call gave. `model` is the one that was asked, for providers that do not say who answered."""
    said = answer.response_metadata
    return StepOutcome(
        model=producer_of(answer) or model,
        usage=usage_of(answer),
        latency_ms=latency_ms,
        text=text_of(answer.content),
        reasoning=reasoning_of(answer),
        tool_calls=tool_calls(answer),
        stop_reason=_first_text(said, "stop_reason", "finish_reason", "stopReason"),
    )


def producer_of(answer: AIMessage) -> str | None:
    """The model that says it wrote this."""
    return _first_text(answer.response_metadata, "model_name", "model", "model_id")


def usage_of(answer: AIMessage) -> Usage:
    """Tokens as LangChain counts them (input with what was cached), else as the provider's own metadata says."""
    tokens = answer.usage_metadata
    if tokens is None:
        return _raw_usage(answer.response_metadata)
    read = tokens.get("input_token_details") or {}
    return Usage(
        input=tokens["input_tokens"],
        output=tokens["output_tokens"],
        cache_read=read.get("cache_read"),
        cache_write=_cache_write(read),
        reasoning=(tokens.get("output_token_details") or {}).get("reasoning"),
    )


def _cache_write(details: Mapping[str, Any]) -> int | None:
    """Anthropic's count by lifetime stands beside a total that is then 0."""
    total = details.get("cache_creation")
    by_lifetime = sum(details.get(key) or 0 for key in ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"))
    return total if total or not by_lifetime else by_lifetime


def _raw_usage(said: Mapping[str, Any]) -> Usage:
    raw = said.get("token_usage") or said.get("usage")
    if not isinstance(raw, Mapping):
        return Usage()
    return Usage(
        input=_first_int(raw, "prompt_tokens", "input_tokens"),
        output=_first_int(raw, "completion_tokens", "output_tokens"),
        cache_read=_first_int(raw, "cache_read_input_tokens"),
        cache_write=_first_int(raw, "cache_creation_input_tokens"),
    )


def _first_text(found: Mapping[str, Any], *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := found.get(key), str) and value), None)


def _first_int(found: Mapping[str, Any], *keys: str) -> int | None:
    return next((value for key in keys if isinstance(value := found.get(key), int)), None)
