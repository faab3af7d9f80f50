"""Says the framework's words in ours, and in one request what a decision says. Pure: what it changes, it copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reasonblocks.render import place
from reasonblocks.types import Step, StepDecision, StepOutcome, ToolCall, ToolResult, Usage

# YOURS: the types of your framework.
from tinyagents import Message, Request


def completed_step(messages: Sequence[Message]) -> Step:
    """The newest answer and what its tools gave back. From the end: a history may be long, a step is not."""
    # YOURS: how the history tells answers from results; these in the order of the calls, also where one of them had to
    # wait. `failed` is None here where the framework only says that nothing was raised. A history that cannot be read
    # needs no answer: what `end_step` was told is known, and `Step(tool_results=...)` is enough.
    results: list[ToolResult] = []
    for message in reversed(messages):
        if message.role == "tool":
            results.insert(0, ToolResult(call_id=message.call_id, output=message.text, is_error=message.failed))
        elif message.role == "assistant":
            return replace(said(message), tool_results=tuple(results))
    return Step(tool_results=tuple(results))


def said(answer: Message) -> Step:
    # YOURS: the visible text, the thinking beside it, and all calls, parallel ones together.
    calls = (ToolCall(id=call.id, name=call.name, arguments=dict(call.arguments)) for call in answer.calls)
    return Step(thought=answer.text, reasoning=answer.thinking, tool_calls=tuple(calls))


def outcome_of(answer: Message, *, model: str, latency_ms: float) -> StepOutcome:
    # YOURS: the counts of this one call, not of the run; None for what the framework does not count.
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
    """A copy of the request with its guidance."""
    # YOURS: where a request has its system prompt, and what a message at its end is.
    tail = decision.guidance if decision.placement == "tail" else ""
    guidance = "" if tail else decision.guidance
    instructions: Any = place(request.instructions, guidance, decision.standing_rules, cache_control=False)
    added = [Message("user", tail)] if tail else []
    return replace(request, instructions=instructions, messages=(*request.messages, *added))
