"""Scripted backends and clients, and a sink that records events."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reasonblocks.client import ReasonBlocks
from reasonblocks.events import Event
from reasonblocks.exceptions import Unavailable
from reasonblocks.ports import Evaluator
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.session import Backends, SteeringSession
from reasonblocks.types import ETrace, Evaluation, Memories, Note, RunOptions, Step


class ScriptedEvaluator:
    """Evaluator that answers completed step n with the n-th evaluation; None, or none left, raises `Unavailable`.

    `asked` holds every request, in order.
    """

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
    """Pattern store that answers by a function of the request. `asked` holds every request, in order."""

    def __init__(self, answer: Callable[[Retrieve], Sequence[ETrace]]) -> None:
        self._answer = answer
        self.asked: list[Retrieve] = []

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        self.asked.append(request)
        return tuple(self._answer(request))


class RecordingSink:
    """Sink that keeps every event in `events`, in order. `closed` is True after `close()`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed = True


class ScriptedReasonBlocks(ReasonBlocks):
    """`ReasonBlocks` client with the given evaluator; it takes all other options of `ReasonBlocks`."""

    def __init__(self, *, evaluator: Evaluator, **options: Any) -> None:
        self._evaluator = evaluator
        super().__init__(**options)

    @property
    def _backends(self) -> Backends:
        return replace(super()._backends, evaluator=self._evaluator)


def scripted_scorer(difficulties: Mapping[str, float | Exception]) -> Callable[[Step], float]:
    """Return a scorer that looks up the id of a step's first tool call ("" for a step without), and raises exceptions.

    >>> scripted_scorer({"c0": 0.4, "c1": ValueError("no score"), "": 0.1})
    """

    def scorer(step: Step) -> float:
        answer = difficulties[step.tool_calls[0].id if step.tool_calls else ""]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return scorer


class CountingClient(ScriptedReasonBlocks):
    """Client that counts the sessions still alive when session number `count_at` is created.

    `alive` is their number after garbage collection, or None before that session.
    """

    def __init__(self, *, count_at: int, **options: Any) -> None:
        super().__init__(**options)
        self.alive: int | None = None
        self._count_at = count_at
        self._made: list[weakref.ref[SteeringSession]] = []

    def session(self, options: RunOptions | None = None, **given: Any) -> SteeringSession:
        session = super().session(options, **given)
        self._made.append(weakref.ref(session))
        if len(self._made) == self._count_at:
            gc.collect()
            self.alive = sum(made() is not None for made in self._made)
        return session


class FaultyClient(ScriptedReasonBlocks):
    """Client whose sessions raise in the methods named in `faulty`, like a fault in an adapter's own code."""

    def __init__(self, *, faulty: tuple[str, ...], **options: Any) -> None:
        super().__init__(**options)
        self._faulty = faulty

    def session(self, options: RunOptions | None = None, **given: Any) -> SteeringSession:
        session = super().session(options, **given)
        for name in self._faulty:
            setattr(session, name, self._raise)
        return session

    @staticmethod
    def _raise(*_: object, **__: object) -> None:
        raise RuntimeError("this session is broken")


class ScriptedMailbox:
    """Holds notes for every run, by the number of the question before which each arrives, from 0."""

    inline = True

    def __init__(self, notes: Mapping[int, Note]) -> None:
        self._notes = dict(notes)
        self._asked: Counter[str] = Counter()

    def waiting(self, run_id: str) -> tuple[Note, ...]:
        """Return the notes that have arrived for a run."""
        at = self._asked[run_id]
        self._asked[run_id] += 1
        return tuple([note for arrives, note in sorted(self._notes.items()) if arrives <= at])
