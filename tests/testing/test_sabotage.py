"""The suite catches an adapter that breaks its contract: the hand-written loop, spoiled in one place at a time."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.exceptions import RunStopped
from reasonblocks.render import FRAME
from reasonblocks.render.guidance import guidance
from reasonblocks.types import AdapterCaps, StepDecision, StepInput, ToolCall
from reasonblocks_testing import ConformanceSuite, LoopHarness, Ran, Script, Seen, Turn
from reasonblocks_testing._loop import TOOL, LoopRun


class KeepsSessions(LoopRun):
    """Every session stays in a list."""

    kept: ClassVar[list[SteeringSession]] = []

    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        cls.kept.append(session := super().begin(rb, script, caps))
        return session


class NeverPauses(LoopRun):
    """Goes straight on where it was asked to wait."""

    def pause(self) -> None:
        pass


class FinishesInsteadOfPausing(LoopRun):
    """Each part is told of as a whole run."""

    def pause(self) -> None:
        session = self.session
        super().pause()
        session.finish()


class LeavesPausedRunsOpen(LoopRun):
    """The session that waits elsewhere counts as open here."""

    def pause(self) -> None:
        session = self.session
        super().pause()
        session._open_runs.add(session)
        session._paused = False


class LostItsGuardOfDeciding(LoopRun):
    def guard(self, kind: str) -> AbstractContextManager[None]:
        return nullcontext() if kind == "deciding a call" else super().guard(kind)


class LostItsGuardOfRecording(LoopRun):
    def guard(self, kind: str) -> AbstractContextManager[None]:
        return nullcontext() if kind == "recording an answer" else super().guard(kind)


class DropsStandingRules(LoopRun):
    """Places the guidance and forgets the field beside it."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        return super().request(decision and replace(decision, standing_rules=""), model)


class InventsAParentCall(LoopRun):
    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        session = super().begin(rb, script, caps)
        if session.run.parent_run_id:
            session.run = replace(session.run, parent_call_id="call-1")
        return session


class NeverResetsItsContextVar(LoopRun):
    @contextmanager
    def within(self, call: ToolCall) -> Iterator[None]:
        TOOL.set((self.session.run.run_id, call.id))
        yield


class AddsAMessage(LoopRun):
    """Nothing is lost, but a user's message follows a tool's result, which some providers refuse."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        seen = super().request(decision, model)
        if decision is None or not decision.guidance or decision.placement == "system":
            return seen
        *before, last = seen.texts
        text, frame, rest = last.partition(FRAME)
        return replace(seen, texts=(*before, text.strip(), frame + rest), roles=(*seen.roles, "user"))


class TakesTheLengthOfTheHistoryAsKey(LoopRun):
    def key(self, call: int) -> str:
        return f"length-{len(self.history)}"


class ForgetsTheAgentsName(LoopRun):
    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        return super().begin(rb, replace(script, agent_name=""), caps)


class StartsAThreadPerCall(LoopRun):
    def decide(self, given: StepInput) -> StepDecision | None:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(super().decide, given).result()


class LeavesAThreadPerCall(LoopRun):
    """Only in a real run, and none of them ends before the test does."""

    let_go: ClassVar[threading.Event] = threading.Event()

    def call(self, decision: StepDecision | None, turn: Turn) -> None:
        threading.Thread(target=self.let_go.wait, daemon=True).start()
        super().call(decision, turn)


class LeavesTheRoutedModel(LoopRun):
    """Restores the agent's model at the next call that is not routed, and not at the end of the run."""

    def asked(self, decision: StepDecision | None) -> str:
        model = super().asked(decision)
        self.model.name = model if decision is not None and decision.route else self.script.model
        return self.model.name


class MarksAnObservedRequest(LoopRun):
    """Leaves the guidance out, and ends the system prompt in a mark of its own."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        seen = super().request(decision, model)
        return replace(seen, raw=f"{seen.raw} cached") if decision is not None else seen


class ShowsWhatIsWithheld(LoopRun):
    def request(self, decision: StepDecision | None, model: str) -> Seen:
        if decision is not None and decision.withheld:
            decision = replace(decision, guidance=guidance(decision.withheld))
        return super().request(decision, model)


class KeepsTellingNotes(LoopRun):
    """Repeats what an operator said in every later request."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        seen, told = super().request(decision, model), self.session.step_log
        said = [text for entry in told[:-1] for text in entry.intervention_texts if entry.note_ids]
        return replace(seen, texts=(*said, *seen.texts), roles=(*["user"] * len(said), *seen.roles))


class TellsObservedRunsNotes(LoopRun):
    """Reads the mailbox itself, whatever the mode."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        seen = super().request(decision, model)
        if decision is None or decision.mode == "steer":
            return seen
        notes = [note for box in self.session._backends.mailboxes for note in box.waiting(self.session.run.run_id)]
        return replace(seen, raw=seen.raw + "".join(note.text for note in notes))


class CallsTheModelAfterAStop(LoopRun):
    """Takes `RunStopped` for a fault of steering, and goes on without a decision."""

    def decide(self, given: StepInput) -> StepDecision | None:
        try:
            return super().decide(given)
        except RunStopped:
            return None


class ReportsAStopAsAFailure(LoopRun):
    def ran(self, error: BaseException | None = None) -> Ran:
        done = super().ran(error)
        return replace(done, outcome="failure: RunStopped") if isinstance(error, RunStopped) else done


class LeavesOutTheBudget(LoopRun):
    """Shows all of a decision's texts but what is left of the budget."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        if decision is not None:
            others = [text for text in decision.injections if text.source != "BudgetInjection"]
            decision = (
                replace(decision, guidance=guidance(others)) if len(others) < len(decision.injections) else decision
            )
        return super().request(decision, model)


class KeepsItsModelWhenEscalated(LoopRun):
    """Knows the routes of states alone."""

    def asked(self, decision: StepDecision | None) -> str:
        return super().asked(None if decision is not None and decision.route == "ESCALATE" else decision)


class AsksNoAdvisor(LoopRun):
    """Goes on as if its hooks could not wait, without saying so."""

    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        return super().begin(rb, script, replace(caps, advisor=False))


class TakesNoSecondLook(LoopRun):
    """Finishes every run that ends by itself."""

    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        return super().begin(rb, script, replace(caps, second_look=False))


class ForgetsTheTextOfASecondLook(LoopRun):
    """Goes on, but makes the call as if there was nothing to say."""

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        looks = decision is not None and decision.step == self.session.trace.state.second_look
        return super().request(None if looks else decision, model)


CAUGHT_BY: dict[type[LoopRun], set[str]] = {
    KeepsSessions: {"test_sessions_of_ended_runs_are_let_go"},
    NeverPauses: {"test_a_pause_is_no_end", "test_a_run_goes_on_in_another_process"},
    FinishesInsteadOfPausing: {"test_a_pause_is_no_end", "test_a_run_goes_on_in_another_process"},
    LeavesPausedRunsOpen: {"test_a_pause_is_no_end"},
    LostItsGuardOfDeciding: {"test_a_fault_in_deciding_a_call_leaves_the_agent_alone"},
    LostItsGuardOfRecording: {"test_a_fault_in_recording_an_answer_leaves_the_agent_alone"},
    DropsStandingRules: {"test_standing_rules_are_shown_at_every_call"},
    InventsAParentCall: {"test_a_nested_run_names_the_call_that_it_runs_in"},
    NeverResetsItsContextVar: {
        "test_a_run_after_a_nested_one_has_no_parents",
        "test_a_run_after_tools_in_the_same_task_has_no_parents",
    },
    AddsAMessage: {"test_the_tail_adds_no_message"},
    TakesTheLengthOfTheHistoryAsKey: {"test_a_shortened_history_loses_no_step"},
    ForgetsTheAgentsName: {"test_a_run_has_the_name_of_its_agent"},
    StartsAThreadPerCall: {"test_a_call_starts_no_thread"},
    LeavesAThreadPerCall: {"test_a_long_run_is_steered_to_its_end"},
    LeavesTheRoutedModel: {"test_an_agent_keeps_its_model_after_a_routed_run"},
    MarksAnObservedRequest: {
        "test_an_observed_run_is_told_no_note",
        "test_an_observed_run_sends_the_requests_of_an_unsteered_one",
    },
    ShowsWhatIsWithheld: {
        "test_an_observed_run_is_told_no_note",
        "test_an_observed_run_sends_the_requests_of_an_unsteered_one",
    },
    KeepsTellingNotes: {"test_a_note_of_an_operator_is_told_once"},
    TellsObservedRunsNotes: {"test_an_observed_run_is_told_no_note"},
    CallsTheModelAfterAStop: {"test_a_stopped_run_makes_no_further_call", "test_a_budget_is_told_and_ends_the_run"},
    ReportsAStopAsAFailure: {"test_a_stopped_run_makes_no_further_call", "test_a_budget_is_told_and_ends_the_run"},
    LeavesOutTheBudget: {"test_a_budget_is_told_and_ends_the_run"},
    KeepsItsModelWhenEscalated: {"test_a_stuck_run_is_escalated_and_comes_back"},
    AsksNoAdvisor: {"test_an_advisor_is_asked_for_each_text"},
    TakesNoSecondLook: {"test_a_second_look_is_one_more_call"},
    ForgetsTheTextOfASecondLook: {"test_a_second_look_is_one_more_call"},
}
"""Each spoiled adapter, and the scenarios that tell of it: these and no other."""
SLOW = {"test_the_adapters_own_work_does_not_grow", "test_the_event_loop_goes_on_while_a_scorer_works"}
"""Time, which none of these faults costs."""
SCENARIOS = {
    name: inspect.signature(function).parameters
    for name, function in inspect.getmembers(ConformanceSuite, inspect.isfunction)
    if name.startswith("test_") and name not in SLOW
}


def failing(run: type[LoopRun]) -> set[str]:
    """The scenarios that a loop of such runs fails, in its mode `sync`, golden runs left out."""

    class Spoiled(LoopHarness):
        modes = ("sync",)
        kind = run

    suite: Any = type("Suite", (ConformanceSuite,), {"harness": Spoiled(), "__test__": False})()
    return {name for name, given in SCENARIOS.items() if "golden" not in given and _fails(getattr(suite, name), given)}


def _fails(scenario: Any, given: Any) -> bool:
    # A context of its own for each: a variable that one sets and never resets is not the next one's.
    try:
        contextvars.copy_context().run(scenario, *["sync"] * ("mode" in given))
    except pytest.skip.Exception:
        return False
    except Exception:  # noqa: BLE001 - an assertion, or what a spoiled adapter lets through
        return True
    return False


@pytest.mark.parametrize("run", CAUGHT_BY, ids=lambda run: run.__name__)
def test_a_spoiled_adapter_is_caught_by_the_scenario_of_its_fault(run: type[LoopRun]) -> None:
    LeavesAThreadPerCall.let_go.clear()
    try:
        assert failing(run) == CAUGHT_BY[run]
    finally:
        LeavesAThreadPerCall.let_go.set()


def test_a_sound_adapter_passes_every_scenario() -> None:
    assert failing(LoopRun) == set()
