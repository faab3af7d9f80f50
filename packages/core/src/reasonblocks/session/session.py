"""The session of one agent run: the step lifecycle that every adapter maps onto.

Begin a step before each model call and end it afterwards; finish once. A session belongs to one run and has one step at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from ..engine import (
    adopt_state,
    after_fault,
    final_fault,
    final_flow,
    in_system,
    is_second_look_to_come,
    key_of,
    look_flow,
    refusal,
    step_flow,
    with_note,
    with_outcome,
    without_effort,
    without_guidance,
)
from ..exceptions import ConfigError, ProtocolError, RunStopped
from ..monitors.profile import parse_patience
from ..render.placement import NO_TAIL
from ..requests import Flow
from ..types import (
    AdapterCaps,
    FSMState,
    Patience,
    Placement,
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
from ..util.memo import Memo
from ..util.text import count_noun
from .advice import Consultation
from .answers import Backends, StepInFlight
from .clock import RunClock
from .drive import SteeringFlow, adrive, drive, ms_since
from .guard import Faults, not_built
from .log import StepLog, in_doubt
from .patience import REPLAYED
from .prices import UnknownPrice, cost_of
from .runs import OpenRuns, RunView, TraceStateManager, read_only
from .telemetry import RunEvents, Telemetry

if TYPE_CHECKING:
    from typing_extensions import Self

PROTOCOL = 1
"""Version of the step lifecycle (`StepInput`, `StepDecision`, `StepOutcome`, `AdapterCaps`)."""
CLOSE_SECONDS = 5.0
"""Seconds in which the end of a run waits for its events to be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The last step of a run, already judged for a second look, so that `finish` does not judge it again."""

    step: StepInFlight
    completed: Step | None
    overhead_ms: float


class SteeringSession:
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
        self._events = RunEvents(run.run_id, telemetry, self._faults)
        patience = parse_patience(settings.patience) if settings.patience is not None else Patience()
        self._log, self._memo = StepLog(patience.name, self._events), Memo()
        self._consultation = Consultation(settings.tool_roles, telemetry.redact)
        self._clock = RunClock()
        self._failure: str | None = None
        self._paused = False
        self._judged: _Judged | None = None
        self._state = TraceState(trace_id=run.run_id, token_budget=settings.token_budget, patience=patience)
        self.trace = TraceStateManager(lambda: self._state, self._restore)
        if snapshot is not None:
            self.trace.restore(snapshot)

    def begin_step(self, given: StepInput) -> StepDecision:
        """Decide the next model call. A repeated key returns the same decision (`replayed`).

        Raises `RunStopped` if `stop_when` ends the run, `StaleKey` for an older key, and `ProtocolError` for anything
        but a `StepInput`. With `strict`, it also raises faults.
        """
        return self._raise_if_stopped(drive(self.begin_flow(given)))

    async def abegin_step(self, given: StepInput) -> StepDecision:
        """Call `begin_step` on an event loop: a caller's callables never block it."""
        return self._raise_if_stopped(await adrive(self.begin_flow(given)))

    def begin_flow(self, given: StepInput) -> SteeringFlow[StepDecision]:
        """Run `begin_step` within an adapter's own flow: `decision = yield from session.begin_flow(given)`.

        It does not raise `RunStopped`. If the decision has a `stop`, the run has ended: the adapter must not make its
        call, and has to end the agent.
        """
        _check(given)
        ends = self._ends_now
        self._count_time(given.seconds)
        yield from self._learn_patience(ends)
        if (self._backends.conditions or self._backends.on_injection) and not given.auxiliary:
            with self._faults.guard("reading a step"):  # the caller's callables read the log
                self._log.completed(self._state, given.completed)
        step = self._step(step_flow(self._state, given, self._settings), ends)
        yield from step.run()
        decision = self._accept(step, given)
        if decision.stop is not None and not decision.replayed:
            self._record_stop(decision, step.before, given.completed)
            yield from self._add_to_profile()
        return decision

    def end_step(self, decision: StepDecision, outcome: StepOutcome) -> None:
        """Record the call's outcome. For a retry, the last outcome is kept, and attempts and tokens add up."""
        started = time.perf_counter()
        self._count_time()
        with self._faults.guard("ending a step"):
            if newest := _is_newest(decision, self._state):
                self._log.ensure(decision)
            cost_usd = self._cost(outcome) if self._is_priced else None
            self._log.fill(decision.step, outcome, ms_since(started), cost_usd)
            counts = "over_budget" in (self._settings.stop_when, self._settings.interrupt_when)
            if counts and outcome.usage.total is None and outcome.error is None:
                self._faults.say("tokens", "a call reported no tokens, so over_budget does not count it")
            if newest:
                auxiliary = decision.skipped_reason == "auxiliary"
                spent = cost_usd if self._is_priced else 0.0
                self._state = with_outcome(self._state, outcome, auxiliary=auxiliary, cost_usd=spent)

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
        before, outcome = self.outcome, outcome_of(_words_of("outcome", outcome))
        if (step := self._last_step(completed, outcome)) is not None:
            yield from step.run()
            self._record_last(step, completed)
        self._end(outcome)
        if before is None:
            yield from self._add_to_profile()

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """Mark the run as failed, with "failure: " and the reason, or only the reason if that begins with "failure".

        This replaces the run's own outcome. If the run has ended, a second finish event is sent. Raises `ConfigError`
        if the reason is empty, or not a string.
        """
        if run_id not in (None, self.run.run_id):
            raise ConfigError("run_id", run_id, f"this session is run {self.run.run_id!r}")
        self._failure = failure_of(_words_of("reason", reason))
        if self.outcome is not None:
            self._emit_finish(self._failure)

    def pause(self) -> None:
        """Pause the run, which waits in a checkpoint: nothing here finishes it. Its next step continues it."""
        self._count_time()
        self._clock.stop()
        self._log.settle()
        self._open_runs.forget(self)
        self._paused = True

    def abandon(self, ends: float | None = None) -> None:
        """Finish an open run as abandoned.

        With `ends`, a time of the monotonic clock, its last step is evaluated until then; without it, not at all.
        """
        if self.outcome is not None or self._paused or not self._state.calls:
            return
        if ends is not None:
            self._ends = ends
            try:
                self.finish(ABANDONED)
            finally:
                self._ends = inf  # a run that continues has its whole time again
        else:
            self._log.close()
            self._emit_finish(self._failure or ABANDONED)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finish an open run as abandoned and wait for the sinks, at most `timeout` seconds in all."""
        ends = time.monotonic() + timeout
        self.abandon(ends)
        self._telemetry.flush(ends - time.monotonic())

    def second_look(self, given: StepInput | None = None) -> StepDecision | None:
        """Return the decision for one more call if the agent's end is in doubt (`second_look`), or None.

        Call it when the agent has ended by itself, before `finish`. `given.completed` is its last step, and `given.key`
        is the key of the next call; without `given`, the last step is the one that `end_step` stored. Make the call
        with this decision, or begin it with `begin_step`, which returns the decision again. If the result is None,
        finish the run. A run gets at most one second look.
        """
        return drive(self.second_look_flow(given or StepInput()))

    async def asecond_look(self, given: StepInput | None = None) -> StepDecision | None:
        """Call `second_look` on an event loop."""
        return await adrive(self.second_look_flow(given or StepInput()))

    def second_look_flow(self, given: StepInput) -> SteeringFlow[StepDecision | None]:
        """Run `second_look` within an adapter's own flow."""
        _check(given)
        if self._state.second_look is not None:
            return self._repeated_look(given)
        if not self.wants_second_look or not self._has_last_step(given):
            return None
        self._count_time(given.seconds)
        step = self._step(look_flow(self._state, given, self._settings), self._ends_now)
        yield from step.run()
        if self._state is not step.before:
            self._faults.report("two steps at once", ProtocolError("a run takes one step at a time"))
            return None
        if step.result is None or step.result[1].gate_decision == "final":
            self._judged = _Judged(step=step, completed=given.completed, overhead_ms=ms_since(step.started))
            return None
        return self._accept(step, given)

    @property
    def wants_second_look(self) -> bool:
        """True as long as the run may still get its second look."""
        settings, state = self._settings, self._state
        if not settings.second_look or settings.mode == "observe" or settings.disabled:
            return False
        return state.second_look is None and self.outcome is None

    def add_note(self, text: str) -> StepDecision:
        """Add a person's note at the start of the newest decision's guidance, and return that decision.

        Call it between `begin_step` and the model call, in the thread of the step, and use the returned decision. A
        repeated or blank note changes nothing, nor does a note to a run that is observed, disabled or in END. Raises
        `ProtocolError` if there is no decision whose call is still to be made, and `ConfigError` for anything but text.
        """
        given: object = text
        if not isinstance(given, str):
            raise ConfigError("note", text, "must be a string")
        last = self._state.last
        if last is None or last.stop is not None or self.outcome is not None or self._log.is_answered(last.step):
            raise ProtocolError("a note is part of the next call: add it between begin_step and the call")
        if self._settings.disabled or last.fsm_state is FSMState.END:
            return last
        self._state = with_note(self._state, text, self._settings)
        noted = self._state.last or last
        if noted is not last:
            self._log.amend(noted)
        return noted

    def tool_refusal(self, name: str, earlier: int = 0) -> str | None:
        """Return the text with which to answer a call of the newest answer in place of its tool; None to run the tool.

        `earlier` is the number of this tool's calls before it in the same answer. An adapter that asks for this has
        `AdapterCaps.tool_limits`.
        """
        return refusal(self._state, self._settings, name, earlier)

    def without_tail(self, decision: StepDecision) -> StepDecision:
        """Return the decision with its guidance in the system message, as in the rest of the run; log it once a run.

        For a call whose last message cannot hold a text: a picture, or an answer that the model is to continue. A
        decision without guidance for the tail is returned as it is.
        """
        if decision.placement != "tail" or not decision.guidance:
            return decision
        self._leave_tail(NO_TAIL)
        if _is_newest(decision, self._state):
            self._state = in_system(self._state)
            self._log.amend(self._state.last or decision)
        return replace(decision, placement="system")

    def withdraw(self, decision: StepDecision, status: int) -> None:
        """Withdraw the guidance of a call that the provider refused with HTTP `status`, 400 or 422.

        If the call is tried again, its decision has no guidance, and the log has its texts as withheld; only a second
        look keeps its text, without which its request would end with the agent's answer. The rest of the run has
        guidance in the system message, which every provider accepts. An effort, which may be the reason as well, is
        not asked for again. This is logged once a run.
        """
        if decision.effort is not None:
            self.effort_failed(ValueError(f"the provider refused a call with it, HTTP {status}"))
        if not decision.guidance or decision.placement == "context":
            return
        if _is_newest(decision, self._state) and decision.step != self._state.second_look:
            self._state = without_guidance(self._state)
            self._log.amend(self._state.last or decision)
        why = f"the provider refused a request with guidance (HTTP {status}), so a retry of it has none"
        if self._settings.placement == "system":
            self._faults.say("refused", why)
        self._leave_tail(why)

    def no_tail(self, why: str) -> None:
        """Put guidance into the system message from the next step on, and log `why` once a run.

        For a run that turns out to have no end of its messages to add to. Other placements are unchanged.
        """
        self._leave_tail(why, look="system")

    def placed(self, asked: Placement) -> Self:
        """Return the session; log if its placement is not the one `asked` for and the framework has a choice."""
        if self._settings.placement not in (asked, "context"):
            self._say_placement(f"this run of {self.run.framework!r} has no placement {asked!r}")
        return self

    def warn_unable(self, options: Mapping[str, str]) -> Self:
        """Return the session; log each of these options, which its framework cannot satisfy, and what it does."""
        for option, effect in options.items():
            self._faults.say(option, f"{self.run.framework!r} cannot do this: {option} {effect}")
        return self

    def routing(self, state: str) -> AbstractContextManager[None]:
        """Guard the building of a mapped model: a failure is logged once and closes the route."""
        return self._faults.diverted(lambda exc: self.route_failed(state, exc))

    def route_failed(self, state: str, exc: Exception) -> None:
        """Close the route of a mapped model that cannot be built; the run continues with the agent's model."""
        routes = {name: model for name, model in self._settings.routes.items() if name != state}
        self._faults.say(f"route {state}", not_built(state, exc), exc)
        self._settings = replace(self._settings, routes=routes)
        self._log.route_failed(state)

    def asking_effort(self) -> AbstractContextManager[None]:
        """Guard what asks for a decision's `effort`: a failure is logged once, and no effort is asked for any more."""
        return self._faults.diverted(self.effort_failed)

    def effort_failed(self, exc: Exception) -> None:
        """Ask for no effort from here on; escalated calls still go to their model, if they have one."""
        escalate = self._settings.escalate
        if escalate is None or escalate.effort is None:
            return
        self._faults.say("effort", f"the effort {escalate.effort!r} is not asked for any more: {exc}", exc)
        self._settings = replace(self._settings, escalate=replace(escalate, effort=None))
        self._state = without_effort(self._state)
        self._log.effort_failed()

    @property
    def observes(self) -> bool:
        """True for a run with `mode="observe"`, whose requests stay unchanged."""
        return self._settings.mode == "observe"

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Entry n is call n; the newest 10,000."""
        return self._log.entries

    @property
    def faults(self) -> dict[str, int]:
        """The number of steering's faults in this run, by kind."""
        return dict(self._faults.counts)

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """Guard an adapter's own code: an exception is logged once per kind and run, and is not propagated."""
        return self._faults.guard(kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.finish("success" if kind is None else f"failure: {kind.__name__}")
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.afinish("success" if kind is None else f"failure: {kind.__name__}")
        await self._telemetry.aflush(CLOSE_SECONDS)

    @property
    def _ends_now(self) -> float:
        """The deadline of what begins now, on the monotonic clock."""
        return min(time.monotonic() + self._deadline, self._ends)

    def _count_time(self, seconds: float | None = None) -> None:
        """Add the time that has passed to the run's, or take the adapter's count, if there is a budget of seconds."""
        if self._settings.budget is not None and self._settings.budget.seconds is not None:
            now = self._state.seconds + self._clock.passed() if seconds is None else seconds
            self._state = replace(self._state, seconds=now)

    @property
    def _is_priced(self) -> bool:
        return self._settings.budget is not None and self._settings.budget.cost_usd is not None

    def _cost(self, outcome: StepOutcome) -> float | None:
        """Return the price of a call in US dollars, None if it is unknown."""
        try:
            return cost_of(outcome)
        except UnknownPrice as exc:
            self._faults.say("cost", f"{exc}, so budget.cost_usd does not limit this run")
            return None

    def _learn_patience(self, ends: float) -> SteeringFlow[None]:
        """Take the patience of the run's agent before its first call, unless the caller has given one."""
        learned, settings = self._backends.learned, self._settings
        if learned is None or self._state.calls or settings.disabled or settings.patience is not None:
            return
        own = yield from learned.read(self.run, settings.explore, ends)
        if own is not None and not self._state.calls:
            self._state = replace(self._state, patience=own)
            self._log.judged_by = own.name

    def _add_to_profile(self) -> SteeringFlow[None]:
        """Add the run, which has just ended, to its agent's profile."""
        if self._backends.learned is not None and self.outcome not in (None, ABANDONED):
            yield from self._backends.learned.add(self.run, self._state, self._ends_now)

    def _step(self, flow: Flow[tuple[TraceState, StepDecision]], ends: float) -> StepInFlight:
        return StepInFlight(
            before=self._state,
            flow=flow,
            backends=self._backends,
            info=self.run,
            faults=self._faults,
            ends=ends,
            memo=self._memo,
            view=self._view,
            consultation=self._consultation,
        )

    def _view(self, state: TraceState, decision: StepDecision) -> RunView:
        """Return the view of the run for the caller's callables; its newest entry belongs to the next call."""
        log = [*self._log.entries, self._log.entry(decision)]
        return RunView(run=self.run, step_log=log, trace=read_only(state), final=None, outcome=None)

    def _accept(self, step: StepInFlight, given: StepInput) -> StepDecision:
        if self._state is not step.before:
            if not given.auxiliary and (last := self._state.last) is not None and last.stop is not None:
                return replace(last, replayed=True)
            step.result = None
            mistake = ProtocolError("a run takes one step at a time: end it, then begin")
            self._faults.report("two steps at once", mistake)
        before = self._state
        state, decision = step.result or after_fault(before, given, self._settings)
        if decision.replayed:
            self._repeat(decision, given)
            return decision
        self._log.close()
        if decision.stop is None and not before.calls:
            self.run = replace(self.run, model=self.run.model or given.default_model)
            self._events.start(self.run)
        self._state, self._paused = state, False
        if decision.stop is not None:
            return decision
        if state.last is None or state.last.stop is None:
            self._open_runs.add(self)
            self.outcome = self.final = self.final_decision = None
        for warning in decision.warnings:
            self._faults.say(warning, warning)
        done = self._log.completed(before, given.completed) if before.steps_begun and not given.auxiliary else None
        if done is not None and self._settings.advisor:
            self._consultation.keep(done)
        self._log.open(decision, done, ms_since(step.started) - (decision.advisor_ms or 0.0))
        return decision

    def _repeat(self, decision: StepDecision, given: StepInput) -> None:
        """Continue the run with a decision that was made before, perhaps by another process."""
        if self._state.pending is None and decision.stop is None:  # its call is not answered
            self._log.ensure(decision, given.completed)
            if self._paused:  # it waited between the decision and its call
                self._open_runs.add(self)
                self._paused = False

    def _raise_if_stopped(self, decision: StepDecision) -> StepDecision:
        if decision.stop is not None:
            raise RunStopped(decision.stop, self.run.run_id)
        return decision

    def _record_stop(self, decision: StepDecision, before: TraceState, completed: Step | None) -> None:
        """Record the final step of a run ended by `stop_when`, and finish the run."""
        self._record_final(decision, 0.0, self._log.completed(before, completed))
        self._end(f"stopped: {decision.stop}")
        if self.run.framework != REPLAYED:
            self._faults.say("stopped", f"stopped after {count_noun(decision.step, 'call')}: {decision.stop}")

    def _last_step(self, completed: Step | None, outcome: str) -> StepInFlight | None:
        """Return the last step to assess, None if the run has ended or its last call came to nothing."""
        if self.outcome is not None:
            return None
        self._log.close()
        if (judged := self._judged_step(completed)) is not None:
            return judged
        if self._settings.disabled or not self._state.steps_begun or not (completed or self._state.pending):
            return None
        replayed = self.run.framework == REPLAYED
        withholds = replayed or (self.observes and (self._failure or outcome) == "success")
        flow = final_flow(self._state, completed, self._settings, withholds_look=withholds)
        return self._step(flow, self._ends_now)

    def _judged_step(self, completed: Step | None) -> StepInFlight | None:
        """Return this step if it has already been judged for a second look."""
        judged = self._judged
        if judged is None or judged.step.before is not self._state:
            return None
        with self._faults.diverted(lambda exc: None):  # arguments of a caller's own type may not be comparable
            if judged.completed is completed or judged.completed == completed:
                return judged.step
        return None

    def _record_last(self, step: StepInFlight, completed: Step | None) -> None:
        judged = self._judged
        took = judged.overhead_ms if judged is not None and judged.step is step else ms_since(step.started)
        self._state, decision = step.result or final_fault(step.before, self._settings)
        self._record_final(decision, took, self._log.completed(step.before, completed))

    def _record_final(self, decision: StepDecision, overhead_ms: float, done: Step) -> None:
        run_cost = self._state.cost_usd if self._is_priced else None
        self.final_decision = decision
        self.final = replace(self._log.entry(decision, overhead_ms), run_cost_usd=run_cost)
        self._events.step(self.final, done, decision.scores)

    def _end(self, outcome: str) -> None:
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
            self._events.finish(outcome, doubts)

    def _restore(self, state: TraceState) -> None:
        self._state = state = adopt_state(state, self._settings)
        if state.no_tail and self._settings.placement in ("tail", "message"):
            self._settings = replace(self._settings, placement="system")
        self._log.rewind(state.calls)
        if state.last is not None and state.last.stop is not None:
            self.outcome = f"stopped: {state.last.stop}"
            self.final_decision, self.final = state.last, self._log.entry(state.last)
        self._log.judged_by = state.patience.name
        self.run = replace(self.run, run_id=state.trace_id)
        self._events.run_id, self._faults.owner = state.trace_id, f"run {state.trace_id!r}"

    def _has_last_step(self, given: StepInput) -> bool:
        state = self._state
        return state.steps_begun > 0 and (given.completed is not None or state.pending is not None)

    def _repeated_look(self, given: StepInput) -> StepDecision | None:
        """Return the decision of the run's second look for its repeated key, as long as its call is not answered."""
        last = self._state.last
        if self.outcome is not None or last is None or not is_second_look_to_come(self._state):
            return None
        return replace(last, replayed=True) if given.key is not None and last.key == key_of(given) else None

    def _leave_tail(self, why: str, look: Placement | None = None) -> None:
        if self._settings.placement in ("tail", "message"):
            look = look or self._settings.look_placement
            self._settings = replace(self._settings, placement="system", look_placement=look)
            self._state = replace(self._state, no_tail=True)
            self._say_placement(why)

    def _say_placement(self, why: str) -> None:
        if not self._settings.disabled and self._settings.mode == "steer":
            where = self._settings.placement
            self._faults.say("placement", f"{why}: guidance goes to {where!r}; set placement={where!r} to request that")


def _is_newest(decision: StepDecision, state: TraceState) -> bool:
    """Return True for the decision of the last step, or of an auxiliary call since then, whose call is made."""
    if decision.stop is not None:
        return False
    return any(last is not None and last.step == decision.step for last in (state.last, state.last_auxiliary))


def _check(given: object) -> None:
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


def _words_of(name: str, given: object) -> str:
    """Return the outcome or the reason that was given; raise `ConfigError` if it is empty, or not a string."""
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(name, given, f"must be a string that is not empty: give str({name})")
    return given
