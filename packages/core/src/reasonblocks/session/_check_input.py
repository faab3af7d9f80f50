"""Validates what an adapter passes to a session, and recognises its newest decision: the mistakes are the adapter's."""

from __future__ import annotations

from ..exceptions import ConfigError, ProtocolError
from ..types import Step, StepDecision, StepInput, TraceState


def is_newest(decision: StepDecision, state: TraceState) -> bool:
    """Return True for the decision of the last step, or of an auxiliary call since then, whose call is made."""
    if decision.stop is not None:
        return False
    return any(last is not None and last.step == decision.step for last in (state.last, state.last_auxiliary))


def checked(given: object) -> StepInput:
    """Raise `ProtocolError` unless `given` is a `StepInput` with a valid step and key."""
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


def words_of(name: str, given: object) -> str:
    """Return the outcome or the reason that was given; raise `ConfigError` if it is empty, or not a string."""
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(name, given, f"must be a string that is not empty: give str({name})")
    return given
