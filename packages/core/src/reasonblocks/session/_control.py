"""Implements the control of a session between steps: a second look at a run's end, and a person's notes."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import in_system, is_second_look_to_come, key_of, look_flow, with_note, without_guidance
from ..exceptions import ConfigError, ProtocolError
from ..render.placement import NO_TAIL
from ..requests import Flow
from ..types import FSMState, Step, StepDecision, StepInput, TraceState
from ..util.json import evolve
from ._check_input import checked, is_newest
from ._drive import SteeringFlow, StepInFlight, adrive, drive, ms_since
from ._log import Reports


@dataclass(slots=True, kw_only=True)
class Judged:
    """The last step of a run, already judged for a second look, so that `finish` does not judge it again."""

    step: StepInFlight
    completed: Step | None
    overhead_ms: float


class Control(Reports):
    """The methods of a session that continue a run at its end, and add a person's notes to it."""

    outcome: str | None
    _state: TraceState
    _judged: Judged | None

    def second_look(self, given: StepInput | None = None) -> StepDecision | None:
        """Return the decision for one more call if the agent's end is in doubt (`second_look=True`), or None.

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
        checked(given)
        if self._state.second_look is not None:
            return self._looked(given)
        if not self.wants_second_look or not self._has_last_step(given):
            return None
        step = self._step(look_flow(self._state, given, self._settings), self._ends_now)
        yield from step.run()
        if self._state is not step.before:
            self._faults.report("two steps at once", ProtocolError("a run takes one step at a time"))
            return None
        if step.result is None or step.result[1].gate_decision == "final":
            self._judged = Judged(step=step, completed=given.completed, overhead_ms=ms_since(step.started))
            return None
        return self._begun(step, given)

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

    def without_tail(self, decision: StepDecision) -> StepDecision:
        """Return the decision with its guidance in the system message, as in the rest of the run; log it once a run.

        For a call whose last message cannot hold a text: a picture, or an answer that the model is to continue. A
        decision without guidance for the tail is returned as it is.
        """
        if decision.placement != "tail" or not decision.guidance:
            return decision
        self._leave_tail(NO_TAIL)
        if is_newest(decision, self._state):
            self._state = in_system(self._state)
            self._log.amend(self._state.last or decision)
        return evolve(decision, placement="system")

    def withdraw(self, decision: StepDecision, status: int) -> None:
        """Withdraw the guidance of a call that the provider refused with HTTP `status`, 400 or 422.

        If the call is tried again, its decision has no guidance, and the log has its texts as withheld; only a second
        look keeps its text, without which its request would end with the agent's answer. The rest of the run has
        guidance in the system message, which every provider accepts. This is logged once a run.
        """
        if not decision.guidance or decision.placement == "context":
            return
        if is_newest(decision, self._state) and decision.step != self._state.second_look:
            self._state = without_guidance(self._state)
            self._log.amend(self._state.last or decision)
        why = f"the provider refused a request with guidance (HTTP {status}), so a retry of it has none"
        if self._settings.placement == "system":
            self._faults.say("refused", why)
        self._leave_tail(why)

    @property
    def observes(self) -> bool:
        """True for a run with `mode="observe"`, whose requests stay unchanged."""
        return self._settings.mode == "observe"

    def _warn_uncounted(self) -> None:
        """Log that a call reported no tokens, if a condition depends on them."""
        settings = self._settings
        if "over_budget" in (settings.stop_when, settings.interrupt_when):
            self._faults.say("tokens", "a call reported no tokens, so over_budget does not count it")

    def _has_last_step(self, given: StepInput) -> bool:
        state = self._state
        return state.steps_begun > 0 and (given.completed is not None or state.pending is not None)

    def _looked(self, given: StepInput) -> StepDecision | None:
        """Return the decision of the run's second look for its repeated key, as long as its call is not answered."""
        last = self._state.last
        if self.outcome is not None or last is None or not is_second_look_to_come(self._state):
            return None
        return evolve(last, replayed=True) if given.key is not None and last.key == key_of(given) else None

    @property
    def _ends_now(self) -> float:
        raise NotImplementedError

    def _begun(self, step: StepInFlight, given: StepInput) -> StepDecision:
        raise NotImplementedError

    def _step(self, flow: Flow[tuple[TraceState, StepDecision]], ends: float) -> StepInFlight:
        raise NotImplementedError
