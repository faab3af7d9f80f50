"""Converts the CLI's messages and hook inputs into our values, and decisions into hook outputs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from claude_agent_sdk import AssistantMessage, ResultMessage

from reasonblocks.messages import anthropic, plain
from reasonblocks.messages.claude_code import SYNTHETIC, without_placeholder
from reasonblocks.messages.content import output_of
from reasonblocks.types import JSON, Step, StepDecision, StepOutcome, ToolCall, ToolResult, Usage

INTERRUPTED = frozenset({"aborted_streaming", "aborted_tools"})
"""The terminal reasons of a turn that its user interrupted; the rest of such a result looks like a failure."""
HookOutput = dict[str, Any]
"""The output of a hook's callback, as the CLI accepts it."""

# --- the stream


def answer_of(messages: Sequence[AssistantMessage]) -> Step:
    """Return the step that an answer began; each of its messages has one content block."""
    return anthropic.answer_of(block for message in messages for block in message.content)


def usage_of(messages: Sequence[AssistantMessage], output: int | None) -> Usage:
    """Return the answer's tokens; `output` comes from partial messages, since a message has only its start value."""
    usage = next((message.usage for message in reversed(messages) if message.usage), None)
    return Usage() if usage is None else replace(anthropic.usage_of(usage), output=output)


def outcome_of(
    answer: Step, messages: Sequence[AssistantMessage], *, model: str, output: int | None, latency_ms: float
) -> StepOutcome:
    """Return the outcome of one call; the CLI's own message about a failed one is its error."""
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
    """Return True if the user interrupted the turn: the run is neither finished nor failed."""
    return result.terminal_reason in INTERRUPTED


def ending_of(result: ResultMessage, error: str | None) -> str:
    """Return the run's outcome; the CLI's `subtype` is "success" even if the last request failed."""
    if not result.is_error:
        return "success"
    return f"failure: {error or result.subtype}"


# --- hook inputs


def batch_step(calls: Iterable[Mapping[str, Any]], answer: Step | None, results: Mapping[str, ToolResult]) -> Step:
    """Return the completed step of a batch of tools: its answer, if it is known, with the results.

    `results` come from the stream and from hooks of single tools; the batch itself supplies the rest.
    """
    given = list(calls)
    step = answer or Step(tool_calls=tuple(map(_call, given)))
    known = {str(call.get("tool_use_id")): call for call in given}
    found = ((call, results.get(call.id) or _result(known.get(call.id))) for call in step.tool_calls)
    return replace(step, tool_results=tuple(replace(result, name=call.name) for call, result in found if result))


def result_told(given: Mapping[str, Any]) -> ToolResult:
    """Return the result that a single tool's hook reports: its duration, and its error if it failed, but no text."""
    error, took = given.get("error"), given.get("duration_ms")
    return ToolResult(
        call_id=str(given.get("tool_use_id") or ""),
        name=str(given.get("tool_name") or ""),
        output=without_placeholder(str(error or "")),
        is_error=True if error is not None else None,
        duration_ms=float(took) if isinstance(took, (int, float)) else None,
    )


def _call(given: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(given.get("tool_use_id") or ""),
        name=anthropic.tool_name(str(given.get("tool_name") or "")),
        arguments=plain(given.get("tool_input")),
    )


def _result(given: Mapping[str, Any] | None) -> ToolResult | None:
    if given is None:
        return None
    output = output_of(given.get("tool_response"))
    return ToolResult(call_id=str(given.get("tool_use_id") or ""), name="", output=output)


# --- snapshots


def step_as_json(step: Step) -> dict[str, JSON]:
    """Return a step as plain JSON."""
    return {
        "thought": step.thought,
        "reasoning": step.reasoning,
        "tool_calls": [asdict(call) for call in step.tool_calls],
        "tool_results": [asdict(result) for result in step.tool_results],
        "user_text": step.user_text,
    }


def step_kept(kept: Mapping[str, Any]) -> Step:
    """Return the step that `kept_of` converted."""
    return Step(
        thought=kept["thought"],
        reasoning=kept["reasoning"],
        tool_calls=tuple(ToolCall(**call) for call in kept["tool_calls"]),
        tool_results=tuple(ToolResult(**result) for result in kept["tool_results"]),
        user_text=kept.get("user_text", ""),
    )


# --- hook outputs


def stopping(reason: str) -> HookOutput:
    """Return the output that ends the turn of the hook's agent, or refuses a prompt: no further request is made.

    The CLI notes the reason in its transcript.
    """
    return {"continue_": False, "stopReason": f"This run was ended: {reason}"}


def denying(reason: str) -> HookOutput:
    """Return the output of `PreToolUse` that refuses the call; the model reads the reason as the tool's error."""
    denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}


def context(event: str, decision: StepDecision | None) -> HookOutput:
    """Return the output of this event's hook: guidance for the next request, or nothing."""
    if decision is None or not decision.guidance:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.guidance}}
