"""Holds the models that calls are routed to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from .._routing import is_identifier
from .._session import InThread, SteeringFlow, SteeringSession

ModelT = TypeVar("ModelT")


class RoutedModels(Generic[ModelT]):
    """Uses mapped model objects as they are, and builds each identifier once. Safe to share between threads.

    `check` returns a model that the framework can call, and raises `TypeError` for anything else.
    """

    def __init__(self, check: Callable[[Any], ModelT]) -> None:
        self._check = check
        self._built: dict[str, ModelT] = {}
        self._lock = threading.Lock()

    def model(
        self, session: SteeringSession, state: str | None, mapping: Mapping[str, object], build: Callable[[str], object]
    ) -> SteeringFlow[ModelT | None]:
        """Return the model to which `mapping` sends calls in `state`; None keeps the agent's own.

        If a model cannot be built, the session logs it once and closes the route.
        """
        if state is None:
            return None
        with session.routing(state):
            wanted = mapping.get(state)
            if not is_identifier(wanted):
                return self._check(wanted)
            if wanted not in self._built:
                yield InThread(partial(self._build, wanted, build))  # it may import a provider's package
            return self._built[wanted]
        return None

    def built(self) -> list[ModelT]:
        """Return the models that were built here, which nobody else closes."""
        return list(self._built.values())

    def _build(self, name: str, build: Callable[[str], object]) -> None:
        with self._lock:
            if name not in self._built:
                self._built[name] = self._check(build(name))
