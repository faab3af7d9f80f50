"""Converts messages to steps and outcomes, and puts a decision's guidance into a request. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    BaseToolCallPart,
    BaseToolReturnPart,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.usage import RequestUsage

from reasonblocks.adapters import new_user_text, same_model
from reasonblocks.render import defuse_frames, with_guidance
from reasonblocks.types import Step, StepDecision, StepOutcome, ToolCall, ToolResult, Usage


def task_of(ctx: RunContext[Any]) -> str | None:
    """Return the prompt; for a resumed run, which has none, the newest one in its messages."""
    parts = (part for message in reversed(ctx.messages) for part in reversed(message.parts))
    asked = ctx.prompt or next((part.content for part in parts if isinstance(part, UserPromptPart)), None)
    if asked is None or isinstance(asked, str):
        return asked
    return "\n".join(part for part in asked if isinstance(part, str))


def completed_step(messages: Sequence[ModelMessage]) -> Step:
    """Return the newest answer with its tool results. The messages are read from their end."""
    results: dict[str, ToolResult] = {}
    newest_first = reversed(messages)
    for message in newest_first:
        returned = (part for part in message.parts if isinstance(part, BaseToolReturnPart))
        results.update((part.tool_call_id, result_of(part)) for part in returned)
        if isinstance(message, ModelResponse):
            step = said(message)
            in_order = (results.get(call.id) for call in step.tool_calls)  # the result of an approved call is last
            user_text = new_user_text(_in_plain_words(newest_first))
            return replace(step, tool_results=tuple(result for result in in_order if result), user_text=user_text)
    return Step(tool_results=tuple(results.values()))


def _in_plain_words(newest_first: Iterable[ModelMessage]) -> Iterator[dict[str, Any]]:
    """Yield the answers, and the user's prompts. One beside a tool's result may be the tool's own: it is left out."""
    for message in newest_first:
        if isinstance(message, ModelResponse):
            yield {"role": "assistant"}
        elif not any(isinstance(part, BaseToolReturnPart) for part in message.parts):
            prompts = (part for part in reversed(message.parts) if isinstance(part, UserPromptPart))
            yield from ({"role": "user", "content": part.content} for part in prompts)


def said(response: ModelResponse) -> Step:
    calls = (part for part in response.parts if isinstance(part, BaseToolCallPart))
    return Step(
        thought=response.text or "",
        reasoning=response.thinking or "",
        tool_calls=tuple(
            ToolCall(id=call.tool_call_id, name=call.tool_name, arguments=call.args_as_dict()) for call in calls
        ),
    )


def result_of(part: BaseToolReturnPart[Any]) -> ToolResult:
    text = part.model_response_str(wrap_if_error=False)
    return ToolResult(
        call_id=part.tool_call_id, name=part.tool_name, output=text, is_error=part.outcome in ERROR_OUTCOMES or None
    )


def outcome_of(response: ModelResponse, *, model: str, latency_ms: float) -> StepOutcome:
    answer = said(response)
    return StepOutcome(
        model=model,
        usage=usage_of(response.usage),
        latency_ms=latency_ms,
        text=answer.thought,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        stop_reason=response.finish_reason,
    )


def usage_of(used: RequestUsage) -> Usage:
    if used.unmeasured_requests or not used.has_values():
        return Usage()
    return Usage(
        input=used.input_tokens,
        output=used.output_tokens,
        cache_read=used.cache_read_tokens,
        cache_write=used.cache_write_tokens,
        reasoning=used.details.get("reasoning_tokens"),
    )


def steered(request: ModelRequestContext, decision: StepDecision) -> ModelRequestContext:
    """Return a copy of the request with its guidance: in the last message, or in the instructions after what is cached.

    It is in the instructions, too, if the last message cannot hold it.
    """
    last, told = request.messages[-1], None
    if decision.guidance and decision.placement != "system" and isinstance(last, ModelRequest):
        own = decision.placement == "message" or request.model.system == "anthropic"  # which takes a block of its own
        parts = _with_guidance(last.parts, decision.guidance, own=own)
        told = None if parts is None else replace(last, parts=parts)
    texts = [(decision.standing_rules, False), (decision.guidance if told is None else "", True)]
    instructions = [InstructionPart(content=text, dynamic=dynamic) for text, dynamic in texts if text]
    if instructions:
        parameters = request.model_request_parameters
        all_parts = InstructionPart.sorted([*(parameters.instruction_parts or ()), *instructions])
        request = replace(request, model_request_parameters=replace(parameters, instruction_parts=all_parts))
    if told is not None:
        request = replace(request, messages=[*request.messages[:-1], told])
    return request


def _with_guidance(parts: Sequence[Any], guidance: str, *, own: bool) -> list[Any] | None:
    """Return a message's parts with the guidance at the end of the last one, or as one of its `own`.

    None if the last part cannot hold it. The SDK makes a message of each part for most providers.
    """
    last = parts[-1] if parts else None
    if last is None or (own and not isinstance(last, UserPromptPart)):
        return [*map(_defused, parts), UserPromptPart(content=guidance)]
    if not isinstance(last, (UserPromptPart, ToolReturnPart, RetryFeedbackPart)):
        return None
    content: Any = last.content
    if isinstance(last, ToolReturnPart) and not isinstance(content, (str, list)):
        content = last.model_response_str(wrap_if_error=False)
    if isinstance(content, str):
        return [*parts[:-1], replace(last, content=with_guidance(content, guidance))]
    if isinstance(last, RetryFeedbackPart):
        return None
    return [*parts[:-1], replace(last, content=[*defuse_frames(list(content)), guidance])]


def _defused(part: Any) -> Any:
    return replace(part, content=defuse_frames(part.content)) if isinstance(part, BaseToolReturnPart) else part


def without_foreign_thinking(request: ModelRequestContext, model: str) -> ModelRequestContext:
    """Return a copy without thinking that other models have signed, because only its author accepts it."""
    return replace(request, messages=[_without_foreign(message, model) for message in request.messages])


def _without_foreign(message: ModelMessage, model: str) -> ModelMessage:
    if not isinstance(message, ModelResponse) or same_model(message.model_name or model, model):
        return message
    parts = [part for part in message.parts if not (isinstance(part, ThinkingPart) and part.signature)]
    return replace(message, parts=parts) if len(parts) < len(message.parts) else message
