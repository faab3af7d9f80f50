"""The session of one agent run: the step lifecycle that every adapter maps onto.

Begin a step before each model call and end it afterwards; finish once. A session belongs to one run and has one step at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf
from typing import Any

from .._engine import faulted, final_fault, final_flow, look_flow, step_flow, with_note, with_outcome
from .._json import evolve
from .._memo import Memo
from .._requests import Flow
from ..exceptions import ConfigError, ProtocolError, RunStopped
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
from ._drive import SteeringFlow, StepInFlight, adrive, drive, ms_since
from ._guard import Faults
from ._levels import REPLAYED
from ._log import Closed, Reports, StepLog, entry_of, in_doubt
from ._runs import ABANDONED, OpenRuns, RunView, TraceStateManager, read_only
from ._telemetry import RunEvents, Telemetry

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""


def is_newest(decision: StepDecision, state: TraceState) -> bool:
    """Return True for the decision of the last step, or of an auxiliary call since then."""
    return any(last is not None and last.step == decision.step for last in (state.last, state.last_auxiliary))


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
        self._judged: tuple[StepInFlight, Step | None] | None = None
        """The last step, as a second look has judged it: `finish` does not judge it again."""
        self._state = TraceState(trace_id=run.run_id, token_budget=settings.token_budget)
        self.trace = TraceStateManager(lambda: self._state, self._restored)
        if snapshot is not None:
            self.trace.restore(snapshot)

    def begin_step(self, given: StepInput) -> StepDecision:
        """Decide the next model call. A repeated key returns the same decision (`replayed`).

        Raises `RunStopped` if `stop_when` ends the run, `StaleKey` for an older key, and `ProtocolError` for anything
        but a `StepInput`; with `strict`, faults too.
        """
        return self._to_call(drive(self.begin_flow(given)))

    async def abegin_step(self, given: StepInput) -> StepDecision:
        """Call `begin_step` on an event loop: a caller's callables never block it."""
        return self._to_call(await adrive(self.begin_flow(given)))

    def begin_flow(self, given: StepInput) -> SteeringFlow[StepDecision]:
        """Run `begin_step` within an adapter's own flow: `decision = yield from session.begin_flow(given)`.

        A decision with a `stop` has ended the run: the adapter must not make its call, and ends the agent.
        """
        checked(given)
        ends = self._ends_now
        if self._backends.levels is not None and self._starts:
            own = yield from self._backends.levels.read(self.run, ends)
            if own is not None and not self._state.calls:
                self._state = evolve(self._state, own_level=own)
                self._log.judged_by = own.name
        step = self._step(step_flow(self._state, given, self._settings), ends)
        yield from step.run()
        decision = self._begun(step, given)
        if decision.stop is not None and not decision.replayed:
            self._stopped(decision, step.before, given.completed)
            yield from self._counted()
        return decision

    def second_look(self, given: StepInput | None = None) -> StepDecision | None:
        """Return the decision of one more call if the agent's end is in doubt (`second_look=True`), at most once a run.

        Call it when the agent has ended by itself, before `finish`; `given.completed` is its last step. None: finish.
        Without `given` the last step is what `end_step` stored.
        """
        return drive(self.second_look_flow(given or StepInput()))

    async def asecond_look(self, given: StepInput | None = None) -> StepDecision | None:
        """Call `second_look` on an event loop."""
        return await adrive(self.second_look_flow(given or StepInput()))

    def second_look_flow(self, given: StepInput) -> SteeringFlow[StepDecision | None]:
        """Run `second_look` within an adapter's own flow."""
        checked(given)
        state = self._state
        if not self._may_look(state, given):
            return None
        step = self._step(look_flow(state, given, self._settings), self._ends_now)
        yield from step.run()
        if step.result is None:
            return None
        if step.result[1].gate_decision == "final":
            self._judged = (step, given.completed)
            return None
        return self._begun(step, given)

    @property
    def wants_second_look(self) -> bool:
        """True as long as the run may have its second look."""
        return self._looks and self._state.second_look is None

    @property
    def _looks(self) -> bool:
        settings = self._settings
        return settings.second_look and settings.mode == "steer" and not settings.disabled

    def _may_look(self, state: TraceState, given: StepInput) -> bool:
        """Return True for a run that may have its second look, and for the repeated key of the look that it has."""
        if not self._looks or self.outcome is not None or not state.steps_begun:
            return False
        if state.second_look is not None:
            last = state.last if state.pending is None else None
            return last is not None and last.step == state.second_look and given.key is not None
        return given.completed is not None or state.pending is not None

    def add_note(self, text: str) -> StepDecision:
        """Put a person's note first into the guidance of the newest decision, whose call is to come; return it.

        The same note again, a blank one, and a note to an observed run change nothing. Raises `ProtocolError` if no
        call is to come.
        """
        state = self._state
        if state.last is None or state.pending is not None or state.last.stop is not None or self.outcome is not None:
            raise ProtocolError("a note is told with the next call: add it between begin_step and the call")
        self._state = with_note(state, str(text), self._settings)
        decision = self._state.last
        assert decision is not None  # a note removes no decision
        if decision is not state.last:
            self._log.amend(decision)
        return decision

    @property
    def observes(self) -> bool:
        """True for a run with `mode="observe"`: its requests stay as they are."""
        return self._settings.mode == "observe"

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
        if before is None:
            yield from self._counted()

    def _counted(self) -> SteeringFlow[None]:
        """Add the run that has just ended to its agent's profile."""
        if self._backends.levels is not None and self.outcome not in (None, ABANDONED):
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
        answers = Answers(self._backends, self.run, self._faults, ends, self._memo, self._view)
        return StepInFlight(self._state, flow, answers)

    def _view(self, state: TraceState, decision: StepDecision) -> RunView:
        """Return the run as the caller's callables see it: its newest entry is that of the call to come."""
        entry = entry_of(decision, time.time(), 0.0, self._log.judged_by)
        log = [*self._log.entries, entry]
        return RunView(run=self.run, step_log=log, trace=read_only(state), final=None, outcome=None)

    def _begun(self, step: StepInFlight, given: StepInput) -> StepDecision:
        if self._state is not step.before:
            step.result = None
            mistake = ProtocolError("a run takes one step at a time: end it, then begin")
            self._faults.report("two steps at once", mistake)
        before = self._state
        state, decision = step.result or faulted(before, given, self._settings)
        if decision.replayed:
            if before.pending is None and decision.stop is None:  # not answered yet, perhaps of another process
                self._log.ensure(decision, given.completed)
            return decision
        self._run_events.step(self.run.run_id, self._log.close())
        if decision.stop is not None:
            self._state, self._paused = state, False
            return decision
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

    def _to_call(self, decision: StepDecision) -> StepDecision:
        if decision.stop is not None:
            raise RunStopped(decision.stop, self.run.run_id)
        return decision

    def _stopped(self, decision: StepDecision, before: TraceState, completed: Step | None) -> None:
        """Record the final step of a run that `stop_when` ends, and finish the run."""
        self._record_final(decision, 0.0, self._log.completed(before, completed))
        self._finished(f"stopped: {decision.stop}")
        if self.run.framework != REPLAYED:
            self._faults.say("stop_when", f"stopped before call {decision.step}: {decision.stop}")

    def _finishing(self, completed: Step | None) -> StepInFlight | None:
        """Return the last step to assess, None if the run has ended or its last call came to nothing."""
        if self.outcome is not None:
            return None
        if (judged := self._judged) and judged[0].before is self._state and judged[1] == completed:
            self._run_events.step(self.run.run_id, self._log.close())
            return judged[0]
        self._run_events.step(self.run.run_id, self._log.close())
        if self._settings.disabled or not self._state.steps_begun or not (completed or self._state.pending):
            return None
        return self._step(final_flow(self._state, completed, self._settings), self._ends_now)

    def _finalised(self, step: StepInFlight, completed: Step | None) -> None:
        self._state, decision = step.result or final_fault(step.before, self._settings)
        self._record_final(decision, ms_since(step.started), self._log.completed(step.before, completed))

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
        self._state = state
        self._log.rewind(state.calls)
        self._log.judged_by = state.own_level.name if state.own_level else self._settings.judged_by
        self.run = evolve(self.run, run_id=state.trace_id)
        self._faults.owner = f"run {state.trace_id!r}"
