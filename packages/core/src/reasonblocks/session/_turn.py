"""One flow under way: what it started from, who answers it, when it began, what it came to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..exceptions import ConfigError, ProtocolError
from ..requests import Flow
from ..types import Step, StepDecision, StepInput, TraceState
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


def is_newest(decision: StepDecision, state: TraceState) -> bool:
    """Return True for the decision of the last step, or of an auxiliary call since then."""
    return any(one is not None and one.step == decision.step for one in (state.last, state.last_auxiliary))


def ms_since(started: float) -> float:
    """Milliseconds since a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 3)


def checked(given: object) -> StepInput:
    """Raise `ProtocolError` for what is no `StepInput` of a step and a key."""
    if not isinstance(given, StepInput):
        raise ProtocolError(f"begin_step takes a StepInput, not {given!r:.80}")
    key: object = given.key
    completed: object = given.completed
    if not isinstance(key, (str, type(None))):
        raise ProtocolError(f"StepInput.key is a string or None, not {key!r:.80}")
    if not isinstance(completed, (Step, type(None))):
        raise ProtocolError(f"StepInput.completed is a Step or None, not {completed!r:.80}")
    if not isinstance(given.auxiliary, bool):
        raise ProtocolError(f"StepInput.auxiliary is True or False, not {given.auxiliary!r:.80}")
    return given


def reason_of(failure: object) -> str:
    """Raise `ConfigError` for what cannot be a run's outcome."""
    if not isinstance(failure, str) or not failure:
        raise ConfigError("reason", failure, "must be a string that is not empty: give str(reason)")
    return failure
