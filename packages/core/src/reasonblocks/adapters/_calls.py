"""What every adapter says alike of one model call: its key, and what it leaves when it fails."""

from __future__ import annotations

from contextlib import suppress

from ..types import StepOutcome, TraceState


def failure_of(error: BaseException, *, model: str, latency_ms: float) -> StepOutcome:
    """What a call that raised leaves: `model` is the one that was asked."""
    text, name = "", type(error).__name__
    with suppress(Exception):  # its own `__str__` may raise, and must not hide it
        text = str(error)
    return StepOutcome(model=model, latency_ms=latency_ms, error=f"{name}: {text}" if text else name)


def call_key(state: TraceState) -> str:
    """Return the next call's key for a framework without one: the number of answered steps so far.

    A repeated call that was never answered has the same key. Not for auxiliary calls.
    """
    return f"call-{state.steps_begun - (state.steps_begun > 0 and state.pending is None)}"
