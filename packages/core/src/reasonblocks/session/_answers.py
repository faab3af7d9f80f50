"""Who answers which request: a caller's callables in a worker with the step's deadline, our own code inline.

What comes back is checked here, once, where it enters.
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, cast

from ..exceptions import BadAnswer, Unavailable
from ..memo import Memo
from ..ports import AsyncPatternStore, Evaluator, Monitor, PatternStore
from ..requests import Advance, Evaluate, Observe, Request, Retrieve, Score
from ..text import whole
from ..types import JSON, ETrace, FSMState, Pattern, RunInfo, Step, Transition, compact, evolve, quick, storable
from ._evaluations import evaluation_of, unit
from ._guard import Faults
from ._worker import Guest, Workers

MEMORY_BYTES = 3_072
"""The most that a monitor may remember, as compact JSON."""
MOST_PATTERNS = 1_000
"""Of a store's answer that are looked at."""
MOST_ID_CHARS = 1_000
"""Of a pattern's id, which the trace state remembers."""


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


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that answers a request, or a part of it; `awork` is its other face, for event loops."""

    name: str
    work: Callable[[], Any]
    guest: Guest | None
    awork: Callable[[], Coroutine[Any, Any, Any]] | None = None


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
        return job.work() if job.guest is None else job.guest.call(job.work, self._ends - time.monotonic())

    async def _ado(self, job: Job) -> Any:
        self.doing = job.name
        if job.guest is None:
            return job.work() if job.awork is None else await job.awork()
        left = self._ends - time.monotonic()
        return await (job.guest.acall(job.work, left) if job.awork is None else job.guest.wait_for(job.awork, left))

    def _jobs(self, request: Request[Any]) -> list[Job]:
        backends = self._backends
        if isinstance(request, Evaluate):
            return [self._job("the evaluator", partial(evaluation_of, backends.evaluator, request))]
        if isinstance(request, Retrieve):
            return [self._retrieval(backends.store, evolve(request, memo=self._memo))]
        if isinstance(request, Score) and backends.scorer is not None:
            return [self._job("the scorer", partial(_difficulty, backends.scorer, request))]
        if isinstance(request, Advance) and backends.transition is not None:
            return [self._job("the transition", partial(_state, backends.transition, request))]
        if isinstance(request, Observe):
            return [self._job(f"monitor {one.name}", partial(_seen, one, request, self._run)) for one in self._monitors]
        raise BadAnswer("the session", request, "nothing here answers this request")

    def _retrieval(self, store: PatternStore, request: Retrieve) -> Job:
        name = "the pattern store"
        awork = partial(_atraces, cast("AsyncPatternStore", store), request) if hasattr(store, "asearch") else None
        guest = None if getattr(store, "inline", False) is True else self._backends.guests.get(name)
        return Job(name=name, work=partial(_traces, store, request), guest=guest, awork=awork)

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


def _difficulty(scorer: Callable[[Step], float], request: Score) -> float:
    return unit("the scorer", scorer(request.step))


def _state(transition: Transition, request: Advance) -> FSMState:
    state: object = transition(request.state, request.history)
    if type(state) is not FSMState:  # `isinstance` believes an object that only says so
        raise BadAnswer("the transition", state, "must be an FSMState")
    return state


def _seen(monitor: Monitor, request: Observe, run: RunInfo) -> tuple[str, float, JSON, tuple[int, ...]]:
    name = f"monitor {monitor.name}"
    answer: object = monitor.observe(request.step, request.memories.get(monitor.name), run)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise BadAnswer(name, answer, "must be (score, memory, evidence)")
    score, memory, evidence = answer
    if not isinstance(evidence, tuple) or not all(type(at) is int and 0 <= at <= request.index for at in evidence):
        raise BadAnswer(name, evidence, f"evidence is step numbers from 0 to {request.index}")
    return monitor.name, unit(name, score), _memory(name, memory), tuple(evidence)


def _memory(name: str, memory: JSON) -> JSON:
    try:
        plain = storable(memory, MEMORY_BYTES)
    except ValueError as exc:
        raise BadAnswer(name, memory, f"its memory must be JSON of at most {MEMORY_BYTES} bytes, but {exc}") from exc
    if (size := len(compact(plain).encode())) > MEMORY_BYTES:
        raise BadAnswer(name, f"{size} bytes", f"its memory may be {MEMORY_BYTES} bytes of JSON")
    return plain


def _traces(store: PatternStore, request: Retrieve) -> tuple[ETrace, ...]:
    return _checked_traces(store.search(request))


async def _atraces(store: AsyncPatternStore, request: Retrieve) -> tuple[ETrace, ...]:
    return _checked_traces(await store.asearch(request))


def _checked_traces(found: Iterable[ETrace]) -> tuple[ETrace, ...]:
    answer = tuple(islice(found, MOST_PATTERNS))
    for given in answer:
        _check_trace(given)
    return answer


def _check_trace(given: object) -> None:
    if not isinstance(given, ETrace):
        raise BadAnswer("the pattern store", given, "must give ETrace values")
    pattern: object = given.pattern
    similarity: object = given.similarity
    if not isinstance(pattern, Pattern):
        raise BadAnswer("the pattern store", pattern, "an ETrace holds a Pattern")
    if type(pattern.id) is not str or len(pattern.id) > MOST_ID_CHARS or whole(pattern.id) != pattern.id:
        raise BadAnswer(
            "the pattern store", pattern.id, f"a pattern's id is text of at most {MOST_ID_CHARS} characters"
        )
    if not isinstance(similarity, numbers.Real) or not math.isfinite(similarity):
        raise BadAnswer("the pattern store", similarity, "similarity must be a finite number")
