"""One flow under way: what it started from, who answers it, when it began, what it came to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..requests import Flow
from ..types import StepDecision, TraceState
from ._answers import Answers

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""


@dataclass(slots=True)
class Turn:
    """`came` stays None where a fault ended it."""

    before: TraceState
    flow: Flow[tuple[TraceState, StepDecision]]
    answers: Answers
    started: float = field(default_factory=time.perf_counter)
    came: tuple[TraceState, StepDecision] | None = None


def ms_since(started: float) -> float:
    """Milliseconds since a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 3)
