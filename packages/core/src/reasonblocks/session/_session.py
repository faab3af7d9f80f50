"""One run of an agent, steered: the step lifecycle that every adapter maps onto.

Begin a step before each model call, end it after; finish once. One step at a time: a session belongs to one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from ..engine import faulted, final_flow, step_flow, with_outcome
from ..events import Event, RunFinish, RunStart, step_event
from ..exceptions import ConfigError, ProtocolError
from ..requests import Flow
from ..types import (
    AdapterCaps,
    RunInfo,
    Settings,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
    TraceState,
)
from ._answers import Answers, Backends
from ._drivers import adrive, drive
from ._guard import Faults
from ._log import StepLog, entry_of
from ._telemetry import Telemetry
from ._trace import TraceStateManager

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""
ABANDONED = "failure: abandoned"


@dataclass(slots=True)
class _Turn:
    """One flow under way: what it started from, and what it came to (None: a fault)."""

    before: TraceState
    flow: Flow[tuple[TraceState, StepDecision]]
    answers: Answers
    started: float
    came: tuple[TraceState, StepDecision] | None = None


class SteeringSession:
    """Made by `ReasonBlocks.session`. A context manager: leaving it finishes the run, as failed if it raised."""

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
        on_finish: Callable[[SteeringSession], None] = lambda session: None,
    ) -> None:
        self.run = run
        self.caps = caps or AdapterCaps()
        self.final: StepLogEntry | None = None
        self.final_decision: StepDecision | None = None
        self.outcome: str | None = None
        self._settings = settings
        self._backends = backends
        self._telemetry = telemetry
        self._deadline = deadline_seconds
        self._on_finish = on_finish
        self._faults = Faults(_owner(run.run_id), strict=strict)
        self._log = StepLog()
        self._failure: str | None = None
        self._told_start = False
        self._state = TraceState(trace_id=run.run_id, token_budget=settings.token_budget)
        self.trace = TraceStateManager(lambda: self._state, self._restored)
        if snapshot is not None:
            self.trace.restore(snapshot)

    # ------------------------------------------------------------ the lifecycle

    def begin_step(self, given: StepInput) -> StepDecision:
        """The decision for the next model call. The same key again gives the same decision (`replayed`).

        Raises `StaleKey` for an older key, `ProtocolError` for what is no `StepInput`; with `strict`, faults too.
        """
        turn = self._step(given)
        with self._faults.guard(lambda: turn.answers.doing):
            turn.came = drive(turn.flow, turn.answers.answer)
        return self._begun(turn, given)

    async def abegin_step(self, given: StepInput) -> StepDecision:
        """`begin_step` for an event loop: a caller's callables never block it."""
        turn = self._step(given)
        with self._faults.guard(lambda: turn.answers.doing):
            turn.came = await adrive(turn.flow, turn.answers.aanswer)
        return self._begun(turn, given)

    def end_step(self, decision: StepDecision, outcome: StepOutcome) -> None:
        """What the call did. Again for the same decision (a retry): the last outcome wins, attempts and tokens add."""
        started = time.perf_counter()
        with self._faults.guard("ending a step"):
            if decision.step == self._state.calls - 1:
                if not self._log.has(decision.step):  # begun in another process
                    self._log.open(decision, None, time.time(), 0.0)
                self._state = with_outcome(self._state, outcome)
            self._log.fill(decision.step, outcome, _ms_since(started))

    def finish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """End the run once: the last completed step is judged (`final`), never injected.

        `outcome` is "success" or the failure. A failure after success replaces it; anything else comes too late.
        """
        if (turn := self._finishing(completed)) is not None:
            with self._faults.guard("the final step"):
                turn.came = drive(turn.flow, turn.answers.answer)
            self._finalised(turn)
        self._finished(outcome)

    async def afinish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """`finish` for an event loop."""
        if (turn := self._finishing(completed)) is not None:
            with self._faults.guard("the final step"):
                turn.came = await adrive(turn.flow, turn.answers.aanswer)
            self._finalised(turn)
        self._finished(outcome)

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """The run failed, whatever it says itself; also after its end, which is then told once more."""
        if run_id is not None and run_id != self.run.run_id:
            raise ConfigError("run_id", run_id, f"this session is run {self.run.run_id!r}")
        self._failure = reason
        if self.outcome is not None:
            self._tell_finish(reason)

    def abandon(self) -> None:
        """End an open run without judging its last step: the process is about to go."""
        if self.outcome is None and self._told_start:
            self._close_entry()
            self._tell_finish(self._failure or ABANDONED)

    def close(self, timeout: float = 5.0) -> None:
        """Finish as abandoned what is still open, and give the sinks at most `timeout` seconds to take it all."""
        if self.outcome is None and (self._told_start or self._state.calls):
            self.finish(ABANDONED)
        self._telemetry.flush(timeout)

    # ------------------------------------------------------------ what the user and an adapter read

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Entry n is call n; the newest 10,000."""
        return self._log.entries

    @property
    def faults(self) -> dict[str, int]:
        """Faults of steering in this run, by kind."""
        return dict(self._faults.counts)

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """For an adapter's own code: what it raises is said once per kind and run, and goes no further."""
        return self._faults.guard(kind)

    def route_failed(self, state: str, exc: Exception) -> None:
        """A mapped model cannot be built: said once; the run goes on with the agent's model and its steering."""
        routes = {name: model for name, model in self._settings.routes.items() if name != state}
        self._faults.say(f"route {state}", f"the model for {state} cannot be built ({exc}); the agent's is used", exc)
        self._settings = replace(self._settings, routes=routes)

    def __enter__(self) -> SteeringSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.finish("success" if kind is None else f"failure: {kind.__name__}")
        self.close()

    async def __aenter__(self) -> SteeringSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.afinish("success" if kind is None else f"failure: {kind.__name__}")
        await self._telemetry.aflush()

    # ------------------------------------------------------------ the bodies that sync and async share

    def _step(self, given: StepInput) -> _Turn:
        entered: object = given
        if not isinstance(entered, StepInput):
            raise ProtocolError(f"begin_step takes a StepInput, not {entered!r:.80}")
        return self._turn(step_flow(self._state, given, self._settings))

    def _turn(self, flow: Flow[tuple[TraceState, StepDecision]]) -> _Turn:
        ends = time.monotonic() + self._deadline
        answers = Answers(self._backends, self.run, self._faults, lambda: ends - time.monotonic())
        return _Turn(before=self._state, flow=flow, answers=answers, started=time.perf_counter())

    def _begun(self, turn: _Turn, given: StepInput) -> StepDecision:
        state, decision = turn.came or faulted(turn.before, given, self._settings)
        if decision.replayed:
            return decision
        self._close_entry()
        if not self._told_start and turn.before.calls == 0:
            self._tell_start(given)
        self._state, self.outcome = state, None
        for note in decision.notes:
            self._faults.say(note, note)
        self._log.open(decision, given.completed, time.time(), _ms_since(turn.started))
        return decision

    def _finishing(self, completed: Step | None) -> _Turn | None:
        """The last step, unless the run has ended or its last call came to nothing."""
        if self.outcome is not None:
            return None
        self._close_entry()
        if self._state.calls == 0 or self._settings.disabled or (completed is None and self._state.pending is None):
            return None
        return self._turn(final_flow(self._state, completed, self._settings))

    def _finalised(self, turn: _Turn) -> None:
        decision = StepDecision(
            step=turn.before.calls,
            fsm_state=turn.before.current_state,
            gate_decision="final",
            skipped_reason="fault",
            placement=self._settings.placement,
        )
        if turn.came is not None:
            self._state, decision = turn.came
        self.final_decision = decision
        self.final = entry_of(decision, time.time(), _ms_since(turn.started))

    def _finished(self, outcome: str) -> None:
        outcome = self._failure or outcome
        if self.outcome is not None:
            if self.outcome == "success" and outcome != "success":
                self._tell_finish(outcome)
            return
        if self.final is not None and self.final_decision is not None:
            self._emit(step_event(self.run.run_id, self.final, None, self.final_decision.scores))
        self._tell_finish(outcome)

    def _close_entry(self) -> None:
        closed = self._log.close()
        if closed is not None and self._telemetry.wanted:
            self._emit(step_event(self.run.run_id, closed.entry, closed.step, closed.scores))

    def _tell_start(self, given: StepInput) -> None:
        self._told_start = True
        if not self.run.model and given.default_model:
            self.run = replace(self.run, model=given.default_model)
        self._emit(RunStart(run=self.run, timestamp=time.time()))

    def _tell_finish(self, outcome: str) -> None:
        self.outcome = outcome
        self._on_finish(self)
        self._emit(RunFinish(run_id=self.run.run_id, outcome=outcome, timestamp=time.time()))

    def _emit(self, event: Event) -> None:
        with self._faults.guard("telemetry"):
            self._telemetry.emit(event)

    def _restored(self, state: TraceState) -> None:
        self._state = state
        if state.trace_id != self.run.run_id:
            self.run = replace(self.run, run_id=state.trace_id)
            self._faults.owner = _owner(state.trace_id)


def _owner(run_id: str) -> str:
    return f"run {run_id!r}"


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as a middleware shows it."""

    run_id: str
    step_log: list[StepLogEntry]
    trace: TraceStateManager
    final: StepLogEntry | None
    outcome: str | None


def view(session: SteeringSession) -> RunView:
    """The session's run, as it stands now."""
    return RunView(
        run_id=session.run.run_id,
        step_log=session.step_log,
        trace=session.trace,
        final=session.final,
        outcome=session.outcome,
    )
