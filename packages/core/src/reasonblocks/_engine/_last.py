"""Decides how a run ends: its final step, an end by `stop_when`, or a second look at an end that is in doubt."""

from __future__ import annotations

from .. import _render as render
from .. import _routing as routing
from .._json import evolve
from .._monitors.builtin import BY_NAME
from .._monitors.suite import DOUBTING
from .._requests import Flow
from ..types import Injection, Settings, Step, StepDecision, StepInput, TraceState
from ._assess import Assessment, assess, decision_for, record_assessment
from ._control import reviewed
from ._decide import again, blank, decided, key_of, remembered, skipped_reason
from ._speak import doubts_of, with_injected


def final_flow(state: TraceState, completed: Step | None, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Assess the last completed step: it is scored, advanced and evaluated, never injected (section 1, 12)."""
    assessment = yield from assess(state, completed, settings)
    decision = _final(state, assessment, settings)
    if settings.second_look and settings.mode == "observe" and state.second_look is None:
        look, _ = yield from _look_text(state, assessment, settings)
        if look is not None:
            decision = evolve(decision, withheld=(look,))
    return record_assessment(state, assessment, final=True), decision


def final_fault(state: TraceState, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Return what a fault leaves of the last step."""
    return state, evolve(blank(state, settings, None, skipped="fault"), gate_decision="final")


def stopped(
    state: TraceState, given: StepInput, assessment: Assessment, reason: str, settings: Settings
) -> tuple[TraceState, StepDecision]:
    """Return the final decision of a run that ends before its next call, and the state that remembers it."""
    decision = evolve(_final(state, assessment, settings), key=key_of(given), stop=reason)
    return remembered(record_assessment(state, assessment, final=True), given, decision)


def look_flow(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Assess the step that would end the run; return the decision of one more call if it is in doubt, else the final.

    A repeated key returns the decision of the second look again.
    """
    if (looked := again(state, given)) is not None:
        return state, looked
    assessment = yield from assess(state, given.completed, settings)
    after = record_assessment(state, assessment)
    look, monitor = yield from _look_text(after, assessment, settings)
    if look is None:
        return record_assessment(state, assessment, final=True), _final(state, assessment, settings)
    route = routing.route(assessment.fsm_state, settings.routes)
    skipped = skipped_reason(assessment, settings, failed=False)
    decision = decision_for(state, assessment, settings, gate="inject", skipped=skipped, key=key_of(given), route=route)
    told = with_injected(after, look, monitor, BY_NAME[monitor].failure_type)
    return decided(evolve(told, second_look=state.calls), given, decision, settings, (look,))


def _final(state: TraceState, assessment: Assessment, settings: Settings) -> StepDecision:
    skipped = skipped_reason(assessment, settings, failed=False)
    decision = decision_for(state, assessment, settings, gate="final", skipped=skipped)
    return evolve(decision, doubts=doubts_of(assessment))


def _look_text(state: TraceState, assessment: Assessment, settings: Settings) -> Flow[tuple[Injection | None, str]]:
    """Return the text of the first doubt about the end, as the user leaves it, and its monitor; None for no doubt."""
    doubts = assessment.evaluation.doubts if assessment.evaluation else ()
    for doubt in doubts:
        look = render.monitor_injection(doubt.text) if doubt.monitor in DOUBTING else None
        if look is not None:
            found = decision_for(state, assessment, settings, gate="inject", skipped=None)
            return (yield from reviewed(look, state, found, settings)), doubt.monitor
    return None, ""
