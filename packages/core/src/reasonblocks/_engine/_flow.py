"""Runs the pipeline of a step in order: `step_flow` and `final_flow`, read from the top, and their decision."""

from __future__ import annotations

from .. import _gates as gates
from .. import _render as render
from .. import _routing as routing
from .._json import evolve
from .._requests import Flow
from .._text import bounded, digest
from ..exceptions import StaleKey
from ..types import (
    FSMState,
    Injection,
    Placement,
    Settings,
    SkippedReason,
    Source,
    Step,
    StepDecision,
    StepInput,
    TraceState,
)
from ._assess import KEY_BYTES, Assessment, assess, decision_for, record_assessment
from ._lessons import Lessons, lessons_for, record_tiers, standing_rules, with_shown_patterns
from ._speak import doubts_of, record_injection, speak

SENT_KEPT = 64
"""Sent texts that are remembered; the caps allow fewer in a run."""
KEYS_KEPT = 64
"""Remembered newest keys, by which an older key is recognised."""


def step_flow(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Decide call `state.calls`; return the new state and the decision (section 1). Auxiliary calls ask nothing."""
    again = _again(state, given)
    if again is not None:
        return state, again
    if given.auxiliary:
        return _auxiliary(state, given, settings)
    if settings.disabled:
        return _decided(state, given, _blank(state, settings, _key(given), skipped="disabled"), settings)
    if state.steps_begun == 0:
        return (yield from _first_call(state, given, settings))
    return (yield from _next_call(state, given, settings))


def final_flow(state: TraceState, completed: Step | None, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Assess the last completed step: it is scored, advanced and evaluated, never injected (section 1, 12)."""
    assessment = yield from assess(state, completed, settings)
    skipped = _skipped(assessment, settings, failed=False)
    decision = decision_for(state, assessment, settings, gate="final", skipped=skipped)
    return record_assessment(state, assessment, final=True), evolve(decision, doubts=doubts_of(assessment))


def faulted(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Return the state and decision after a fault: the counter advances, nothing is assessed, the call is unsteered."""
    moved = evolve(state, faults=state.faults + 1)
    if given.auxiliary:
        return _auxiliary(moved, given, settings)
    moved = evolve(moved, fired_before=(*state.fired_before, False)[-gates.LOOK_BACK :])
    return _decided(moved, given, _blank(state, settings, _key(given), skipped="fault"), settings)


def final_fault(state: TraceState, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Return what a fault leaves of the last step."""
    return state, evolve(_blank(state, settings, None, skipped="fault"), gate_decision="final")


def _first_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Decide call 0: nothing is complete yet, so only standing rules are retrieved (section 1, 2)."""
    lessons = Lessons(e1=state.e1, e2=state.e2, e3=state.e3)
    if settings.e_traces_enabled:
        lessons = yield from standing_rules(state, lessons, given.default_model, settings)
    skipped: SkippedReason | None = (
        "disabled" if not settings.e_traces_enabled else "unavailable" if lessons.failed else None
    )
    blank = evolve(_blank(state, settings, _key(given), skipped=skipped), retrieved=lessons.retrieved)
    return _decided(record_tiers(state, lessons), given, blank, settings, lessons.injections, lessons.warnings)


def _next_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Score, advance, evaluate, gate, retrieve, route and render: sections 1, 3 to 9."""
    assessment = yield from assess(state, given.completed, settings)
    after_assessment = record_assessment(state, assessment)
    if assessment.fsm_state is FSMState.END:
        decision = decision_for(state, assessment, settings, gate=None, skipped="end", key=_key(given))
        return _decided(after_assessment, given, decision, settings)

    route = routing.route(assessment.fsm_state, settings.routes)
    model = settings.routes[route] if route else given.default_model
    speech = yield from speak(after_assessment, assessment, model, settings)
    after_injection = record_injection(after_assessment, assessment, speech, settings)
    e1_open = gates.e1_open(state, assessment.evaluation)  # judged by the steps before this one
    lessons = yield from lessons_for(after_injection, assessment, model, settings, e1_open=e1_open)
    after_retrieval = record_tiers(after_injection, lessons)

    skipped = _skipped(assessment, settings, failed=speech.failed or lessons.failed)
    decision = decision_for(
        state, assessment, settings, gate=speech.gate, skipped=skipped, key=_key(given), route=route
    )
    if speech.retrieved or lessons.retrieved:
        decision = evolve(decision, retrieved={**speech.retrieved, **lessons.retrieved})
    injections = (*((speech.injection,) if speech.injection else ()), *lessons.injections)
    return _decided(after_retrieval, given, decision, settings, injections, speech.warnings + lessons.warnings)


def _auxiliary(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Decide a call that is not a step: it gets a number, and nothing that decides steps changes."""
    decision = _blank(state, settings, _key(given), skipped="auxiliary")
    calls, auxiliary = state.calls + 1, state.auxiliary_calls + 1
    return evolve(state, calls=calls, auxiliary_calls=auxiliary, last_auxiliary=decision), decision


def _key(given: StepInput) -> str | None:
    return None if given.key is None else bounded(given.key, KEY_BYTES)


def _again(state: TraceState, given: StepInput) -> StepDecision | None:
    """Return the last decision if this is its key; raise `StaleKey` for the key of an older step.

    Auxiliary calls have separate keys, so a step that is retried after one is still the same step.
    """
    key, auxiliary = given.key, state.last_auxiliary
    if given.auxiliary:
        same = auxiliary is not None and auxiliary.key is not None and auxiliary.key == _key(given)
        return evolve(auxiliary, replayed=True) if auxiliary is not None and same else None
    if key is None or not state.keys:
        return None
    mark = digest(key)
    if state.last is not None and state.last.key is not None and mark == state.keys[-1]:
        return evolve(state.last, replayed=True)
    if mark in state.keys:
        raise StaleKey(key, state.last.key if state.last else None)
    return None


def _blank(state: TraceState, settings: Settings, key: str | None, *, skipped: SkippedReason | None) -> StepDecision:
    return StepDecision(
        step=state.calls,
        key=key,
        fsm_state=state.current_state,
        placement=settings.placement,
        skipped_reason=skipped,
    )


def _skipped(assessment: Assessment, settings: Settings, *, failed: bool) -> SkippedReason | None:
    if assessment.fsm_state is FSMState.END:
        return "end"
    if not settings.e_traces_enabled:
        return "disabled"
    if assessment.fsm_state is FSMState.FAST:
        return "fast"
    return "unavailable" if failed or assessment.evaluation is None else None


def _decided(
    state: TraceState,
    given: StepInput,
    decision: StepDecision,
    settings: Settings,
    injections: tuple[Injection, ...] = (),
    warnings: tuple[str, ...] = (),
) -> tuple[TraceState, StepDecision]:
    """Return the whole decision with its guidance, and the state that remembers it."""
    rules = state.standing_rules
    if settings.standing_rules == "run":
        new_rules = [injection for injection in injections if injection.source == "E3Injection"]
        rules = "\n".join([*filter(None, (rules,)), *(rule.text for rule in new_rules)])
        injections = tuple(injection for injection in injections if injection.source != "E3Injection")
        state = with_shown_patterns(state, new_rules)
    fitting: tuple[Injection, ...] = ()
    dropped: tuple[Source, ...] = ()
    guidance = ""
    if injections:
        state, fitting, dropped = _fitted(state, injections, settings)
        guidance = render.guidance(fitting)
    at_risk = _at_risk(state, decision, guidance, settings)
    if injections or rules or warnings or at_risk != 0:  # as a rule there is nothing to add, so nothing to copy
        decision = evolve(
            decision,
            injections=fitting,
            dropped=dropped,
            standing_rules=rules,
            guidance=guidance,
            cache_tokens_at_risk=at_risk,
            warnings=warnings,
        )
    keys = state.keys if given.key is None else (*state.keys, digest(given.key))[-KEYS_KEPT:]
    moved = evolve(state, calls=state.calls + 1, pending=None, keys=keys, standing_rules=rules, last=decision)
    return evolve(moved, last_auxiliary=None) if state.last_auxiliary is not None else moved, decision


def _fitted(
    state: TraceState, injections: tuple[Injection, ...], settings: Settings
) -> tuple[TraceState, tuple[Injection, ...], tuple[Source, ...]]:
    """Drop injections that were sent already or do not fit; return the new state, the others, the dropped sources."""
    fresh = [injection for injection in injections if not state.sent or digest(injection.text) not in state.sent]
    fitting, cut = render.fit(fresh, settings.max_guidance_chars)
    dropped = (*(injection.source for injection in injections if injection not in fresh), *cut)
    state = with_shown_patterns(state, fitting)
    if settings.placement == "context":
        state = evolve(state, sent=(*state.sent, *(digest(injection.text) for injection in fitting))[-SENT_KEPT:])
    return state, fitting, dropped


def _at_risk(state: TraceState, decision: StepDecision, guidance: str, settings: Settings) -> int | None:
    """Return the tokens that the provider reads again because the system text or the model has changed."""
    if state.last is None:
        return 0
    moved = _in_system(decision.placement, guidance) != _in_system(state.last.placement, state.last.guidance)
    before, now = state.last.route, decision.route
    rerouted = before != now and settings.routes.get(before or "") != settings.routes.get(now or "")
    return state.call_tokens if moved or rerouted else 0


def _in_system(placement: Placement, guidance: str) -> str:
    return guidance if placement == "system" else ""
