"""What a model call that failed leaves."""

from __future__ import annotations

from contextlib import suppress

from ..types import StepOutcome


def failure_of(error: BaseException, *, model: str, latency_ms: float) -> StepOutcome:
    """What a call that raised leaves: `model` is the one that was asked."""
    text, name = "", type(error).__name__
    with suppress(Exception):  # its own `__str__` may raise, and must not hide it
        text = str(error)
    return StepOutcome(model=model, latency_ms=latency_ms, error=f"{name}: {text}" if text else name)
