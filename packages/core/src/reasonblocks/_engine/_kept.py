"""Stores the parts of an answer that `end_step` keeps, and completes the step that an adapter reports with them."""

from __future__ import annotations

from .._json import MAX_INT, canonical, evolve, storable_json
from .._text import bounded
from ..exceptions import BadAnswer
from ..types import Pending, Step, StepOutcome, ToolCall, TraceState

KEY_BYTES = 200
PENDING_CALLS = 4
CALL_BYTES = 300
PENDING_BYTES = 1_200
"""The limit of each stored text."""


def with_outcome(state: TraceState, outcome: StepOutcome, *, auxiliary: bool) -> TraceState:
    """Return the state after a call: tokens counted and, unless the call was auxiliary, its answer stored."""
    tokens = outcome.usage.total
    total = min(state.total_tokens + (tokens or 0), MAX_INT)
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
    """Return the call; arguments that are too long become bounded text."""
    arguments = canonical(call.arguments)
    text = bounded(arguments, CALL_BYTES)
    return ToolCall(
        id=bounded(str(call.id), KEY_BYTES),
        name=bounded(str(call.name), KEY_BYTES),
        arguments=storable_json(text) if text == arguments else text,
    )


def completed_step(state: TraceState, given: Step | None) -> Step:
    """Return the completed step: the given values take precedence, and those of `end_step` replace missing ones.

    A thought or a reasoning shows that the adapter read the answer itself: the step is complete, and nothing is added,
    not even calls. Otherwise both come from `end_step`, and so do the calls if none was given.
    """
    step = given or Step()
    if state.pending is None or step.thought or step.reasoning:
        return step
    kept = state.pending
    return evolve(step, thought=kept.text, reasoning=kept.reasoning, tool_calls=step.tool_calls or kept.tool_calls)


def amended_calls(state: TraceState, given: Step | None) -> tuple[ToolCall, ...]:
    """Return the calls now known for the last answered step; empty if the adapter reports none."""
    return () if given is None or state.pending is None else given.tool_calls


def checked_step(step: Step) -> Step:
    """Check that texts are strings, so that a None from a model's API is reported here and not deep below."""
    texts: list[tuple[str, object]] = [("thought", step.thought), ("reasoning", step.reasoning)]
    texts += [("tool output", result.output) for result in step.tool_results]
    for name, text in texts:
        if not isinstance(text, str):
            raise BadAnswer(f"the completed step's {name}", text, "must be a string; use '' for no text")
    return step
