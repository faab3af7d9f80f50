"""What `end_step` keeps of an answer, and how it completes what an adapter gives of the step."""

from __future__ import annotations

from ..exceptions import BadAnswer
from ..text import bounded
from ..types import LARGEST_INT, Pending, Step, StepOutcome, ToolCall, TraceState, canonical, evolve, storable_json

KEY_BYTES = 200
PENDING_CALLS = 4
CALL_BYTES = 300
PENDING_BYTES = 1_200
"""Per text that is kept."""


def with_outcome(state: TraceState, outcome: StepOutcome, *, auxiliary: bool) -> TraceState:
    """The state after a call: tokens counted, and the answer kept for the next step unless the call was auxiliary."""
    tokens = outcome.usage.total
    total = min(state.total_tokens + (tokens or 0), LARGEST_INT)
    if auxiliary:
        return evolve(state, total_tokens=total)
    said = Pending(
        text=bounded(outcome.text or "", PENDING_BYTES),
        reasoning=bounded(outcome.reasoning or "", PENDING_BYTES) if not (outcome.text or "").strip() else "",
        tool_calls=tuple(map(_bounded_call, outcome.tool_calls[:PENDING_CALLS])),
    )
    pending = None if outcome.error is not None else said
    return evolve(state, total_tokens=total, call_tokens=tokens, pending=pending)


def _bounded_call(call: ToolCall) -> ToolCall:
    """The call, its arguments as bounded text where they are too long to be kept as they are."""
    arguments = canonical(call.arguments)
    text = bounded(arguments, CALL_BYTES)
    return ToolCall(
        id=bounded(str(call.id), KEY_BYTES),
        name=bounded(str(call.name), KEY_BYTES),
        arguments=storable_json(text) if text == arguments else text,
    )


def completed_step(state: TraceState, given: Step | None) -> Step:
    """The completed step: what was given wins, and what `end_step` kept fills in what is missing.

    A thought or a reasoning shows that the answer itself was read: such a step is whole, and nothing is added, no
    calls either. Without them both are those that were kept, and so are the calls where none was given.
    """
    step = given or Step()
    if state.pending is None or step.thought or step.reasoning:
        return step
    kept = state.pending
    return evolve(step, thought=kept.text, reasoning=kept.reasoning, tool_calls=step.tool_calls or kept.tool_calls)


def amended_calls(state: TraceState, given: Step | None) -> tuple[ToolCall, ...]:
    """The calls that are now known of the last answered step; empty where nothing is said of them."""
    return () if given is None or state.pending is None else given.tool_calls


def checked_step(step: Step) -> Step:
    """Texts are texts: a None from some model's API is said here, not found deep below."""
    texts: list[tuple[str, object]] = [("thought", step.thought), ("reasoning", step.reasoning)]
    texts += [("tool output", result.output) for result in step.tool_results]
    for name, text in texts:
        if not isinstance(text, str):
            raise BadAnswer(f"the completed step's {name}", text, "must be a string, '' where there was nothing")
    return step
