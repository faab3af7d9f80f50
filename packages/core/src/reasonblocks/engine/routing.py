"""Routes each state's calls to a model (BEHAVIOUR section 6). The engine sees names only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeGuard

from ..exceptions import ConfigError
from ..types import FSMState

ROUTED_STATES = ("FAST", "NORMAL", "SLOW", "SKIP")
"""States that can be mapped to a model; in the others no call is routed."""
ESCALATE = "ESCALATE"
"""The route of an escalated call."""


def check_routing(given: Mapping[str, object]) -> None:
    """Raise `ConfigError` for an unknown state, or for a state that is mapped to nothing."""
    for state, model in given.items():
        if state not in ROUTED_STATES:
            raise ConfigError.unknown("model_routing", state, ROUTED_STATES)
        if model is None or (is_identifier(model) and not model):
            raise ConfigError(f"model_routing[{state!r}]", model, "must be a model identifier or a model object")


def route(state: FSMState, names: Mapping[str, str]) -> str | None:
    """Return the name of the state whose model this call goes to; None for the agent's own model."""
    return state.value if state.value in names else None


def model_name(model: object) -> str:
    """Return a mapped model's name: the identifier itself, a model object's own name, or its class's."""
    if is_identifier(model):
        return model
    for name in ("model_name", "model", "model_id", "name"):
        value = attribute(model, name)
        if is_identifier(value) and value:
            return value
    return type(model).__name__


def is_identifier(model: object) -> TypeGuard[str]:
    """Return True for a string, by its real type: a foreign object's `__class__` may raise."""
    return issubclass(type(model), str)


def attribute(model: object, name: str) -> object:
    """Return a foreign object's attribute; None if it is missing or its lookup raises."""
    with suppress(Exception):
        return getattr(model, name, None)
    return None
