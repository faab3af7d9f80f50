"""What scoring, the state machine and the monitors say of one completed step (BEHAVIOUR section 1, 3 to 5)."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _gates as gates
from .. import _scoring as scoring
from .._json import evolve
from .._requests import Advance, Evaluate, Flow, Observe, Score, ask
from .._text import bounded, preview
from ..exceptions import Unavailable
from ..types import (
    DifficultyParts,
    Evaluation,
    FSMState,
    GateDecision,
    Memories,
    Observed,
    ScoreMemory,
    Settings,
    SkippedReason,
    Step,
    StepDecision,
    StepRecord,
    TraceState,
)

RECORDS_KEPT = 8
"""Completed steps in the trace state; the longest query needs 5."""
PREVIEW = 120
"""Characters of `thought_preview`."""
TEXT_BYTES, ACTION_BYTES, INPUT_BYTES, OBSERVATION_BYTES = 1_200, 200, 500, 500
"""Of a step record, within the contract's 2,000, 500 and 500: the whole trace state stays under 64 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is known of one completed step before anything is said about it."""

    step: Step
    difficulty: float
    parts: DifficultyParts | None
    score_memory: ScoreMemory
    history: tuple[float, ...]
    now: FSMState
    evaluation: Evaluation | None
    memories: Memories
    observed: Observed = ()
    """The observations of the caller's own monitors."""


def judge(state: TraceState, step: Step, settings: Settings) -> Flow[Judged]:
    """Score, advance, evaluate. In END a step is scored and nothing else."""
    difficulty, parts, score_memory = yield from _score(state, step, settings)
    history = (*state.difficulty_history, difficulty)[-settings.history_limit :]
    now = yield from _advance(state, history, settings)
    evaluation, memories = None, state.memories
    observed: Observed = ()
    if now is not FSMState.END:
        if settings.custom_monitors:
            observed = yield from ask(Observe(step=step, index=state.steps_begun - 1, memories=memories))
        evaluation, memories = yield from _evaluate(state, step, observed, settings)
    return Judged(
        step=step,
        difficulty=difficulty,
        parts=parts,
        score_memory=score_memory,
        history=history,
        now=now,
        evaluation=evaluation,
        memories=memories,
        observed=observed,
    )


def _score(
    state: TraceState, step: Step, settings: Settings
) -> Flow[tuple[float, DifficultyParts | None, ScoreMemory]]:
    if settings.caller_scorer:
        return (yield from ask(Score(step=step))), None, state.score_memory
    return scoring.score(step, state.score_memory, settings.level)


def _advance(state: TraceState, history: tuple[float, ...], settings: Settings) -> Flow[FSMState]:
    if state.current_state is FSMState.END:
        return FSMState.END
    if settings.transition is None:
        return (yield from ask(Advance(state=state.current_state, history=history)))
    return settings.transition(state.current_state, history)


def _evaluate(
    state: TraceState, step: Step, observed: Observed, settings: Settings
) -> Flow[tuple[Evaluation | None, Memories]]:
    request = Evaluate(
        step=step,
        index=state.steps_begun - 1,
        memories=state.memories,
        injected=state.injected,
        task=settings.task,
        profile=settings.task_profile,
        weights=dict(settings.weights),
        observed=observed,
    )
    try:
        return (yield from ask(request))
    except Unavailable:  # fail open: this step has no evaluation, the next is judged as usual
        return None, state.memories


def judgement(
    state: TraceState,
    judged: Judged,
    settings: Settings,
    *,
    gate: GateDecision | None,
    skipped: SkippedReason | None,
    route: str | None = None,
) -> StepDecision:
    """A decision that says what was judged, and what the gates made of it; nothing is injected yet."""
    evaluation = judged.evaluation
    return StepDecision(
        step=state.calls,
        fsm_state=judged.now,
        difficulty=judged.difficulty,
        difficulty_parts=judged.parts,
        thought_preview=preview(judged.step.scored_text, PREVIEW),
        scores=evaluation.scores if evaluation else {},
        composite=evaluation.composite if evaluation else None,
        monitors_fired=evaluation.fired if evaluation else (),
        failure_type=evaluation.failure_type if evaluation else None,
        gate_decision=gate,
        skipped_reason=skipped,
        route=route,
        placement=settings.placement,
    )


def after(state: TraceState, judged: Judged) -> TraceState:
    """The state after judging: everything but what was said and what was retrieved."""
    evaluation, step = judged.evaluation, judged.step
    record = _record(state, step, judged.difficulty, evaluation.fired if evaluation else ())
    return evolve(
        state,
        current_state=judged.now,
        difficulty_history=judged.history,
        steps=(*state.steps, record)[-RECORDS_KEPT:],
        score_memory=judged.score_memory,
        memories=judged.memories,
        evaluated=state.evaluated or evaluation is not None,
        fired_before=(*state.fired_before, bool(evaluation and evaluation.fired))[-gates.LOOK_BACK :],
    )


def _record(state: TraceState, step: Step, difficulty: float | None, fired: tuple[str, ...]) -> StepRecord:
    return StepRecord(
        step=state.steps_begun - 1,
        text=bounded(step.scored_text, TEXT_BYTES),
        action=bounded(step.action, ACTION_BYTES),
        action_input=bounded(step.action_input, INPUT_BYTES),
        observation=bounded(step.observation, OBSERVATION_BYTES),
        is_error=step.is_error,
        difficulty=difficulty,
        fired=fired,
    )
