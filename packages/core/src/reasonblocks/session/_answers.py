"""Answers the engine's requests: calls a caller's code with a deadline, and our own code in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from ..exceptions import BadAnswer, DeadlineExceeded, Unavailable
from ..ports import AsyncEvaluator, AsyncPatternStore, Evaluator, Mailbox, Monitor, PatternStore
from ..requests import Advance, Check, Collect, Evaluate, Observe, Request, Retrieve, Review, Say, Score
from ..types import Injection, RunInfo, Step, StepDecision, TraceState, Transition
from ..util.json import evolve
from ..util.memo import Memo
from ._bounded_call import BoundedCall
from ._check_answers import (
    EVALUATOR,
    MAILBOX,
    STORE,
    aevaluation_of,
    atraces,
    difficulty_of,
    evaluation_of,
    next_state_of,
    notes_of,
    observation_of,
    own_text_of,
    reason_of_condition,
    review_of,
    traces,
)
from ._learned import Learned
from ._runs import RunView
from .guard import Faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The backends of a client. `bounded` has, by name, those that get a deadline unless they are `inline`."""

    evaluator: Evaluator
    store: PatternStore
    scorer: Callable[[Step], float] | None = None
    transition: Transition | None = None
    monitors: tuple[Monitor, ...] = ()
    mailboxes: tuple[Mailbox, ...] = ()
    bounded: Mapping[str, BoundedCall] = field(default_factory=dict)
    learned: Learned | None = None
    on_injection: Callable[[Injection, RunView], object] | None = None
    conditions: Mapping[str, Callable[[RunView], object]] = field(default_factory=dict)
    """The caller's conditions, by option: "stop_when" and "interrupt_when"."""


@dataclass(slots=True, kw_only=True)  # not frozen, because each step makes one and a frozen one takes twice as long
class Call:
    """A single call that answers a request, or a part of it."""

    name: str
    work: Callable[[], Any]
    bounded: BoundedCall | None
    awork: Callable[[], Coroutine[Any, Any, Any]] | None = None
    """The work as a coroutine, for event loops."""
    fallback: tuple[Any, ...] = ()
    """The answer, in a tuple, if only this call fails; without a fallback, a failure faults the step."""
    share: int = 1
    """The call may take 1/share of the remaining time, so that a call that hangs leaves time for others."""


class Answers:
    """Answers the requests of one step of one run until `ends`, its deadline on the monotonic clock."""

    __slots__ = ("_backends", "_ends", "_late", "_memo", "_run", "_view", "doing", "faults")

    def __init__(
        self,
        backends: Backends,
        run: RunInfo,
        faults: Faults,
        ends: float,
        memo: Memo,
        view: Callable[[TraceState, StepDecision], RunView],
    ) -> None:
        """`view` returns the run as the caller's own callables see it, before the call of a decision."""
        self._backends, self._run, self.faults, self._ends, self._memo = backends, run, faults, ends, memo
        self._view = view
        self._late: set[str] = set()
        """Callables that missed their deadline in this step: they are not called again, and miss one deadline only."""
        self.doing = "the step"
        """The culprit that is named when a step fails."""

    def answer(self, request: Request[Any]) -> Any:
        with _FailOpen(self, request):
            return self._joined(request, [self._do(call) for call in self._calls(request)])

    async def aanswer(self, request: Request[Any]) -> Any:
        with _FailOpen(self, request):
            return self._joined(request, [await self._ado(call) for call in self._calls(request)])

    def _do(self, call: Call) -> Any:
        self.doing = call.name
        if not call.fallback:
            return self._made(call)
        with self.faults.guard(call.name):
            return self._made(call)
        return call.fallback[0]

    async def _ado(self, call: Call) -> Any:
        self.doing = call.name
        if not call.fallback:
            return await self._amade(call)
        with self.faults.guard(call.name):
            return await self._amade(call)
        return call.fallback[0]

    def _made(self, call: Call) -> Any:
        if call.bounded is None:
            return call.work()
        try:
            return call.bounded.call(call.work, self._left(call))
        except DeadlineExceeded:
            self._late.add(call.name)
            raise

    async def _amade(self, call: Call) -> Any:
        if call.bounded is None:
            return call.work() if call.awork is None else await call.awork()
        left = self._left(call)
        try:
            if call.awork is None:
                return await call.bounded.acall(call.work, left)
            return await call.bounded.wait_for(call.awork, left)
        except DeadlineExceeded:
            self._late.add(call.name)
            raise

    def _left(self, call: Call) -> float:
        return 0.0 if call.name in self._late else (self._ends - time.monotonic()) / call.share

    def _calls(self, request: Request[Any]) -> list[Call]:
        backends = self._backends
        if isinstance(request, Evaluate):
            return [self._evaluation(backends.evaluator, evolve(request, ends=self._ends))]
        if isinstance(request, Retrieve):
            return [self._retrieval(backends.store, evolve(request, ends=self._ends, memo=self._memo))]
        if isinstance(request, Score) and backends.scorer is not None:
            return [self._call("the scorer", partial(difficulty_of, backends.scorer, request))]
        if isinstance(request, Advance) and backends.transition is not None:
            return [self._call("the transition", partial(next_state_of, backends.transition, request))]
        if isinstance(request, Observe):
            return list(self._observations(request))
        if isinstance(request, Collect):
            return [self._notes(mailbox, request) for mailbox in backends.mailboxes]
        if isinstance(request, Say):
            return [self._own_text(monitor, request) for monitor in self._monitors if monitor.name == request.monitor]
        if isinstance(request, Review) and backends.on_injection is not None:
            view = self._view(request.state, request.decision)
            review = self._call("on_injection", partial(review_of, backends.on_injection, request, view))
            return [evolve(review, fallback=(request.injection,), share=2)]
        if isinstance(request, Check):
            view = self._view(request.state, request.decision)
            condition = partial(reason_of_condition, backends.conditions[request.option], request, view)
            return [evolve(self._call(request.option, condition), fallback=(request.otherwise,), share=2)]
        raise BadAnswer("the session", request, "nothing here answers this request")

    def _observations(self, request: Observe) -> Iterator[Call]:
        """Run each monitor separately: a monitor that fails is skipped for this step and keeps its memory."""
        for to_come, monitor in zip(range(len(self._monitors), 0, -1), self._monitors, strict=True):
            call = self._call(f"monitor {monitor.name}", partial(observation_of, monitor, request, self._run))
            silent = (monitor.name, 0.0, request.memories.get(monitor.name), ())
            yield evolve(call, fallback=(silent,), share=to_come + 1)

    def _own_text(self, monitor: Monitor, request: Say) -> Call:
        """Ask a monitor for its own text; return None if it fails."""
        call = self._call(f"monitor {monitor.name}", partial(own_text_of, monitor, request))
        return evolve(call, fallback=(None,), share=2)

    def _notes(self, mailbox: Mailbox, request: Collect) -> Call:
        """Ask a mailbox for its notes; it has none if it fails."""
        call = self._backend_call(MAILBOX, mailbox, partial(notes_of, mailbox, request), None)
        return evolve(call, fallback=((),), share=2)

    def _evaluation(self, evaluator: Evaluator, request: Evaluate) -> Call:
        awork = None
        if hasattr(evaluator, "aevaluate"):
            awork = partial(aevaluation_of, cast("AsyncEvaluator", evaluator), request)
        return self._backend_call(EVALUATOR, evaluator, partial(evaluation_of, evaluator, request), awork)

    def _retrieval(self, store: PatternStore, request: Retrieve) -> Call:
        awork = None
        if hasattr(store, "asearch"):
            awork = partial(atraces, cast("AsyncPatternStore", store), request, self.faults)
        return self._backend_call(STORE, store, partial(traces, store, request, self.faults), awork)

    def _backend_call(
        self,
        name: str,
        backend: object,
        work: Callable[[], Any],
        awork: Callable[[], Coroutine[Any, Any, Any]] | None,
    ) -> Call:
        """Call an `inline` backend in place: it keeps the deadline itself."""
        bounded = None if getattr(backend, "inline", False) is True else self._backends.bounded.get(name)
        return Call(name=name, work=work, bounded=bounded, awork=awork)

    def _call(self, name: str, work: Callable[[], Any]) -> Call:
        return Call(name=name, work=work, bounded=self._backends.bounded.get(name))

    @property
    def _monitors(self) -> list[Monitor]:
        return sorted(self._backends.monitors, key=lambda monitor: monitor.name)

    @staticmethod
    def _joined(request: Request[Any], answers: list[Any]) -> Any:
        if isinstance(request, Observe):
            return tuple(answers)
        return tuple([note for notes in answers for note in notes]) if isinstance(request, Collect) else answers[0]


class _FailOpen:
    """Reports a failing backend and raises `Unavailable` instead; other callables' exceptions fault the step.

    A class, because each request enters it and a generator takes twice as long.
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
