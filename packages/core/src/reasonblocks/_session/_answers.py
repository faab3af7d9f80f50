"""Answers requests: a caller's callables in a worker with the step's deadline, our own code inline."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from .._json import compact, evolve, storable
from .._memo import Memo
from .._requests import Advance, Evaluate, Observe, Request, Retrieve, Say, Score
from .._text import clip, whole
from ..exceptions import BadAnswer, Unavailable
from ..ports import AsyncPatternStore, Evaluator, Monitor, PatternStore, SpeakingMonitor
from ..types import JSON, FSMState, RunInfo, Step, Transition
from ._check_answers import atraces, evaluation_of, traces, unit
from ._guard import Faults
from ._worker import Guest, Workers

MEMORY_BYTES = 3_072
"""The largest memory of a monitor, as compact JSON."""


def difficulty(scorer: Callable[[Step], float], request: Score) -> float:
    return unit("the scorer", scorer(request.step))


def next_state(transition: Transition, request: Advance) -> FSMState:
    state: object = transition(request.state, request.history)
    if type(state) is not FSMState:  # `isinstance` trusts an object's own `__class__`
        raise BadAnswer("the transition", state, "must be an FSMState")
    return state


def seen(monitor: Monitor, request: Observe, run: RunInfo) -> tuple[str, float, JSON, tuple[int, ...]]:
    name = f"monitor {monitor.name}"
    answer: object = monitor.observe(request.step, request.memories.get(monitor.name), run)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise BadAnswer(name, answer, "must be (score, memory, evidence)")
    score, memory, evidence = answer
    if not isinstance(evidence, tuple) or not all(type(at) is int and 0 <= at <= request.index for at in evidence):
        raise BadAnswer(name, evidence, f"evidence must be a tuple of step numbers from 0 to {request.index}")
    return monitor.name, unit(name, score), _memory(name, memory), tuple(dict.fromkeys(evidence))


def said(monitor: Monitor, request: Say) -> str | None:
    if not isinstance(monitor, SpeakingMonitor):
        return None
    text: object = monitor.say(request.evidence, request.rung)
    if not isinstance(text, (str, type(None))):
        raise BadAnswer(f"monitor {monitor.name}", text, "say must return a string, or None for the usual text")
    return whole(clip(str(text))) if text and text.strip() else None


def _memory(name: str, memory: JSON) -> JSON:
    try:
        plain = storable(memory, MEMORY_BYTES)
    except ValueError as exc:
        raise BadAnswer(name, memory, f"its memory must be JSON of at most {MEMORY_BYTES} bytes, but {exc}") from exc
    if (size := len(compact(plain).encode())) > MEMORY_BYTES:
        raise BadAnswer(name, f"{size} bytes", f"its memory must be JSON of at most {MEMORY_BYTES} bytes")
    return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """What answers: `guests` names those that run in a worker, because they are, or call, a caller's code."""

    evaluator: Evaluator
    store: PatternStore
    scorer: Callable[[Step], float] | None = None
    transition: Transition | None = None
    monitors: tuple[Monitor, ...] = ()
    guests: Mapping[str, Guest] = field(default_factory=dict)


def guests(names: list[str], workers: Workers) -> dict[str, Guest]:
    """One worker door each, with a breaker of its own."""
    return {name: Guest(name, workers) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that answers a request, or a part of it; `awork` is its other face, for event loops."""

    name: str
    work: Callable[[], Any]
    guest: Guest | None
    awork: Callable[[], Coroutine[Any, Any, Any]] | None = None
    instead: tuple[Any, ...] = ()
    """The answer, as one item, if only this call fails; without one, a failure faults the step."""
    share: int = 1
    """The call may take 1/share of the remaining time, so that a call that hangs leaves time for others."""


class Answers:
    """Answers the requests of one step of one run until `ends`, its deadline on the monotonic clock."""

    __slots__ = ("_backends", "_ends", "_memo", "_run", "doing", "faults")

    def __init__(self, backends: Backends, run: RunInfo, faults: Faults, ends: float, memo: Memo) -> None:
        self._backends, self._run, self.faults, self._ends, self._memo = backends, run, faults, ends, memo
        self.doing = "the step"
        """What to blame when a step fails."""

    def answer(self, request: Request[Any]) -> Any:
        with _Border(self, request):
            return self._joined(request, [self._do(job) for job in self._jobs(request)])

    async def aanswer(self, request: Request[Any]) -> Any:
        with _Border(self, request):
            return self._joined(request, [await self._ado(job) for job in self._jobs(request)])

    def _do(self, job: Job) -> Any:
        self.doing = job.name
        if not job.instead:
            return self._call(job)
        with self.faults.guard(job.name):
            return self._call(job)
        return job.instead[0]

    async def _ado(self, job: Job) -> Any:
        self.doing = job.name
        if not job.instead:
            return await self._acall(job)
        with self.faults.guard(job.name):
            return await self._acall(job)
        return job.instead[0]

    def _call(self, job: Job) -> Any:
        return job.work() if job.guest is None else job.guest.call(job.work, self._left(job))

    async def _acall(self, job: Job) -> Any:
        if job.guest is None:
            return job.work() if job.awork is None else await job.awork()
        left = self._left(job)
        return await (job.guest.acall(job.work, left) if job.awork is None else job.guest.wait_for(job.awork, left))

    def _left(self, job: Job) -> float:
        return (self._ends - time.monotonic()) / job.share

    def _jobs(self, request: Request[Any]) -> list[Job]:
        backends = self._backends
        if isinstance(request, Evaluate):
            return [self._job("the evaluator", partial(evaluation_of, backends.evaluator, request))]
        if isinstance(request, Retrieve):
            return [self._retrieval(backends.store, evolve(request, memo=self._memo))]
        if isinstance(request, Score) and backends.scorer is not None:
            return [self._job("the scorer", partial(difficulty, backends.scorer, request))]
        if isinstance(request, Advance) and backends.transition is not None:
            return [self._job("the transition", partial(next_state, backends.transition, request))]
        if isinstance(request, Observe):
            return list(self._observations(request))
        if isinstance(request, Say):
            return [self._speech(monitor, request) for monitor in self._monitors if monitor.name == request.monitor]
        raise BadAnswer("the session", request, "nothing here answers this request")

    def _observations(self, request: Observe) -> Iterator[Job]:
        """Run each monitor separately: one that fails is skipped for this step and keeps its memory."""
        for to_come, monitor in zip(range(len(self._monitors), 0, -1), self._monitors, strict=True):
            job = self._job(f"monitor {monitor.name}", partial(seen, monitor, request, self._run))
            silent = (monitor.name, 0.0, request.memories.get(monitor.name), ())
            yield evolve(job, instead=(silent,), share=to_come + 1)

    def _speech(self, monitor: Monitor, request: Say) -> Job:
        """Ask a monitor for its own text; one that fails has none."""
        job = self._job(f"monitor {monitor.name}", partial(said, monitor, request))
        return evolve(job, instead=(None,), share=2)

    def _retrieval(self, store: PatternStore, request: Retrieve) -> Job:
        name = "the pattern store"
        awork = None
        if hasattr(store, "asearch"):
            awork = partial(atraces, cast("AsyncPatternStore", store), request, self.faults)
        guest = None if getattr(store, "inline", False) is True else self._backends.guests.get(name)
        return Job(name=name, work=partial(traces, store, request, self.faults), guest=guest, awork=awork)

    @property
    def _monitors(self) -> list[Monitor]:
        return sorted(self._backends.monitors, key=lambda monitor: monitor.name)

    def _job(self, name: str, work: Callable[[], Any]) -> Job:
        return Job(name=name, work=work, guest=self._backends.guests.get(name))

    @staticmethod
    def _joined(request: Request[Any], answers: list[Any]) -> Any:
        return tuple(answers) if isinstance(request, Observe) else answers[0]


class _Border:
    """A backend that fails is unavailable to the engine; a callable that fails ends the step as a fault.

    A class, since each request crosses it: a generator takes twice its time.
    """

    __slots__ = ("_answers", "_fails_open")

    def __init__(self, answers: Answers, request: Request[Any]) -> None:
        self._answers, self._fails_open = answers, isinstance(request, (Evaluate, Retrieve))

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        answers = self._answers
        if exc is None:
            answers.doing = "the step"
        elif self._fails_open and isinstance(exc, Exception) and not isinstance(exc, Unavailable):
            answers.faults.report(answers.doing, exc)
            raise Unavailable(answers.doing, f"{type(exc).__name__}: {exc}") from exc
