"""Completes a decision: fits its injections, withholds them in an observed run, and stores it for a repeated key."""

from __future__ import annotations

from dataclasses import replace

from ..exceptions import StaleKey
from ..render import guidance as render
from ..types import (
    FSMState,
    Injection,
    Note,
    Placement,
    Settings,
    SkippedReason,
    Source,
    StepDecision,
    StepInput,
    TraceState,
)
from ..util.text import cut_with_hash, digest
from ._assess import KEY_BYTES, Assessment
from ._lessons import with_shown_patterns

SENT_KEPT = 64
"""Sent texts that are remembered; the caps allow fewer in a run."""
_REPEATABLE = ("OperatorInjection", "BudgetInjection")
"""The sources of texts that a run may be told twice."""
KEYS_KEPT = 64
"""Remembered newest keys, by which an older key is recognised."""


def key_of(given: StepInput) -> str | None:
    return None if given.key is None else cut_with_hash(given.key, KEY_BYTES)


def again(state: TraceState, given: StepInput) -> StepDecision | None:
    """Return the last decision if this is its key; raise `StaleKey` for the key of an older step.

    Auxiliary calls have separate keys, so a step that is retried after one is still the same step.
    """
    key, auxiliary, last = given.key, state.last_auxiliary, state.last
    if given.auxiliary:
        same = auxiliary is not None and auxiliary.key is not None and auxiliary.key == key_of(given)
        return replace(auxiliary, replayed=True) if auxiliary is not None and same else None
    if last is not None and (last.stop is not None or (key is None and is_second_look_to_come(state))):
        return replace(last, replayed=True)  # a stopped run stays stopped
    if key is None or not state.keys:
        return None
    mark = digest(key)
    if last is not None and last.key is not None and mark == state.keys[-1]:
        return replace(last, replayed=True)
    if mark in state.keys:
        raise StaleKey(key, last.key if last else None)
    return None


def is_second_look_to_come(state: TraceState) -> bool:
    """Return True if the last decision is the run's second look, whose call has not been answered yet."""
    return state.last is not None and state.last.step == state.second_look and state.pending is None


def adopt_state(state: TraceState, settings: Settings) -> TraceState:
    """Return a restored state for a session with these settings.

    If the session only observes a run that was steered before, the decision for the next call is withheld, and a
    stopped run continues. If steering is disabled, the texts of that decision are dropped.
    """
    last = state.last
    if last is None or not (settings.disabled or (settings.mode == "observe" and last.mode == "steer")):
        return state
    held = (*last.injections, *_as_injections(last.standing_rules))
    if settings.disabled:
        held = ()
    observed = replace(
        last,
        mode=settings.mode,
        withheld=held,
        withheld_route=last.route,
        withheld_effort=last.effort,
        withheld_stop=last.stop,
        withheld_interrupt=last.interrupt,
        injections=(),
        note_ids=(),
        guidance="",
        standing_rules="",
        route=None,
        effort=None,
        stop=None,
        interrupt=None,
        cache_tokens_at_risk=0,
    )
    if last.stop is None:
        return replace(state, last=observed)
    return replace(state, last=replace(observed, gate_decision="quiet"), calls=state.calls + 1, pending=None)


def _as_injections(rules: str) -> tuple[Injection, ...]:
    return (Injection(source="E3Injection", text=rules),) if rules else ()


def with_note(state: TraceState, text: str, settings: Settings) -> TraceState:
    """Return the state with a person's note in its last decision, or the same state if the note adds nothing.

    Notes come first and keep their order. If the guidance becomes too long, the injections after them are dropped
    first.
    """
    last, note = state.last, render.note_injection(text)
    if last is None or note is None or settings.mode == "observe" or note in last.injections:
        return state
    before = [injection for injection in last.injections if injection.source == note.source]
    fitting, cut = render.fit((*before, note, *last.injections[len(before) :]), settings.max_guidance_chars)
    at_risk = state.call_tokens if last.placement == "system" and state.call_tokens else last.cache_tokens_at_risk
    noted = replace(
        last,
        mode="steer",
        injections=fitting,
        dropped=(*last.dropped, *cut),
        guidance=render.guidance(fitting),
        cache_tokens_at_risk=at_risk,
    )
    return replace(state, last=noted)


def in_system(state: TraceState) -> TraceState:
    """Return the state whose last decision has its guidance in the system message."""
    last = state.last
    if last is None or last.placement == "system":
        return state
    at_risk = state.call_tokens if last.guidance else last.cache_tokens_at_risk
    return replace(state, last=replace(last, placement="system", cache_tokens_at_risk=at_risk))


def without_guidance(state: TraceState) -> TraceState:
    """Return the state whose last decision has no guidance: a repeated key gets the call without it."""
    last = state.last
    if last is None:
        return state
    withheld = (*last.withheld, *last.injections)
    return replace(state, last=replace(last, injections=(), guidance="", note_ids=(), withheld=withheld))


def without_effort(state: TraceState) -> TraceState:
    """Return the state whose last decision asks for no effort."""
    return state if state.last is None else replace(state, last=replace(state.last, effort=None))


def blank(state: TraceState, settings: Settings, key: str | None, *, skipped: SkippedReason | None) -> StepDecision:
    """Return the decision for a call before which no completed step was assessed."""
    return StepDecision(
        step=state.calls,
        key=key,
        fsm_state=state.current_state,
        placement=settings.placement,
        mode=settings.mode,
        skipped_reason=skipped,
    )


def skipped_reason(assessment: Assessment, settings: Settings, *, failed: bool) -> SkippedReason | None:
    if assessment.fsm_state is FSMState.END:
        return "end"
    if not settings.e_traces_enabled:
        return "disabled"
    if assessment.fsm_state is FSMState.FAST:
        return "fast"
    return "unavailable" if failed or assessment.evaluation is None else None


def finish_decision(
    state: TraceState,
    given: StepInput,
    decision: StepDecision,
    settings: Settings,
    injections: tuple[Injection, ...] = (),
    warnings: tuple[str, ...] = (),
    dropped: tuple[Source, ...] = (),
    note: Note | None = None,
    budget_line: Injection | None = None,
) -> tuple[TraceState, StepDecision]:
    """Return the state that stores the complete decision, and that decision with its guidance.

    The note comes first in it, and the line of the budget last.
    """
    rules = state.standing_rules
    if settings.standing_rules == "run":
        new_rules = [injection for injection in injections if injection.source == "E3Injection"]
        rules = "\n".join([*filter(None, (rules,)), *(rule.text for rule in new_rules)])
        injections = tuple(injection for injection in injections if injection.source != "E3Injection")
        state = with_shown_patterns(state, new_rules)
    if note is not None and (noted := render.note_injection(note.text)) is not None:
        injections = (noted, *injections)
        decision = replace(decision, note_ids=(note.id,))
    fitting: tuple[Injection, ...] = ()
    if budget_line is not None:
        injections = (*injections, budget_line)
    if injections:
        state, fitting, left_out = _fitted(state, injections, settings)
        dropped += left_out
    if settings.mode == "observe":
        decision = _withheld(decision, fitting, rules, dropped, warnings)
    else:
        decision = _shown(state, decision, fitting, rules, dropped, warnings, settings)
    return remember_decision(replace(state, calls=state.calls + 1, pending=None, standing_rules=rules), given, decision)


def remember_decision(state: TraceState, given: StepInput, decision: StepDecision) -> tuple[TraceState, StepDecision]:
    """Return the state from which the same key gets this decision again, and the decision."""
    keys = state.keys if given.key is None else (*state.keys, digest(given.key))[-KEYS_KEPT:]
    moved = replace(state, keys=keys, last=decision)
    return replace(moved, last_auxiliary=None) if state.last_auxiliary is not None else moved, decision


def _shown(
    state: TraceState,
    decision: StepDecision,
    fitting: tuple[Injection, ...],
    rules: str,
    dropped: tuple[Source, ...],
    warnings: tuple[str, ...],
    settings: Settings,
) -> StepDecision:
    guidance = render.guidance(fitting) if fitting else ""
    at_risk = _at_risk(state, decision, guidance, settings)
    if not (fitting or rules or warnings or dropped or at_risk != 0):
        return decision  # the usual case: there is nothing to add, so avoid the copy
    return replace(
        decision,
        injections=fitting,
        dropped=dropped,
        standing_rules=rules,
        guidance=guidance,
        cache_tokens_at_risk=at_risk,
        warnings=warnings,
    )


def _withheld(
    decision: StepDecision,
    fitting: tuple[Injection, ...],
    rules: str,
    dropped: tuple[Source, ...],
    warnings: tuple[str, ...],
) -> StepDecision:
    """Return the decision for an observed call, whose request stays unchanged."""
    fitting = (*fitting, *_as_injections(rules))
    if not (fitting or warnings or dropped or decision.route or decision.effort):
        return decision
    return replace(
        decision,
        withheld=fitting,
        withheld_route=decision.route,
        withheld_effort=decision.effort,
        route=None,
        effort=None,
        dropped=dropped,
        warnings=warnings,
    )


def _fitted(
    state: TraceState, injections: tuple[Injection, ...], settings: Settings
) -> tuple[TraceState, tuple[Injection, ...], tuple[Source, ...]]:
    """Drop injections that were already sent or do not fit; return the state, the others, and the dropped sources."""
    fresh = [
        injection
        for injection in injections
        if not state.sent or injection.source in _REPEATABLE or digest(injection.text) not in state.sent
    ]
    fitting, cut = render.fit(fresh, settings.max_guidance_chars)
    dropped = (*(injection.source for injection in injections if injection not in fresh), *cut)
    state = with_shown_patterns(state, fitting)
    if settings.placement == "context":
        state = replace(state, sent=(*state.sent, *(digest(injection.text) for injection in fitting))[-SENT_KEPT:])
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
