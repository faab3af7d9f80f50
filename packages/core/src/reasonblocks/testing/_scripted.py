"""Backends that answer what a script says, and a sink that keeps what it is told."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._client import ReasonBlocks
from .._json import evolve
from .._requests import Evaluate, Retrieve
from .._session import Backends, SteeringSession
from ..events import Event
from ..exceptions import Unavailable
from ..ports import Evaluator
from ..types import ETrace, Evaluation, Memories, RunOptions, Step


class ScriptedEvaluator:
    """Answers completed step n with the n-th evaluation; None, or none left, is unavailable."""

    def __init__(self, evaluations: Sequence[Evaluation | None]) -> None:
        self.evaluations = list(evaluations)
        self.asked: list[Evaluate] = []

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        self.asked.append(request)
        answer = self.evaluations[request.index] if request.index < len(self.evaluations) else None
        if answer is None:
            raise Unavailable("the scripted evaluator", f"step {request.index} says so")
        return answer, request.memories


class ScriptedStore:
    """Answers by a function of the request, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Retrieve], Sequence[ETrace]]) -> None:
        self._answer = answer
        self.asked: list[Retrieve] = []

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        self.asked.append(request)
        return tuple(self._answer(request))


class RecordingSink:
    """Keeps every event, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed = True


class ScriptedReasonBlocks(ReasonBlocks):
    """A client whose evaluator is given: everything else is the real thing."""

    def __init__(self, *, evaluator: Evaluator, **options: Any) -> None:
        self._evaluator = evaluator
        super().__init__(**options)

    @property
    def _backends(self) -> Backends:
        return evolve(super()._backends, evaluator=self._evaluator)


def scripted_scorer(difficulties: Mapping[str, float | Exception]) -> Callable[[Step], float]:
    """A scorer by the id of a step's first tool call ("" for a step without); an exception is raised."""

    def scorer(step: Step) -> float:
        answer = difficulties[step.tool_calls[0].id if step.tool_calls else ""]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return scorer


class Watched(ScriptedReasonBlocks):
    """Counts the sessions still alive, after garbage collection, when session number `census` is created."""

    def __init__(self, *, census: int, **options: Any) -> None:
        super().__init__(**options)
        self.alive: int | None = None
        self._census = census
        self._made: list[weakref.ref[SteeringSession]] = []

    def session(self, options: RunOptions | None = None, **given: Any) -> SteeringSession:
        session = super().session(options, **given)
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

    def session(self, options: RunOptions | None = None, **given: Any) -> SteeringSession:
        session = super().session(options, **given)
        for name in self._broken:
            setattr(session, name, self._refuse)
        return session

    @staticmethod
    def _refuse(*_: object, **__: object) -> None:
        raise RuntimeError("this session is broken")
