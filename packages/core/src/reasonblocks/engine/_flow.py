"""The order of things: `step_flow` and `final_flow` from the top, and the decision that ends them."""

from __future__ import annotations

import json

from .. import gates, render, routing
from ..exceptions import BadAnswer, StaleKey
from ..requests import Flow
from ..text import bounded, digest
from ..types import (
    FSMState,
    Injection,
    Pending,
    Placement,
    Settings,
    SkippedReason,
    Source,
    Step,
    StepDecision,
    StepInput,
    StepOutcome,
    ToolCall,
    TraceState,
    canonical,
    evolve,
)
from ._judge import Judged, after, judge, judgement
from ._lessons import Lessons, learned, lessons_for, standing_rules, with_shown
from ._speak import doubts_of, speak, spoken

SENT_KEPT = 64
"""Texts that are known to be sent; the caps allow fewer in a run."""
KEYS_KEPT = 64
"""Newest keys by which an older one is known."""
KEY_BYTES = 200
PENDING_CALLS = 4
CALL_BYTES = 300
PENDING_BYTES = 1_200
"""Per text of what `end_step` keeps for adapters that cannot read the history."""
_PLAIN = json.JSONDecoder(parse_constant=str)


def step_flow(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """The decision for call `state.calls`, and the state after it (section 1)."""
    again = _again(state, given.key)
    if again is not None:
        return state, again
    if settings.disabled:
        return _decided(state, given, _blank(state, settings, skipped="disabled"), settings)
    if state.calls == 0:
        return (yield from _first_call(state, given, settings))
    return (yield from _next_call(state, given, settings))


def final_flow(state: TraceState, completed: Step | None, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """The last completed step: scored, advanced, evaluated, never injected (section 1, 12)."""
    judged = yield from judge(state, _checked(completed_step(state, completed)), settings)
    skipped = _skipped(judged, settings, failed=False)
    decision = judgement(state, judged, settings, gate="final", skipped=skipped)
    return after(state, judged), evolve(decision, doubts=doubts_of(judged))


def faulted(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision]:
    """What a fault leaves of a step: the counter advances, nothing is judged, the call goes unsteered."""
    moved = evolve(
        state,
        faults=state.faults + 1,
        fired_before=(*state.fired_before, False)[-gates.LOOK_BACK :],
    )
    return _decided(moved, given, _blank(state, settings, skipped="fault"), settings)


def final_fault(state: TraceState, settings: Settings) -> tuple[TraceState, StepDecision]:
    """What a fault leaves of the last step."""
    return state, evolve(_blank(state, settings, skipped="fault"), gate_decision="final")


def with_outcome(state: TraceState, outcome: StepOutcome) -> TraceState:
    """The state after a call: tokens counted, and what it said kept for the next step."""
    tokens = outcome.usage.total
    said = Pending(
        text=bounded(outcome.text or "", PENDING_BYTES),
        reasoning=bounded(outcome.reasoning or "", PENDING_BYTES) if not (outcome.text or "").strip() else "",
        tool_calls=tuple(map(_bounded_call, outcome.tool_calls[:PENDING_CALLS])),
    )
    return evolve(
        state,
        total_tokens=state.total_tokens + (tokens or 0),
        call_tokens=tokens,
        pending=None if outcome.error is not None else said,
    )


def _bounded_call(call: ToolCall) -> ToolCall:
    """The call, its arguments as bounded text where they are too long to be kept as they are."""
    arguments = canonical(call.arguments)
    text = bounded(arguments, CALL_BYTES)
    return ToolCall(
        id=bounded(str(call.id), KEY_BYTES),
        name=bounded(str(call.name), KEY_BYTES),
        arguments=_PLAIN.decode(text) if text == arguments else text,
    )


def _first_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Call 0: nothing is complete yet, only standing rules (section 1, 2)."""
    lessons = Lessons(e1=state.e1, e2=state.e2, e3=state.e3)
    if settings.e_traces_enabled:
        lessons = yield from standing_rules(state, lessons, given.default_model, settings)
    skipped: SkippedReason | None = (
        "disabled" if not settings.e_traces_enabled else "unavailable" if lessons.failed else None
    )
    blank = _blank(state, settings, skipped=skipped)
    blank = evolve(blank, retrieved=lessons.retrieved)
    return _decided(learned(state, lessons), given, blank, settings, lessons.injections, lessons.notes)


def _next_call(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Score, advance, evaluate, gate, retrieve, route, render: sections 1, 3 to 9."""
    judged = yield from judge(state, _checked(completed_step(state, given.completed)), settings)
    state_after = after(state, judged)
    if judged.now is FSMState.END:
        decision = judgement(state, judged, settings, gate=None, skipped="end")
        return _decided(state_after, given, decision, settings)

    route = routing.route(judged.now, settings.routes)
    model = settings.routes[route] if route else given.default_model
    speech = yield from speak(state_after, judged, model, settings)
    shown = with_shown(state_after, [speech.injection] if speech.injection else [])
    lessons = yield from lessons_for(state, shown, judged, model, settings)

    injections = (*((speech.injection,) if speech.injection else ()), *lessons.injections)
    skipped = _skipped(judged, settings, failed=speech.failed or lessons.failed)
    decision = judgement(state, judged, settings, gate=speech.gate, skipped=skipped, route=route)
    if speech.retrieved or lessons.retrieved:
        decision = evolve(decision, retrieved={**speech.retrieved, **lessons.retrieved})
    state_spoken = spoken(learned(shown, lessons), judged, speech, settings)
    return _decided(state_spoken, given, decision, settings, injections, speech.notes + lessons.notes)


def _again(state: TraceState, key: str | None) -> StepDecision | None:
    """The last decision, if this is its key; an older key is refused."""
    if key is None or not state.keys:
        return None
    mark = digest(key)
    if state.last is not None and state.last.key is not None and mark == state.keys[-1]:
        return evolve(state.last, replayed=True)
    if mark in state.keys:
        raise StaleKey(key, state.last.key if state.last else None)
    return None


def completed_step(state: TraceState, given: Step | None) -> Step:
    """The completed step; what the adapter could not read is what `end_step` kept."""
    step = given or Step()
    if state.pending is None or step.thought or step.reasoning or step.tool_calls:
        return step
    said = state.pending
    return evolve(step, thought=said.text, reasoning=said.reasoning, tool_calls=said.tool_calls)


def _checked(step: Step) -> Step:
    """Texts are texts: a None from some model's API is said here, not found deep below."""
    texts: list[tuple[str, object]] = [("thought", step.thought), ("reasoning", step.reasoning)]
    texts += [("tool output", result.output) for result in step.tool_results]
    for name, text in texts:
        if not isinstance(text, str):
            raise BadAnswer(f"the completed step's {name}", text, "must be a string, '' where there was nothing")
    return step


def _blank(state: TraceState, settings: Settings, *, skipped: SkippedReason | None) -> StepDecision:
    return StepDecision(
        step=state.calls, fsm_state=state.current_state, placement=settings.placement, skipped_reason=skipped
    )


def _skipped(judged: Judged, settings: Settings, *, failed: bool) -> SkippedReason | None:
    if judged.now is FSMState.END:
        return "end"
    if not settings.e_traces_enabled:
        return "disabled"
    if judged.now is FSMState.FAST:
        return "fast"
    return "unavailable" if failed or judged.evaluation is None else None


def _decided(
    state: TraceState,
    given: StepInput,
    decision: StepDecision,
    settings: Settings,
    injections: tuple[Injection, ...] = (),
    notes: tuple[str, ...] = (),
) -> tuple[TraceState, StepDecision]:
    """The whole decision with its guidance, and the state that remembers it."""
    rules = state.standing_rules
    if settings.standing_rules == "run":
        told = [one for one in injections if one.source == "E3Injection"]
        rules = "\n".join([*filter(None, (rules,)), *(one.text for one in told)])
        injections = tuple(one for one in injections if one.source != "E3Injection")
        state = with_shown(state, told)
    kept: tuple[Injection, ...] = ()
    dropped: tuple[Source, ...] = ()
    guidance = ""
    if injections:
        state, kept, dropped = _told(state, injections, settings)
        guidance = render.guidance(kept)
    decision = evolve(
        decision,
        key=None if given.key is None else bounded(given.key, KEY_BYTES),
        injections=kept,
        dropped=dropped,
        standing_rules=rules,
        guidance=guidance,
        cache_tokens_at_risk=_at_risk(state, decision, guidance, settings),
        notes=notes,
    )
    keys = state.keys if given.key is None else (*state.keys, digest(given.key))[-KEYS_KEPT:]
    return evolve(state, calls=state.calls + 1, pending=None, keys=keys, standing_rules=rules, last=decision), decision


def _told(
    state: TraceState, injections: tuple[Injection, ...], settings: Settings
) -> tuple[TraceState, tuple[Injection, ...], tuple[Source, ...]]:
    """The state that remembers what is told, that, and the sources of what is not: it was sent, or is too long."""
    fresh = [one for one in injections if not state.sent or digest(one.text) not in state.sent]
    kept, cut = render.fit(fresh, settings.max_guidance_chars)
    dropped = (*(one.source for one in injections if one not in fresh), *cut)
    state = with_shown(state, kept)
    if settings.placement == "context":
        state = evolve(state, sent=(*state.sent, *(digest(one.text) for one in kept))[-SENT_KEPT:])
    return state, kept, dropped


def _at_risk(state: TraceState, decision: StepDecision, guidance: str, settings: Settings) -> int | None:
    """Tokens that the provider reads again because the system text, or the model, is not that of the last call."""
    if state.last is None:
        return 0
    moved = _in_system(decision.placement, guidance) != _in_system(state.last.placement, state.last.guidance)
    before, now = state.last.route, decision.route
    rerouted = before != now and settings.routes.get(before or "") != settings.routes.get(now or "")
    return state.call_tokens if moved or rerouted else 0


def _in_system(placement: Placement, guidance: str) -> str:
    return guidance if placement == "system" else ""
