"""What a monitor may say before one call: gates, the E2 that may speak with it, the record of it (section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import _gates as gates
from .. import _render as render
from .._json import evolve
from .._requests import Flow, Say, ask
from ..exceptions import Unavailable
from ..types import Doubt, Evaluation, FSMState, GateDecision, Injected, Injection, Settings, Step, TraceState
from ._judge import Judged
from ._lessons import ids_of, retrieve


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What the gates let a monitor say. `failed`: the store was asked for an E2 and could not answer.

    `retrieved` has the ids that came, None where it could not, and is empty where it was not asked. `notes`: the E2
    that it found lacks what would have been said.
    """

    gate: GateDecision
    injection: Injection | None = None
    failed: bool = False
    notes: tuple[str, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """What would be said: the monitor's own text, or its evidence with an E2's intervention."""

    text: str
    pattern_ids: tuple[str, ...] = ()
    failed: bool = False
    notes: tuple[str, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)


def speak(state: TraceState, judged: Judged, model: str, settings: Settings) -> Flow[Speech]:
    """A monitor's text, if cap, cooldown and duplicates allow it (section 4)."""
    evaluation = judged.evaluation
    closed = gates.may_inject(state, judged.now, evaluation)
    if closed is not None or evaluation is None:
        return Speech(gate=closed or "unavailable")
    said = _own(evaluation)
    words = yield from _words(state, judged, evaluation)
    said = evolve(said, text=words) if words else said
    if _wants_lesson(state, judged, evaluation, settings):
        said = yield from _with_lesson(state, judged.step, evaluation, said, model, settings)
    injection = render.monitor_injection(said.text, said.pattern_ids)
    gate: GateDecision = "inject"
    if injection is None:
        gate = "quiet"
    elif gates.is_duplicate(state, injection.text):
        gate, injection = "duplicate", None
    return Speech(gate=gate, injection=injection, failed=said.failed, notes=said.notes, retrieved=said.retrieved)


def _own(evaluation: Evaluation) -> _Text:
    ids = (evaluation.pattern_id,) if evaluation.pattern_id else ()
    return _Text(text=evaluation.intervention_text or "", pattern_ids=ids)


def doubts_of(judged: Judged) -> tuple[Doubt, ...]:
    """Return the last step's doubts: each monitor's evidence sentence, without its advice, which would be too late."""
    found = judged.evaluation.doubts if judged.evaluation else ()
    said = [(one.monitor, render.monitor_injection(gates.first_sentence(one.text))) for one in found]
    return tuple([Doubt(monitor=monitor, text=shown.text) for monitor, shown in said if shown])


def _words(state: TraceState, judged: Judged, evaluation: Evaluation) -> Flow[str | None]:
    """Ask the speaking monitor for its own text, if it is one of the caller's."""
    speaker = evaluation.monitor
    found = [evidence for name, _, _, evidence in judged.observed if name == speaker]
    if speaker is None or not found or evaluation.intervention_source == "e2":
        return None
    rung = 1 + sum(one.monitor == speaker for one in state.injected)
    return (yield from ask(Say(monitor=speaker, evidence=found[0] or (state.steps_begun - 1,), rung=rung)))


def _wants_lesson(state: TraceState, judged: Judged, evaluation: Evaluation, settings: Settings) -> bool:
    return (
        settings.e_traces_enabled
        and judged.now is not FSMState.FAST
        and evaluation.intervention_source != "e2"
        and gates.first_of_type(state, evaluation.failure_type)
    )


def _with_lesson(
    state: TraceState, step: Step, evaluation: Evaluation, own: _Text, model: str, settings: Settings
) -> Flow[_Text]:
    """The evidence sentence with an E2's intervention, for the first injection of a failure type."""
    try:
        found = yield from retrieve("e2", state, evaluation.failure_type, model, settings, step, top_k=1)
    except Unavailable:
        return evolve(own, failed=True, retrieved={"monitor": None})
    own = evolve(own, retrieved={"monitor": ids_of(found)})
    if not found:
        return own
    pattern = found[0].pattern
    text = render.steered_text(gates.first_sentence(own.text), found[0])
    if text is None:
        return evolve(own, notes=render.lacking([pattern.id]))
    return evolve(own, text=text, pattern_ids=(pattern.id,))


def spoken(state: TraceState, judged: Judged, speech: Speech, settings: Settings) -> TraceState:
    """The state after a monitor's injection: what the next gates and rungs look at."""
    if speech.injection is None or judged.evaluation is None:
        return state
    said = Injected(step=state.steps_begun, monitor=_speaker(judged.evaluation, settings))
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
