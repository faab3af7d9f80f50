"""Runs the pipeline of a step in order: `step_flow`, read from the top."""

from __future__ import annotations

from dataclasses import replace

from ..requests import Flow
from ..types import FSMState, Settings, SkippedReason, StepDecision, StepInput, TraceState
from . import escalation, gates
from ._assess import assess, decision_for, record_assessment
from ._decide import again, blank, finish_decision, key_of, skipped_reason
from ._last import stop_before_call, stop_over_budget
from ._lessons import Lessons, lessons_for, record_tiers, standing_rules
from ._speak import record_injection, speak
from .budget import REASON, is_used_up, tell_budget
from .control import apply_stop_rule, next_note, review_injections, verdict
from .tool_limits import count_tools


def step_flow(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Decide call `state.calls`; return the new state and the decision (section 1). Auxiliary calls ask nothing."""
    known = again(state, given)
    if known is not None:
        return state, known
    if given.auxiliary:
        return _auxiliary(state, given, settings)
    if settings.disabled:
        return finish_decision(state, given, blank(state, settings, key_of(given), skipped="disabled"), settings)
    if state.steps_begun == 0:
        return (yield from _first_call(state, given, settings))
    return (yield from _next_call(state, given, settings))


def after_fault(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Return the state and decision after a fault: the counter advances, nothing is assessed, the call is unsteered."""
    moved = replace(state, faults=state.faults + 1)
    if given.auxiliary:
        return _auxiliary(moved, given, settings)
    if state.pending is not None:
        moved = count_tools(moved, state.pending.tool_calls, settings)
    moved = replace(moved, fired_before=(*state.fired_before, False)[-gates.LOOK_BACK :])
    if (ended := stop_over_budget(moved, given, settings)) is not None:
        return ended
    return finish_decision(moved, given, blank(state, settings, key_of(given), skipped="fault"), settings)


def _first_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Decide call 0: nothing is complete yet, so only standing rules are retrieved (section 1, 2)."""
    lessons = Lessons(e1=state.e1, e2=state.e2, e3=state.e3)
    if settings.e_traces_enabled:
        lessons = yield from standing_rules(state, lessons, given.default_model, settings)
    skipped: SkippedReason | None = (
        "disabled" if not settings.e_traces_enabled else "unavailable" if lessons.failed else None
    )
    decision = replace(blank(state, settings, key_of(given), skipped=skipped), retrieved=lessons.retrieved)
    told, dropped = yield from review_injections(lessons.injections, state, decision, settings)
    note = yield from next_note(state, settings)
    state, line = tell_budget(record_tiers(state, lessons), settings, given.calls_left)
    return finish_decision(state, given, decision, settings, told, lessons.warnings, dropped, note, line)


def _next_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Score, advance, evaluate, gate, retrieve, route and render: sections 1, 3 to 9."""
    assessment = yield from assess(state, given.completed, settings)
    after_assessment = count_tools(record_assessment(state, assessment), assessment.step.tool_calls, settings)
    so_far = decision_for(state, assessment, settings, gate=None, skipped=None, key=key_of(given))
    if assessment.fsm_state is FSMState.END:
        if is_used_up(after_assessment, settings) and settings.mode == "steer":
            return stop_before_call(state, given, assessment, REASON, settings)
        return finish_decision(after_assessment, given, replace(so_far, skipped_reason="end"), settings)
    after_assessment, found = yield from verdict(after_assessment, so_far, settings)
    if found.stop is not None and settings.mode == "steer":
        return stop_before_call(state, given, assessment, found.stop, settings)

    after_assessment = escalation.begin(after_assessment, assessment.fsm_state, settings)
    route = escalation.route(after_assessment, settings)
    model = settings.routes.get(route or "") or given.default_model
    speech = yield from speak(after_assessment, assessment, so_far, model, settings)
    after_injection = record_injection(after_assessment, assessment, speech, settings)
    e1_open = gates.e1_open(state, assessment.evaluation)  # judged by the steps before this one
    lessons = yield from lessons_for(after_injection, assessment, model, settings, e1_open=e1_open)
    after_retrieval = record_tiers(after_injection, lessons)
    told, dropped = yield from review_injections(lessons.injections, after_assessment, so_far, settings)

    decision = replace(
        apply_stop_rule(so_far, found, settings),
        gate_decision=speech.gate,
        skipped_reason=skipped_reason(assessment, settings, failed=speech.failed or lessons.failed),
        route=route,
        effort=escalation.effort(after_assessment, settings),
        retrieved={**speech.retrieved, **lessons.retrieved},
        advisor_ms=speech.advised.ms if speech.advised else None,
        advisor_tokens=speech.advised.tokens if speech.advised else None,
    )
    injections = (*((speech.injection,) if speech.injection else ()), *told)
    warnings, dropped = speech.warnings + lessons.warnings, speech.dropped + dropped
    note = yield from next_note(after_retrieval, settings)
    after_line, line = tell_budget(after_retrieval, settings, given.calls_left)
    return finish_decision(after_line, given, decision, settings, injections, warnings, dropped, note, line)


def _auxiliary(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Decide a call that is not a step: it gets a number, and nothing that decides steps changes."""
    decision = blank(state, settings, key_of(given), skipped="auxiliary")
    calls, auxiliary = state.calls + 1, state.auxiliary_calls + 1
    return replace(state, calls=calls, auxiliary_calls=auxiliary, last_auxiliary=decision), decision
