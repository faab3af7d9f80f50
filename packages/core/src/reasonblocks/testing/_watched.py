"""Clients that watch the sessions they create, or create broken ones."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from ..session import SteeringSession
from ._scripted import ScriptedReasonBlocks


class Watched(ScriptedReasonBlocks):
    """Counts the sessions still alive, after garbage collection, when session number `census` is created."""

    def __init__(self, *, census: int, **options: Any) -> None:
        super().__init__(**options)
        self.alive: int | None = None
        self._census = census
        self._made: list[weakref.ref[SteeringSession]] = []

    def session(self, **given: Any) -> SteeringSession:
        session = super().session(**given)
        self._made.append(weakref.ref(session))
        if len(self._made) == self._census:
            gc.collect()
            self.alive = sum(made() is not None for made in self._made)
        return session


class Broken(ScriptedReasonBlocks):
    """Creates sessions whose methods in `broken` raise, as a fault in an adapter's own code would."""

    def __init__(self, *, broken: tuple[str, ...], **options: Any) -> None:
        super().__init__(**options)
        self._broken = broken

    def session(self, **given: Any) -> SteeringSession:
        session = super().session(**given)
        for name in self._broken:
            setattr(session, name, self._refuse)
        return session

    @staticmethod
    def _refuse(*_: object, **__: object) -> None:
        raise RuntimeError("this session is broken")
