"""Which model a state's calls go to (BEHAVIOUR section 6). The engine sees names only."""

from __future__ import annotations

from collections.abc import Mapping

from .exceptions import ConfigError
from .types import FSMState

__all__ = ["ROUTED_STATES", "check_routing", "model_name", "route"]

ROUTED_STATES = ("FAST", "NORMAL", "SLOW", "SKIP")


def check_routing(given: Mapping[str, object]) -> None:
    """Refuse unknown states, and a state that is mapped to nothing."""
    for state, model in given.items():
        if state not in ROUTED_STATES:
            raise ConfigError.unknown("model_routing", state, ROUTED_STATES)
        if model is None or model == "":
            raise ConfigError(f"model_routing[{state!r}]", model, "must be a model identifier or a model object")


def route(state: FSMState, names: Mapping[str, str]) -> str | None:
    """The name of the state whose model this call goes to; None leaves the agent's model alone."""
    return state.value if state.value in names else None


def model_name(model: object) -> str:
    """A name for a mapped model: the identifier itself, or what a model object calls itself."""
    if isinstance(model, str):
        return model
    for attribute in ("model_name", "model", "model_id", "name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__
