"""What a monitor may say before one call: gates, the E2 that may speak with it, the record of it (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import gates, render
from ..exceptions import Unavailable
from ..requests import Flow
from ..types import Evaluation, FSMState, GateDecision, Injected, Injection, Settings, StepInput, TraceState, evolve
from ._judge import Judged
from ._retrieve import retrieve


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What the gates let a monitor say. `failed`: the store was asked for an E2 and could not answer."""

    gate: GateDecision
    injection: Injection | None = None
    failed: bool = False


def speak(state: TraceState, judged: Judged, given: StepInput, settings: Settings) -> Flow[Speech]:
    """A monitor's text, if cap, cooldown and duplicates allow it (section 4)."""
    evaluation = judged.evaluation
    closed = gates.may_inject(state, judged.now, evaluation)
    if closed is not None or evaluation is None:
        return Speech(gate=closed or "unavailable")
    text = evaluation.intervention_text or ""
    pattern_ids: tuple[str, ...] = (evaluation.pattern_id,) if evaluation.pattern_id else ()
    failed = False
    if _wants_lesson(state, judged, evaluation, settings):
        try:
            lesson = yield from _lesson_for(state, judged, evaluation, given.default_model, settings)
        except Unavailable:
            lesson, failed = None, True
        if lesson is not None:
            text, pattern_ids = lesson
    injection = render.monitor_injection(text, pattern_ids)
    if injection is None:
        return Speech(gate="quiet", failed=failed)
    if gates.is_duplicate(state, injection.text):
        return Speech(gate="duplicate", failed=failed)
    return Speech(gate="inject", injection=injection, failed=failed)


def _wants_lesson(state: TraceState, judged: Judged, evaluation: Evaluation, settings: Settings) -> bool:
    return (
        settings.e_traces_enabled
        and judged.now is not FSMState.FAST
        and evaluation.intervention_source != "e2"
        and gates.first_of_type(state, evaluation.failure_type)
    )


def _lesson_for(
    state: TraceState, judged: Judged, evaluation: Evaluation, model: str, settings: Settings
) -> Flow[tuple[str, tuple[str, ...]] | None]:
    """The evidence sentence with an E2's intervention, for the first injection of a failure type."""
    found = yield from retrieve("e2", state, evaluation.failure_type, model, settings, top_k=1)
    if not found:
        return None
    text = render.steered_text(gates.first_sentence(evaluation.intervention_text or ""), found[0])
    return (text, (found[0].pattern.id,)) if text else None


def spoken(state: TraceState, judged: Judged, speech: Speech, settings: Settings) -> TraceState:
    """The state after a monitor's injection: what the next gates and rungs look at."""
    if speech.injection is None or judged.evaluation is None:
        return state
    said = Injected(step=state.calls, monitor=_speaker(judged.evaluation, settings))
    kinds = state.injected_types
    if judged.evaluation.failure_type and judged.evaluation.failure_type not in kinds:
        kinds = (*kinds, judged.evaluation.failure_type)
    return evolve(
        state,
        injected=(*state.injected, said),
        injected_text=gates.text_key(speech.injection.text),
        injected_types=kinds,
    )


def _speaker(evaluation: Evaluation, settings: Settings) -> str:
    """The monitor that a text speaks for; an evaluator that does not say meant the one that weighs most."""
    if evaluation.monitor:
        return evaluation.monitor
    names: Sequence[str] = evaluation.fired or sorted(evaluation.scores)
    if not names:
        return evaluation.failure_type or ""
    return max(names, key=lambda name: settings.weights.get(name, 0.0) * evaluation.scores.get(name, 0.0))
