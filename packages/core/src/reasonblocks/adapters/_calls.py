"""What every adapter says alike of one model call: its key, and what it leaves when it fails."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache

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


_PREFIX = re.compile(r"^(?:[a-z_-]+:)?(?:.*/)?")
_RELEASE = re.compile(r"[-@](latest|\d{8}|\d{4}-\d{2}-\d{2})$")


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: "anthropic:claude-x" is "claude-x-20250101"."""
    return _bare(one) == _bare(other)


@lru_cache(maxsize=256)
def _bare(name: str) -> str:
    return _RELEASE.sub("", _PREFIX.sub("", name.lower()))
