"""The session of one agent run: the step lifecycle that every adapter maps onto.

Begin a step before each model call and end it afterwards; finish once. A session belongs to one run and has one step at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf
from typing import Any

from ..engine import adopted, faulted, final_fault, final_flow, step_flow, with_outcome
from ..exceptions import ConfigError, ProtocolError, RunStopped
from ..monitors.profile import given_patience
from ..requests import Flow
from ..types import (
    AdapterCaps,
    Patience,
    RunInfo,
    Settings,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
    TraceState,
)
from ..types.outcomes import ABANDONED, failure_of, outcome_of
from ..util.json import evolve
from ..util.memo import Memo
from ._answers import Answers, Backends
from ._check_input import checked, is_newest, words_of
from ._control import Control, Judged
from ._drive import SteeringFlow, StepInFlight, adrive, drive, ms_since
from ._learned import REPLAYED
from ._log import Closed, StepLog, entry_of, in_doubt
from ._runs import OpenRuns, RunView, TraceStateManager, read_only
from .guard import Faults
from .telemetry import RunEvents, Telemetry

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""


class SteeringSession(Control):
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
        patience = given_patience(settings.patience) if settings.patience is not None else Patience()
        self._log, self._memo = StepLog(patience.name), Memo()
        self._failure: str | None = None
        self._paused = False
        self._judged: Judged | None = None
        self._state = TraceState(trace_id=run.run_id, token_budget=settings.token_budget, patience=patience)
        self.trace = TraceStateManager(lambda: self._state, self._restored)
        if snapshot is not None:
            self.trace.restore(snapshot)

    def begin_step(self, given: StepInput) -> StepDecision:
        """Decide the next model call. A repeated key returns the same decision (`replayed`).

        Raises `RunStopped` if `stop_when` ends the run, `StaleKey` for an older key, and `ProtocolError` for anything
        but a `StepInput`. With `strict`, it also raises faults.
        """
        return self._to_call(drive(self.begin_flow(given)))

    async def abegin_step(self, given: StepInput) -> StepDecision:
        """Call `begin_step` on an event loop: a caller's callables never block it."""
        return self._to_call(await adrive(self.begin_flow(given)))

    def begin_flow(self, given: StepInput) -> SteeringFlow[StepDecision]:
        """Run `begin_step` within an adapter's own flow: `decision = yield from session.begin_flow(given)`.

        It does not raise `RunStopped`. If the decision has a `stop`, the run has ended: the adapter must not make its
        call, and has to end the agent.
        """
        checked(given)
        ends = self._ends_now
        if self._backends.learned is not None and self._starts:
            own = yield from self._backends.learned.read(self.run, self._settings.explore, ends)
            if own is not None and not self._state.calls:
                self._state = evolve(self._state, patience=own)
                self._log.judged_by = own.name
        self._amend_calls(given)
        step = self._step(step_flow(self._state, given, self._settings), ends)
        yield from step.run()
        decision = self._begun(step, given)
        if decision.stop is not None and not decision.replayed:
            self._stopped(decision, step.before, given.completed)
            yield from self._counted()
        return decision

    def _amend_calls(self, given: StepInput) -> None:
        """Add the completed step to the log before the caller's callables read it."""
        if (self._backends.conditions or self._backends.on_injection) and not given.auxiliary:
            with self._faults.guard("reading a step"):
                self._log.completed(self._state, given.completed)

    @property
    def _starts(self) -> bool:
        """True before the first call of a run, when the patience is fixed, unless the caller has given one."""
        return not self._state.calls and not self._settings.disabled and self._settings.patience is None

    def end_step(self, decision: StepDecision, outcome: StepOutcome) -> None:
        """Record the call's outcome. For a retry, the last outcome is kept, and attempts and tokens add up."""
        started = time.perf_counter()
        with self._faults.guard("ending a step"):
            if newest := is_newest(decision, self._state):
                self._log.ensure(decision)
            self._log.fill(decision.step, outcome, ms_since(started))
            if outcome.usage.total is None and outcome.error is None:
                self._warn_uncounted()
            if newest:
                self._state = with_outcome(self._state, outcome, auxiliary=decision.skipped_reason == "auxiliary")

    def finish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """End the run once: the last completed step is judged (`final`), never injected. A failure replaces success.

        `outcome` begins with "success", "failure", "stopped" or "unknown", and a reason may follow the last three; any
        other text is the reason of a failure. Raises `ConfigError` if it is empty, or not a string.
        """
        drive(self.finish_flow(outcome, completed=completed))

    async def afinish(self, outcome: str = "success", *, completed: Step | None = None) -> None:
        """Call `finish` on an event loop."""
        await adrive(self.finish_flow(outcome, completed=completed))

    def finish_flow(self, outcome: str = "success", *, completed: Step | None = None) -> SteeringFlow[None]:
        """Run `finish` within an adapter's own flow."""
        before, outcome = self.outcome, outcome_of(words_of("outcome", outcome))
        if (step := self._finishing(completed, outcome)) is not None:
            yield from step.run()
            self._finalised(step, completed)
        self._finished(outcome)
        if before is None:
            yield from self._counted()

    def _counted(self) -> SteeringFlow[None]:
        """Add the run, which has just ended, to its agent's profile."""
        if self._backends.learned is not None and self.outcome not in (None, ABANDONED):
            yield from self._backends.learned.add(self.run, self._state, self._ends_now)

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """Mark the run as failed, with "failure: " and the reason, or only the reason if that begins with "failure".

        This replaces the run's own outcome. If the run has ended, a second finish event is sent. Raises `ConfigError`
        if the reason is empty, or not a string.
        """
        if run_id not in (None, self.run.run_id):
            raise ConfigError("run_id", run_id, f"this session is run {self.run.run_id!r}")
        self._failure = failure_of(words_of("reason", reason))
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
        answers = Answers(self._backends, self.run, self._faults, ends, self._memo, self._view)
        return StepInFlight(self._state, flow, answers)

    def _view(self, state: TraceState, decision: StepDecision) -> RunView:
        """Return the view of the run for the caller's callables; its newest entry belongs to the next call."""
        entry = entry_of(decision, time.time(), 0.0, self._log.judged_by)
        log = [*self._log.entries, entry]
        return RunView(run=self.run, step_log=log, trace=read_only(state), final=None, outcome=None)

    def _begun(self, step: StepInFlight, given: StepInput) -> StepDecision:
        if self._state is not step.before:
            if not given.auxiliary and (last := self._state.last) is not None and last.stop is not None:
                return evolve(last, replayed=True)
            step.result = None
            mistake = ProtocolError("a run takes one step at a time: end it, then begin")
            self._faults.report("two steps at once", mistake)
        before = self._state
        state, decision = step.result or faulted(before, given, self._settings)
        if decision.replayed:
            if before.pending is None and decision.stop is None:  # not answered, perhaps elsewhere
                self._log.ensure(decision, given.completed)
                if self._paused:  # it waited between the decision and its call
                    self._open_runs.add(self)
                    self._paused = False
            return decision
        self._run_events.step(self.run.run_id, self._log.close())
        if decision.stop is not None:
            self._state, self._paused = state, False
            return decision
        if before.calls == 0:
            self.run = evolve(self.run, model=self.run.model or given.default_model)
            self._run_events.start(self.run)
        self._state, self._paused = state, False
        if not self._is_stopped:
            self._open_runs.add(self)
            self.outcome = self.final = self.final_decision = None
        for warning in decision.warnings:
            self._faults.say(warning, warning)
        done = self._log.completed(before, given.completed) if before.steps_begun and not given.auxiliary else None
        self._log.open(decision, done, time.time(), ms_since(step.started))
        return decision

    def _to_call(self, decision: StepDecision) -> StepDecision:
        if decision.stop is not None:
            raise RunStopped(decision.stop, self.run.run_id)
        return decision

    @property
    def _is_stopped(self) -> bool:
        return self._state.last is not None and self._state.last.stop is not None

    def _stopped(self, decision: StepDecision, before: TraceState, completed: Step | None) -> None:
        """Record the final step of a run ended by `stop_when`, and finish the run."""
        self._record_final(decision, 0.0, self._log.completed(before, completed))
        self._finished(f"stopped: {decision.stop}")
        if self.run.framework != REPLAYED:
            self._faults.say("stop_when", f"stop_when ended it before call {decision.step}: {decision.stop}")

    def _finishing(self, completed: Step | None, outcome: str) -> StepInFlight | None:
        """Return the last step to assess, None if the run has ended or its last call came to nothing."""
        if self.outcome is not None:
            return None
        self._run_events.step(self.run.run_id, self._log.close())
        if self._is_judged(completed):
            return self._judged.step if self._judged else None
        if self._settings.disabled or not self._state.steps_begun or not (completed or self._state.pending):
            return None
        replayed = self.run.framework == REPLAYED
        withholds = replayed or (self.observes and (self._failure or outcome) == "success")
        flow = final_flow(self._state, completed, self._settings, withholds_look=withholds)
        return self._step(flow, self._ends_now)

    def _is_judged(self, completed: Step | None) -> bool:
        """Return True if this step has already been judged for a second look."""
        judged = self._judged
        if judged is None or judged.step.before is not self._state:
            return False
        with self._faults.diverted(lambda exc: None):  # arguments of a caller's own type may not be comparable
            return bool(judged.completed is completed or judged.completed == completed)
        return False

    def _finalised(self, step: StepInFlight, completed: Step | None) -> None:
        judged = self._judged
        took = judged.overhead_ms if judged is not None and judged.step is step else ms_since(step.started)
        self._state, decision = step.result or final_fault(step.before, self._settings)
        self._record_final(decision, took, self._log.completed(step.before, completed))

    def _record_final(self, decision: StepDecision, overhead_ms: float, done: Step) -> None:
        self.final_decision, self.final = decision, self._log.final(decision, overhead_ms)
        self._run_events.step(self.run.run_id, Closed(entry=self.final, step=done, scores=decision.scores))

    def _finished(self, outcome: str) -> None:
        outcome = self._failure or outcome
        if self.outcome is None or (self.outcome == "success" and outcome != "success"):
            self._emit_finish(outcome)

    def _emit_finish(self, outcome: str) -> None:
        self.outcome = outcome
        self._open_runs.forget(self)
        doubts = self.final.doubts if self.final else ()
        if doubts and outcome == "success" and self.run.framework != REPLAYED:
            self._faults.say("doubt", in_doubt(doubts))
        if self._state.calls:  # a run that never began had no start event
            self._run_events.finish(self.run.run_id, outcome, doubts)

    def _restored(self, state: TraceState) -> None:
        self._state = state = adopted(state, self._settings)
        if state.no_tail and self._settings.placement in ("tail", "message"):
            self._settings = evolve(self._settings, placement="system")
        self._log.rewind(state.calls)
        if state.last is not None and state.last.stop is not None:
            self.outcome = f"stopped: {state.last.stop}"
            self.final_decision, self.final = state.last, self._log.final(state.last, 0.0)
        self._log.judged_by = state.patience.name
        self.run = evolve(self.run, run_id=state.trace_id)
        self._faults.owner = f"run {state.trace_id!r}"
