"""Says in our words what the CLI's messages and hooks say, and in the words of its hooks what a decision says. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

from reasonblocks.types import JSON, Step, StepDecision, StepOutcome, ToolCall, ToolResult, Usage

NOTIFICATION = re.compile(r"\A\s*<task-notification>\s*<task-id>([^<]+)</task-id>")
"""How a prompt begins that the CLI writes itself, when a task in the background is done (2.1.330)."""
INTERRUPTED = frozenset({"aborted_streaming", "aborted_tools"})
"""How the CLI says that a turn was cut short by its user; the rest of such a result looks like a failure."""
HookOutput = dict[str, Any]
"""What a hook's callback gives back, as the CLI takes it."""
NOTHING = re.compile(r"\A(?:\([^\n()]+ completed with no output\)|Command failed with no output)\Z")
"""The CLI's words for a result without any."""
SYNTHETIC = "<synthetic>"
"""The model that the CLI names for a message of its own."""

# --- what the stream says


def answer_of(messages: Sequence[AssistantMessage]) -> Step:
    """What the model thought and called, of the messages that its answer came in: one a content block."""
    blocks = [block for message in messages for block in message.content]
    return Step(
        thought="\n".join(block.text for block in blocks if isinstance(block, TextBlock) and block.text),
        reasoning="\n".join(block.thinking for block in blocks if isinstance(block, ThinkingBlock) and block.thinking),
        tool_calls=tuple(
            ToolCall(id=block.id, name=tool_name(block.name), arguments=_copy(block.input))
            for block in blocks
            if isinstance(block, ToolUseBlock)
        ),
    )


def result_of(block: ToolResultBlock) -> ToolResult:
    """A tool's result as the model reads it."""
    return ToolResult(
        call_id=block.tool_use_id,
        name="",
        output=NOTHING.sub("", text_of(block.content)),
        is_error=True if block.is_error else None,
    )


def usage_of(messages: Sequence[AssistantMessage], output: int | None) -> Usage:
    """Input with what was cached. `output` is known from partial messages only: a message has its start value."""
    said = next((message.usage for message in reversed(messages) if message.usage), None)
    if said is None:
        return Usage()
    read, written = (said.get("cache_read_input_tokens"), said.get("cache_creation_input_tokens"))
    whole = sum(count for count in (said.get("input_tokens"), read, written) if isinstance(count, int))
    return Usage(input=whole or None, output=output, cache_read=read, cache_write=written)


def outcome_of(
    answer: Step, messages: Sequence[AssistantMessage], *, model: str, output: int | None, latency_ms: float
) -> StepOutcome:
    """What one call gave; the CLI's own message for a failed one is its error."""
    failed = next((message for message in messages if message.error), None)
    named = next((message.model for message in messages if message.model != SYNTHETIC), None)
    return StepOutcome(
        model=named or model,
        usage=usage_of(messages, output),
        latency_ms=latency_ms,
        text="" if failed else answer.thought,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        stop_reason=next((message.stop_reason for message in reversed(messages) if message.stop_reason), None),
        error=f"{failed.error}: {answer.thought}" if failed else None,
    )


def is_interrupted(result: ResultMessage) -> bool:
    """Whether the user has cut the turn short: the run is neither finished nor failed."""
    return result.terminal_reason in INTERRUPTED


def ending_of(result: ResultMessage, error: str | None) -> str:
    """The outcome of a run: the CLI says "success" of a run whose last request failed, too."""
    if not result.is_error:
        return "success"
    return f"failure: {error or result.subtype}"


# --- what the hooks say


def batch_step(calls: Iterable[Mapping[str, Any]], answer: Step | None, results: Mapping[str, ToolResult]) -> Step:
    """The completed step of a batch of tools: its answer, if it is known, and what came back.

    `results` are those of the stream and of the hooks of single tools; of the batch itself come the rest.
    """
    given = list(calls)
    said = answer or Step(tool_calls=tuple(_call(one) for one in given))
    known = {str(one.get("tool_use_id")): one for one in given}
    return Step(
        thought=said.thought,
        reasoning=said.reasoning,
        tool_calls=said.tool_calls,
        tool_results=tuple(
            _named(results.get(call.id) or _result(known[call.id]), call.name)
            for call in said.tool_calls
            if call.id in results or call.id in known
        ),
    )


def result_told(given: Mapping[str, Any]) -> ToolResult:
    """What the hook of one tool says of it: its time, and its error if it failed. The stream has the text."""
    error, took = given.get("error"), given.get("duration_ms")
    return ToolResult(
        call_id=str(given.get("tool_use_id") or ""),
        name=str(given.get("tool_name") or ""),
        output=NOTHING.sub("", str(error or "")),
        is_error=True if error is not None else None,
        duration_ms=float(took) if isinstance(took, (int, float)) else None,
    )


def _call(one: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(one.get("tool_use_id") or ""),
        name=tool_name(str(one.get("tool_name") or "")),
        arguments=_copy(one.get("tool_input")),
    )


def _result(one: Mapping[str, Any]) -> ToolResult:
    return ToolResult(call_id=str(one.get("tool_use_id") or ""), name="", output=text_of(one.get("tool_response")))


def _named(result: ToolResult, name: str) -> ToolResult:
    return ToolResult(
        call_id=result.call_id,
        name=name,
        output=result.output,
        is_error=result.is_error,
        duration_ms=result.duration_ms,
    )


def task_done(prompt: str) -> str | None:
    """The id of the background task whose end is what the CLI's own prompt says; None for a user's prompt."""
    found = NOTIFICATION.match(prompt)
    return found.group(1).strip() if found else None


def tool_name(name: str) -> str:
    """What a tool is called by its own server, and in every other framework: "mcp__tests__run" is "run"."""
    parts = name.split("__", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "mcp" and parts[2] else name


def text_of(content: object) -> str:
    """The text of a result: plain, content blocks one below the other, else its JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Sequence):
        return "\n".join(text for block in content if (text := _block_text(block)))
    return json.dumps(content, ensure_ascii=False, default=str)


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) else None
    return text if isinstance(text, str) else ""


def _copy(value: Any) -> JSON:
    """So that nobody who reads a step holds what is the SDK's."""
    if isinstance(value, Mapping):
        return {str(key): _copy(one) for key, one in value.items()}
    plain: JSON = [_copy(one) for one in value] if isinstance(value, (list, tuple)) else value
    return plain


# --- what a snapshot says


def kept_of(step: Step) -> dict[str, JSON]:
    """A step as plain JSON."""
    return {
        "thought": step.thought,
        "reasoning": step.reasoning,
        "tool_calls": [asdict(call) for call in step.tool_calls],
        "tool_results": [asdict(result) for result in step.tool_results],
    }


def step_kept(kept: Mapping[str, Any]) -> Step:
    """The way back from `kept_of`."""
    return Step(
        thought=kept["thought"],
        reasoning=kept["reasoning"],
        tool_calls=tuple(ToolCall(**call) for call in kept["tool_calls"]),
        tool_results=tuple(ToolResult(**result) for result in kept["tool_results"]),
    )


# --- what a decision says


def context(event: str, decision: StepDecision | None) -> HookOutput:
    """What the hook of this event answers: guidance for the next request, or nothing."""
    if decision is None or not decision.guidance:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.guidance}}
