"""Converts messages to steps and outcomes, and puts a decision's guidance into a request. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reasonblocks.adapters import new_user_text
from reasonblocks.render import place, with_guidance
from reasonblocks.types import Step, StepDecision, StepOutcome, ToolCall, ToolResult, Usage

# YOURS: the types of your framework.
from tinyagents import Message, Request


def completed_step(messages: Sequence[Message]) -> Step:
    """Return the newest answer with its tool results. The history, which may be long, is read from its end."""
    # YOURS: how the history distinguishes answers from results. Results are in the order of the calls, also if one of
    # them had to wait. `failed` is None if the framework only reports that nothing was raised. If the history has no
    # answer, `Step(tool_results=...)` is enough: the session knows the rest from `end_step`.
    results: list[ToolResult] = []
    newest_first = reversed(messages)
    for message in newest_first:
        if message.role == "tool":
            results.insert(0, ToolResult(call_id=message.call_id, output=message.text, is_error=message.failed))
        elif message.role == "assistant":
            before = ({"role": message.role, "content": message.text} for message in newest_first)
            return replace(said(message), tool_results=tuple(results), user_text=new_user_text(before))
    return Step(tool_results=tuple(results))


def said(answer: Message) -> Step:
    # YOURS: the visible text, the thinking beside it, and all calls, parallel ones included.
    calls = (ToolCall(id=call.id, name=call.name, arguments=dict(call.arguments)) for call in answer.calls)
    return Step(thought=answer.text, reasoning=answer.thinking, tool_calls=tuple(calls))


def outcome_of(answer: Message, *, model: str, latency_ms: float) -> StepOutcome:
    # YOURS: the counts of this one call, not of the run; None for counts that the framework does not report.
    step, counted = said(answer), answer.tokens
    usage = Usage(
        input=counted.get("input"),
        output=counted.get("output"),
        cache_read=counted.get("cache_read"),
        cache_write=counted.get("cache_write"),
    )
    return StepOutcome(
        model=model,
        usage=usage,
        latency_ms=latency_ms,
        text=step.thought,
        reasoning=step.reasoning,
        tool_calls=step.tool_calls,
    )


def steered(request: Request, decision: StepDecision) -> Request:
    """Return a copy of the request with the decision's guidance."""
    # YOURS: the system prompt of a request, and the text of its last message.
    in_system, messages = "", list(request.messages)
    if decision.placement == "system":
        in_system = decision.guidance
    elif decision.guidance and decision.placement == "message":
        messages.append(Message("user", decision.guidance))
    elif decision.guidance:
        last = messages[-1]
        messages[-1] = replace(last, text=with_guidance(last.text, decision.guidance))
    instructions: Any = place(request.instructions, in_system, decision.standing_rules, cache_control=False)
    return replace(request, instructions=instructions, messages=tuple(messages))
