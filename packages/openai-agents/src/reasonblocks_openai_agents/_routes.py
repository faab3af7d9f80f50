"""Finds the model that a state's calls go to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agents import Model, ModelSettings
from agents.models import get_default_model_settings

from reasonblocks._routing import is_identifier

if TYPE_CHECKING:
    from ._calls import Call

Build = Callable[[str], Model]
"""Makes a model of an identifier: `ModelProvider.get_model`, or the caller's `model_factory`."""


class Routes:
    """Models that calls are routed to: objects as they are, identifiers built once each. Safe between threads."""

    def __init__(self) -> None:
        self._built: dict[str, Model] = {}
        self._lock = threading.Lock()

    async def model(self, call: Call, build: Build) -> Model | None:
        """The model that a call goes to, as its run maps it; None leaves the agent's.

        One that cannot be built is said once in a run, whose later calls are not routed there.
        """
        state = call.decision.route
        if state is None:
            return None
        with call.run.session.routing(state):
            wanted = call.run.model_routing.get(state)
            if is_identifier(wanted) and wanted not in self._built:  # this may import a provider's package
                return await asyncio.to_thread(self._made, wanted, build)
            return self._built[wanted] if is_identifier(wanted) else _model(wanted)
        return None

    def settings(self, call: Call) -> ModelSettings:
        """What the SDK fills in for that model: for an identifier alone."""
        wanted = call.run.model_routing.get(call.decision.route or "")
        return get_default_model_settings(wanted) if is_identifier(wanted) else ModelSettings()

    def built(self) -> list[Model]:
        """What was made here, and nobody else closes."""
        return list(self._built.values())

    def _made(self, name: str, build: Build) -> Model:
        with self._lock:
            if name not in self._built:
                self._built[name] = _model(build(name))
            return self._built[name]


def _model(given: object) -> Model:
    if not isinstance(given, Model):
        raise TypeError(f"{given!r} is no model: map a state to an identifier or to an instance of agents.Model")
    return given
