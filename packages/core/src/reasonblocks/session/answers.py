"""Answers the engine's requests of one step: calls a caller's code with a deadline, and our own code in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from ..exceptions import BadAnswer, DeadlineExceeded, Unavailable
from ..ports import Advisor, AsyncEvaluator, AsyncPatternStore, Evaluator, Mailbox, Monitor, PatternStore
from ..requests import (
    Advance,
    Advise,
    Advised,
    Check,
    Collect,
    Evaluate,
    Flow,
    Observe,
    Request,
    Retrieve,
    Review,
    Say,
    Score,
)
from ..types import Advice, AdviceRequest, Injection, RunInfo, Step, StepDecision, TraceState, Transition
from ..util.memo import Memo
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
from .advice import ADVISOR, ADVISOR_SECONDS, Consultation, aadvice_of, advice_of, is_async
from .bounded_call import BoundedCall
from .drive import Call, SteeringFlow, ms_since
from .guard import Faults
from .patience import Learned
from .runs import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The backends of a client. `bounded` has, by name, those that get a deadline unless they are `inline`."""

    evaluator: Evaluator
    store: PatternStore
    scorer: Callable[[Step], float] | None = None
    transition: Transition | None = None
    monitors: tuple[Monitor, ...] = ()
    mailboxes: tuple[Mailbox, ...] = ()
    advisor: Advisor | None = None
    bounded: Mapping[str, BoundedCall] = field(default_factory=dict)
    learned: Learned | None = None
    on_injection: Callable[[Injection, RunView], object] | None = None
    conditions: Mapping[str, Callable[[RunView], object]] = field(default_factory=dict)
    """The caller's conditions, by option: "stop_when" and "interrupt_when"."""


NO_ADVICE = Advised(text="", ms=0.0, tokens=None)


@dataclass(slots=True, kw_only=True)
class StepInFlight:
    """A step of a run that is being decided, until `ends`, its deadline on the monotonic clock."""

    before: TraceState
    flow: Flow[tuple[TraceState, StepDecision]]
    backends: Backends
    info: RunInfo
    faults: Faults
    ends: float
    memo: Memo
    view: Callable[[TraceState, StepDecision], RunView]
    """Returns the run as the caller's own callables see it, before the call of a decision."""
    consultation: Consultation
    started: float = field(default_factory=time.perf_counter)
    result: tuple[TraceState, StepDecision] | None = field(default=None, init=False)
    """None until the step is decided, and for a step that a fault ended."""
    _over: bool = field(default=False, init=False)
    _doing: str = field(default="the step", init=False)
    """The culprit that is named when a step fails."""
    _late: set[str] = field(default_factory=set, init=False)
    """Callables that missed their deadline in this step: they are not called again, and miss one deadline only."""

    def run(self) -> SteeringFlow[None]:
        """Run the engine's flow under the guard, and keep its result. A step is run once."""
        if self._over:
            return
        self._over = True
        with self.faults.guard(lambda: self._doing):
            resume: Callable[[], Request[Any]] = partial(next, self.flow)
            while True:
                try:
                    request = resume()
                except StopIteration as done:
                    self.result = done.value
                    return
                try:
                    answer = yield from self._answer(request)
                except Unavailable as exc:
                    resume = partial(self.flow.throw, exc)
                else:
                    resume = partial(self.flow.send, answer)

    def _answer(self, request: Request[Any]) -> SteeringFlow[Any]:
        """Make the calls of a request in turn. A backend that fails is reported and `Unavailable`: it fails open."""
        answers: list[Any] = []
        started = time.perf_counter()
        try:
            for call in self._calls(request):
                self._doing = call.name
                answers.extend(call.fallback or (None,))
                with self.faults.guard(call.name) if call.fallback else nullcontext():
                    try:
                        answers[-1] = yield call
                    except DeadlineExceeded:
                        if call.bounded is not None:
                            self._late.add(call.name)
                        raise
        except Unavailable:
            raise
        except Exception as exc:
            if not isinstance(request, (Evaluate, Retrieve)):
                raise
            self.faults.report(self._doing, exc)
            raise Unavailable(self._doing, f"{type(exc).__name__}: {exc}") from exc
        self._doing = "the step"
        if isinstance(request, Observe):
            return tuple(answers)
        if isinstance(request, Advise):
            return self._after_advice(answers[0], started) if answers else NO_ADVICE
        return tuple([note for notes in answers for note in notes]) if isinstance(request, Collect) else answers[0]

    def _calls(self, request: Request[Any]) -> Iterator[Call]:
        backends = self.backends
        if isinstance(request, Evaluate):
            yield self._evaluation(backends.evaluator, replace(request, ends=self.ends))
        elif isinstance(request, Retrieve):
            yield self._retrieval(backends.store, replace(request, ends=self.ends, memo=self.memo))
        elif isinstance(request, Score) and backends.scorer is not None:
            yield self._call("the scorer", partial(difficulty_of, backends.scorer, request))
        elif isinstance(request, Advance) and backends.transition is not None:
            yield self._call("the transition", partial(next_state_of, backends.transition, request))
        elif isinstance(request, Observe):
            yield from self._observations(request)
        elif isinstance(request, Collect):
            for mailbox in backends.mailboxes:
                notes = partial(notes_of, mailbox, request)
                yield self._call(MAILBOX, notes, backend=mailbox, fallback=((),), share=2)
        elif isinstance(request, Say):
            for monitor in self._monitors:
                if monitor.name == request.monitor:
                    text = partial(own_text_of, monitor, request)
                    yield self._call(f"monitor {monitor.name}", text, fallback=(None,), share=2)
        elif isinstance(request, Advise) and backends.advisor is not None:
            told = self.consultation.ask(request, self.info.task)
            if told is not None:
                yield self._advice(backends.advisor, told)
        elif isinstance(request, Review) and backends.on_injection is not None:
            view = self.view(request.state, request.decision)
            review = partial(review_of, backends.on_injection, request, view)
            yield self._call("on_injection", review, fallback=(request.injection,), share=2)
        elif isinstance(request, Check):
            view = self.view(request.state, request.decision)
            condition = partial(reason_of_condition, backends.conditions[request.option], request, view)
            yield self._call(request.option, condition, fallback=(request.otherwise,), share=2)
        else:
            raise BadAnswer("the session", request, "nothing here answers this request")

    def _advice(self, advisor: Advisor, told: AdviceRequest) -> Call:
        """Return the call of the advisor, which has a time of its own."""
        work = partial(advice_of, advisor, told, self.consultation.redact)
        awork = partial(aadvice_of, advisor, told, self.consultation.redact)
        return Call(
            name=ADVISOR,
            work=work,
            bounded=self.backends.bounded.get(ADVISOR),
            awork=awork if is_async(advisor) else None,
            seconds=0.0 if ADVISOR in self._late else ADVISOR_SECONDS,
            fallback=(None,),
        )

    def _after_advice(self, advice: Advice | None, started: float) -> Advised:
        """Return an advisor's answer, and give the step back the time that it took."""
        waited = ms_since(started)
        self.ends += waited / 1000
        return Advised(text=advice.text if advice else "", ms=waited, tokens=advice.tokens if advice else None)

    def _observations(self, request: Observe) -> Iterator[Call]:
        """Run each monitor separately: a monitor that fails is skipped for this step and keeps its memory."""
        for to_come, monitor in zip(range(len(self._monitors), 0, -1), self._monitors, strict=True):
            observation = partial(observation_of, monitor, request, self.info)
            silent = (monitor.name, 0.0, request.memories.get(monitor.name), ())
            yield self._call(f"monitor {monitor.name}", observation, fallback=(silent,), share=to_come + 1)

    def _evaluation(self, evaluator: Evaluator, request: Evaluate) -> Call:
        awork = None
        if hasattr(evaluator, "aevaluate"):
            awork = partial(aevaluation_of, cast("AsyncEvaluator", evaluator), request)
        return self._call(EVALUATOR, partial(evaluation_of, evaluator, request), awork, backend=evaluator)

    def _retrieval(self, store: PatternStore, request: Retrieve) -> Call:
        awork = None
        if hasattr(store, "asearch"):
            awork = partial(atraces, cast("AsyncPatternStore", store), request, self.faults)
        return self._call(STORE, partial(traces, store, request, self.faults), awork, backend=store)

    def _call(
        self,
        name: str,
        work: Callable[[], Any],
        awork: Callable[[], Coroutine[Any, Any, Any]] | None = None,
        *,
        backend: object = None,
        fallback: tuple[Any, ...] = (),
        share: int = 1,
    ) -> Call:
        """Return a call that may take 1/share of the remaining time, so that one that hangs leaves time for others.

        An `inline` backend is called in place: it keeps the deadline itself.
        """
        seconds = 0.0 if name in self._late else (self.ends - time.monotonic()) / share
        bounded = None if getattr(backend, "inline", False) is True else self.backends.bounded.get(name)
        return Call(name=name, work=work, bounded=bounded, awork=awork, seconds=seconds, fallback=fallback)

    @property
    def _monitors(self) -> list[Monitor]:
        return sorted(self.backends.monitors, key=lambda monitor: monitor.name)
