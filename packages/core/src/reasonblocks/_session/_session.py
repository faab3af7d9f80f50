"""The session of one agent run: the step lifecycle that every adapter maps onto.

Begin a step before each model call and end it afterwards; finish once. A session belongs to one run and has one step at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, Protocol, TypeAlias, TypeVar

from .._engine import faulted, final_fault, final_flow, step_flow, with_outcome
from .._json import evolve
from .._memo import Memo
from .._requests import Flow, Request
from ..exceptions import ConfigError, ProtocolError, Unavailable
from ..types import AdapterCaps, RunInfo, Settings, Step, StepDecision, StepInput, StepLogEntry, StepOutcome, TraceState
from ._answers import Answers, Backends
from ._guard import Faults
from ._log import Closed, Reports, StepLog
from ._runs import ABANDONED, OpenRuns, TraceStateManager
from ._telemetry import RunEvents, Telemetry

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""


T = TypeVar("T")


class Wait(Protocol):
    """Work that a flow waits for, with one method for threads and one for event loops."""

    def answer(self) -> Any: ...
    async def aanswer(self) -> Any: ...


SteeringFlow: TypeAlias = Generator[Wait, Any, T]
"""A lifecycle, written once for threads and event loops: it yields what it waits for. `drive` or `adrive` runs it."""


@dataclass(frozen=True, slots=True)
class InThread:
    """Wait for `work`, which may block: an event loop runs it in a thread, because it may load a package or a file."""

    work: Callable[[], Any]

    def answer(self) -> Any:
        return self.work()

    async def aanswer(self) -> Any:
        import asyncio  # already imported by the awaiting code

        return await asyncio.to_thread(self.work)


@dataclass(slots=True)
class _Question:
    """A request of the engine, with the backends that answer it."""

    request: Request[Any]
    answers: Answers

    def answer(self) -> Any:
        return self.answers.answer(self.request)

    async def aanswer(self) -> Any:
        return await self.answers.aanswer(self.request)


@dataclass(slots=True)
class StepInFlight:
    """A step that is being decided. `result` stays None if a fault ended it."""

    before: TraceState
    flow: Flow[tuple[TraceState, StepDecision]]
    answers: Answers
    started: float = field(default_factory=time.perf_counter)
    result: tuple[TraceState, StepDecision] | None = None

    def run(self) -> SteeringFlow[None]:
        """Run the engine's flow under the guard, and keep its result."""
        with self.answers.faults.guard(lambda: self.answers.doing):
            self.result = yield from self._questions()

    def _questions(self) -> SteeringFlow[tuple[TraceState, StepDecision]]:
        resume: Callable[[], Request[Any]] = partial(next, self.flow)
        while True:
            try:
                request = resume()
            except StopIteration as done:
                result: tuple[TraceState, StepDecision] = done.value
                return result
            try:
                given = yield _Question(request, self.answers)
            except Unavailable as exc:
                resume = partial(self.flow.throw, exc)
            else:
                resume = partial(self.flow.send, given)


def drive(flow: SteeringFlow[T]) -> T:
    """Run a flow to its end in this thread; return its result, or raise what it raises."""
    resume: Callable[[Any], Wait] = flow.send
    given: Any = None
    try:
        while True:
            wait = resume(given)
            try:
                resume, given = flow.send, wait.answer()
            except BaseException as exc:  # noqa: BLE001 - the flow handles it, or raises it again
                resume, given = flow.throw, exc
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        del given  # an error and this frame would keep each other alive


async def adrive(flow: SteeringFlow[T]) -> T:
    """Run a flow to its end without blocking the event loop; return its result, or raise what it raises."""
    resume: Callable[[Any], Wait] = flow.send
    given: Any = None
    try:
        while True:
            wait = resume(given)
            try:
                resume, given = flow.send, await wait.aanswer()
            except BaseException as exc:  # noqa: BLE001 - the flow handles it, or raises it again
                resume, given = flow.throw, exc
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        del given  # an error and this frame would keep each other alive


def is_newest(decision: StepDecision, state: TraceState) -> bool:
    """Return True for the decision of the last step, or of an auxiliary call since then."""
    return any(last is not None and last.step == decision.step for last in (state.last, state.last_auxiliary))


def ms_since(started: float) -> float:
    """Return the milliseconds since a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 3)


def checked(given: object) -> StepInput:
    """Raise `ProtocolError` unless `given` is a `StepInput` with a valid step and key."""
    if not isinstance(given, StepInput):
        raise ProtocolError(f"begin_step takes a StepInput, not {given!r:.80}")
    key: object = given.key
    completed: object = given.completed
    if not isinstance(key, (str, type(None))):
        raise ProtocolError(f"StepInput.key is a string or None, not {key!r:.80}")
    if not isinstance(completed, (Step, type(None))):
        raise ProtocolError(f"StepInput.completed is a Step or None, not {completed!r:.80}")
    if not isinstance(given.auxiliary, bool):
        raise ProtocolError(f"StepInput.auxiliary is True or False, not {given.auxiliary!r:.80}")
    return given


def reason_of(failure: object) -> str:
    """Return the reason; raise `ConfigError` if it cannot be a run's outcome."""
    if not isinstance(failure, str) or not failure:
        raise ConfigError("reason", failure, "must be a string that is not empty: give str(reason)")
    return failure


class SteeringSession(Reports):
    """Steers one run. Made by `ReasonBlocks.session`.

    A context manager: leaving it finishes the run, as failed if the block raised.
    """

    def __init__(
        self,
        *,
        run: RunInfo,
        settings: Settings,
        backends: Backends,
        telemetry: Telemetry,
        caps: AdapterCaps | None = None,
        snapshot: Mapping[str, Any] | None = None,
        deadline_seconds: float = 0.8,
        strict: bool = False,
        open_runs: OpenRuns,
        owner: object = None,
    ) -> None:
        self.run, self.caps = run, caps or AdapterCaps()
        self.final: StepLogEntry | None = None
        self.final_decision: StepDecision | None = None
        self.outcome: str | None = None
        self._settings, self._backends, self._telemetry = settings, backends, telemetry
        self._deadline, self._ends = deadline_seconds, inf
        self._open_runs = open_runs
        self._owner = owner  # the client lives as long as its runs: its sinks are flushed at exit
        self._faults = Faults(f"run {run.run_id!r}", strict=strict)
        self._run_events = RunEvents(telemetry, self._faults)
        self._log, self._memo = StepLog(settings.judged_by), Memo()
        self._failure: str | None = None
        self._paused = False
        self._state = TraceState(trace_id=run.run_id, token_budget=settings.token_budget)
        self.trace = TraceStateManager(lambda: self._state, self._restored)
        if snapshot is not None:
            self.trace.restore(snapshot)

    def begin_step(self, given: StepInput) -> StepDecision:
        """Decide the next model call. A repeated key returns the same decision (`replayed`).

        Raises `StaleKey` for an older key and `ProtocolError` for anything but a `StepInput`; with `strict`, faults
        too.
        """
        return drive(self.begin_flow(given))

    async def abegin_step(self, given: StepInput) -> StepDecision:
        """Call `begin_step` on an event loop: a caller's callables never block it."""
        return await adrive(self.begin_flow(given))

    def begin_flow(self, given: StepInput) -> SteeringFlow[StepDecision]:
        """Run `begin_step` within an adapter's own flow: `decision = yield from session.begin_flow(given)`."""
        checked(given)
        ends = self._ends_now
        if self._backends.levels is not None and self._starts:
            own = yield from self._backends.levels.read(self.run, ends)
            if own is not None and not self._state.calls:
                self._state = evolve(self._state, own_level=own)
                self._log.judged_by = own.name
        step = self._step(step_flow(self._state, given, self._settings), ends)
        yield from step.run()
        return self._begun(step, given)

    @property
    def _starts(self) -> bool:
        """True before the first call of a run, when its own level is fixed."""
        return not self._state.calls and not self._settings.disabled and self._state.own_level is None

    def end_step(self, decision: StepDecision, outcome: StepOutcome) -> None:
        """Record the call's outcome. For a retry, the last outcome is kept, and attempts and tokens add up."""
        started = time.perf_counter()
        with self._faults.guard("ending a step"):
            if newest := is_newest(decision, self._state):
                self._log.ensure(decision)
            self._log.fill(decision.step, outcome, ms_since(started))
            if newest:
                self._state = with_outcome(self._state, outcome, auxiliary=decision.skipped_reason == "auxiliary")

    def finish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """End the run once: the last completed step is judged (`final`), never injected. A failure replaces success."""
        drive(self.finish_flow(outcome, completed=completed))

    async def afinish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """Call `finish` on an event loop."""
        await adrive(self.finish_flow(outcome, completed=completed))

    def finish_flow(self, outcome: str = "success", *, completed: Step | None = None) -> SteeringFlow[None]:
        """Run `finish` within an adapter's own flow."""
        before = self.outcome
        if (step := self._finishing(completed)) is not None:
            yield from step.run()
            self._finalised(step, completed)
        self._finished(outcome)
        if self._backends.levels is not None and before is None and self.outcome not in (None, ABANDONED):
            yield from self._backends.levels.add(self.run, self._state, self._ends_now)

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """Mark the run as failed, whatever its own outcome. After its end, a second finish event is sent."""
        if run_id not in (None, self.run.run_id):
            raise ConfigError("run_id", run_id, f"this session is run {self.run.run_id!r}")
        self._failure = reason_of(reason)
        if self.outcome is not None:
            self._emit_finish(self._failure)

    def pause(self) -> None:
        """Pause the run, which waits in a checkpoint: nothing here finishes it. Its next step continues it."""
        self._run_events.step(self.run.run_id, self._log.settle())
        self._open_runs.forget(self)
        self._paused = True

    def abandon(self, ends: float | None = None) -> None:
        """End an open run as abandoned; judge its last step until `ends` on the monotonic clock, if given."""
        if self.outcome is not None or self._paused or not self._state.calls:
            return
        if ends is not None:
            self._ends = ends
            try:
                self.finish(ABANDONED)
            finally:
                self._ends = inf  # a run that continues has its whole time again
        else:
            self._run_events.step(self.run.run_id, self._log.close())
            self._emit_finish(self._failure or ABANDONED)

    def close(self, timeout: float = 5.0) -> None:
        """Finish an open run as abandoned and wait for the sinks, at most `timeout` seconds in all."""
        ends = time.monotonic() + timeout
        self.abandon(ends)
        self._telemetry.flush(ends - time.monotonic())

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Entry n is call n; the newest 10,000."""
        return self._log.entries

    def __enter__(self) -> SteeringSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.finish("success" if kind is None else f"failure: {kind.__name__}")
        self.close()

    async def __aenter__(self) -> SteeringSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.afinish("success" if kind is None else f"failure: {kind.__name__}")
        await self._telemetry.aflush()

    @property
    def _ends_now(self) -> float:
        """The deadline of what begins now, on the monotonic clock."""
        return min(time.monotonic() + self._deadline, self._ends)

    def _step(self, flow: Flow[tuple[TraceState, StepDecision]], ends: float) -> StepInFlight:
        return StepInFlight(self._state, flow, Answers(self._backends, self.run, self._faults, ends, self._memo))

    def _begun(self, step: StepInFlight, given: StepInput) -> StepDecision:
        if self._state is not step.before:
            step.result = None
            mistake = ProtocolError("a run takes one step at a time: end it, then begin")
            self._faults.report("two steps at once", mistake)
        before = self._state
        state, decision = step.result or faulted(before, given, self._settings)
        if decision.replayed:
            if before.pending is None:  # not answered yet, and perhaps taken by another process
                self._log.ensure(decision, given.completed)
            return decision
        self._run_events.step(self.run.run_id, self._log.close())
        if before.calls == 0:
            self.run = evolve(self.run, model=self.run.model or given.default_model)
            self._run_events.start(self.run)
        self._open_runs.add(self)
        self._state, self._paused = state, False
        self.outcome = self.final = self.final_decision = None
        for warning in decision.warnings:
            self._faults.say(warning, warning)
        done = self._log.completed(before, given.completed) if before.steps_begun and not given.auxiliary else None
        self._log.open(decision, done, time.time(), ms_since(step.started))
        return decision

    def _finishing(self, completed: Step | None) -> StepInFlight | None:
        """Return the last step to assess, None if the run has ended or its last call came to nothing."""
        if self.outcome is not None:
            return None
        self._run_events.step(self.run.run_id, self._log.close())
        if self._settings.disabled or not self._state.steps_begun or not (completed or self._state.pending):
            return None
        return self._step(final_flow(self._state, completed, self._settings), self._ends_now)

    def _finalised(self, step: StepInFlight, completed: Step | None) -> None:
        self._state, decision = step.result or final_fault(step.before, self._settings)
        self.final_decision, self.final = decision, self._log.final(decision, ms_since(step.started))
        closed = Closed(entry=self.final, step=self._log.completed(step.before, completed), scores=decision.scores)
        self._run_events.step(self.run.run_id, closed)

    def _finished(self, outcome: str) -> None:
        outcome = self._failure or outcome
        if self.outcome is None or (self.outcome == "success" and outcome != "success"):
            self._emit_finish(outcome)

    def _emit_finish(self, outcome: str) -> None:
        self.outcome = outcome
        self._open_runs.forget(self)
        if self._state.calls:  # a run that never began had no start event
            self._run_events.finish(self.run.run_id, outcome, self.final.doubts if self.final else ())

    def _restored(self, state: TraceState) -> None:
        self._state = state
        self._log.rewind(state.calls)
        self._log.judged_by = state.own_level.name if state.own_level else self._settings.judged_by
        self.run = evolve(self.run, run_id=state.trace_id)
        self._faults.owner = f"run {state.trace_id!r}"
