"""Decides whether a monitor's text is injected before a call, and makes that text (section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..exceptions import Unavailable
from ..monitors.excerpts import literal
from ..monitors.hints.replies import ANSWERED
from ..monitors.kinds import TYPES
from ..monitors.suite import LETTERS
from ..render import guidance as render
from ..requests import Advise, Advised, Flow, Say, ask
from ..types import (
    Doubt,
    Evaluation,
    FSMState,
    GateDecision,
    Injected,
    Injection,
    Settings,
    Source,
    StepDecision,
    TraceState,
)
from . import gates
from ._assess import Assessment
from ._lessons import ids_of, retrieve, with_shown_patterns
from .control import review_injection

MOST_ADVICE = 5
"""The most questions to an advisor in one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """The gate's answer and, if it is "inject", the monitor's injection."""

    gate: GateDecision
    text: str = ""
    """The monitor's own text, or its evidence with an E2's intervention."""
    hint: str = ""
    """The part of the text at its end that is a way on: the monitor's, an advisor's, or both."""
    pattern_ids: tuple[str, ...] = ()
    injection: Injection | None = None
    failed: bool = False
    """True if the store was searched for an E2 and could not answer."""
    warnings: tuple[str, ...] = ()
    """The E2 that was found lacks an intervention."""
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Ids of the E2 that was found; None if the store could not answer, empty if it was not searched."""
    dropped: tuple[Source, ...] = ()
    """The text's source, if the caller's `on_injection` dropped it."""
    advised: Advised | None = None
    """The advisor's answer, None if it was not asked."""


def speak(
    state: TraceState, assessment: Assessment, so_far: StepDecision, model: str, settings: Settings
) -> Flow[Speech]:
    """Return the speaking monitor's injection, if cap, cooldown, duplicates and the user allow it.

    `so_far` is the decision without what is injected.
    """
    evaluation = assessment.evaluation
    closed = gates.may_inject(state, assessment.fsm_state, evaluation)
    if closed is not None or evaluation is None:
        return Speech(gate=closed or "unavailable")
    own_text = yield from _own_text(state, assessment, evaluation)
    speech = Speech(
        gate="inject",
        text=own_text or evaluation.intervention_text or "",
        hint=evaluation.hint,
        pattern_ids=(evaluation.pattern_id,) if evaluation.pattern_id else (),
    )
    if own_text is None and _wants_advice(state, assessment, evaluation, settings):
        speech = yield from _with_advice(assessment, evaluation, speech)
    if _wants_lesson(state, assessment, evaluation, settings):
        speech = yield from _with_lesson(state, assessment, evaluation, speech, model, settings)
    if evaluation.monitor in LETTERS and not _has_way_on(speech, evaluation) and gates.is_known(state):
        return replace(speech, gate="duplicate")
    injection = render.monitor_injection(speech.text, speech.pattern_ids)
    if injection is None:
        return replace(speech, gate="quiet")
    told = yield from review_injection(injection, state, so_far, settings)
    if told is None:
        return replace(speech, gate="quiet", dropped=(injection.source,))
    if gates.is_duplicate(state, told.text):
        return replace(speech, gate="duplicate")
    return replace(speech, injection=told)


def _has_way_on(speech: Speech, evaluation: Evaluation) -> bool:
    """Return True if a text is more than what the agent did: a hint, a lesson or advice."""
    return speech.text != evaluation.fact and (speech.hint != ANSWERED or bool(speech.pattern_ids))


def doubts_of(assessment: Assessment) -> tuple[Doubt, ...]:
    """Return the last step's doubts: each monitor's evidence sentence, without its advice, which would be too late."""
    doubts = assessment.evaluation.doubts if assessment.evaluation else ()
    rendered = [(doubt.monitor, render.monitor_injection(gates.first_sentence(doubt.text))) for doubt in doubts]
    return tuple([Doubt(monitor=monitor, text=injection.text) for monitor, injection in rendered if injection])


def _own_text(state: TraceState, assessment: Assessment, evaluation: Evaluation) -> Flow[str | None]:
    """Ask the speaking monitor for its own text, if it is one of the caller's."""
    speaker = evaluation.monitor
    found = [evidence for name, _, _, evidence in assessment.observed if name == speaker]
    if speaker is None or not found or evaluation.intervention_source == "e2":
        return None
    rung = 1 + sum(injected.monitor == speaker for injected in state.injected)
    return (yield from ask(Say(monitor=speaker, evidence=found[0] or (state.steps_begun - 1,), rung=rung)))


def _wants_lesson(state: TraceState, assessment: Assessment, evaluation: Evaluation, settings: Settings) -> bool:
    return (
        settings.e_traces_enabled
        and assessment.fsm_state is not FSMState.FAST
        and evaluation.intervention_source != "e2"
        and gates.first_of_type(state, _failure_type(evaluation))
    )


def _with_lesson(
    state: TraceState, assessment: Assessment, evaluation: Evaluation, speech: Speech, model: str, settings: Settings
) -> Flow[Speech]:
    """Join the fact and an E2's intervention, for the first injection of a failure type. The hint stays at the end.

    A lesson that is tied to kinds of findings is only joined to one that is known to be of such a kind.
    """
    asked, kind = _failure_type(evaluation), evaluation.kind
    try:
        found = yield from retrieve(
            "e2", state, asked, model, settings, assessment.step, top_k=1, kind=kind, beside_finding=True
        )
    except Unavailable:
        return replace(speech, failed=True, retrieved={"monitor": None})
    speech = replace(speech, retrieved={"monitor": ids_of(found)})
    if not found:
        return speech
    pattern = found[0].pattern
    if render.gives_way(pattern, speech.hint):
        return speech
    text = render.steered_text(_fact_of(evaluation, speech.text), speech.hint, found[0])
    if text is None:
        return replace(speech, warnings=(render.lacking(pattern.id, ["intervention"]),))
    return replace(speech, text=text, pattern_ids=(pattern.id,))


def _wants_advice(state: TraceState, assessment: Assessment, evaluation: Evaluation, settings: Settings) -> bool:
    """Return True if an advisor is to be asked: not about a lesson, and not again within the cooldown."""
    if not settings.advisor or state.advised >= MOST_ADVICE or evaluation.intervention_source == "e2":
        return False
    return not state.advised or state.steps_begun - state.advised_at >= gates.COOLDOWN[assessment.fsm_state]


def _with_advice(assessment: Assessment, evaluation: Evaluation, speech: Speech) -> Flow[Speech]:
    """Say the advisor's answer, if it gives one, at the end of the text."""
    fact = _fact_of(evaluation, speech.text)
    advised = yield from ask(Advise(step=assessment.step, fact=fact, hint=evaluation.hint, text=speech.text))
    if not advised.text:
        return replace(speech, advised=advised)
    said = f"{render.ADVISOR} {literal(advised.text)}"
    return replace(speech, text=f"{speech.text} {said}", hint=f"{speech.hint} {said}".strip(), advised=advised)


def _fact_of(evaluation: Evaluation, text: str) -> str:
    """Return the fact in a text; its first sentence if the evaluator tells none, as one of a caller's."""
    return evaluation.fact if evaluation.fact and text.startswith(evaluation.fact) else gates.first_sentence(text)


def record_injection(state: TraceState, assessment: Assessment, speech: Speech, settings: Settings) -> TraceState:
    """Return the state with a monitor's injection, which the next gates and rungs depend on."""
    evaluation = assessment.evaluation
    if speech.advised is not None:
        state = replace(state, advised=state.advised + 1, advised_at=state.steps_begun)
    if speech.injection is None or evaluation is None:
        return state
    return with_injected(state, speech.injection, _speaker(evaluation, settings), _failure_type(evaluation))


def with_injected(state: TraceState, injection: Injection, monitor: str, failure_type: str | None) -> TraceState:
    """Return the state with this monitor's injection, which is about a failure of this type."""
    types = state.injected_types
    if failure_type and failure_type not in types:
        types = (*types, failure_type)
    return replace(
        with_shown_patterns(state, [injection]),
        injected=(*state.injected, Injected(step=state.steps_begun, monitor=monitor)),
        injected_text=gates.text_key(injection.text),
        injected_types=types,
    )


def _failure_type(evaluation: Evaluation) -> str | None:
    """Return that of the finding that is told, which may not be the worst one; if its kind is unknown, the worst's."""
    return TYPES.get(evaluation.kind or "", evaluation.failure_type)


def _speaker(evaluation: Evaluation, settings: Settings) -> str:
    """Return the monitor whose text is injected; if the evaluator names none, the one that weighs most."""
    if evaluation.monitor:
        return evaluation.monitor
    names: Sequence[str] = evaluation.fired or sorted(evaluation.scores)
    if not names:
        return evaluation.failure_type or ""
    return max(names, key=lambda name: settings.weights.get(name, 0.0) * evaluation.scores.get(name, 0.0))
