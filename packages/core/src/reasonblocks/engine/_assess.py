"""Assesses one completed step: completes it from the stored answer, scores, advances and evaluates it (section 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..account.observe import observe
from ..exceptions import BadAnswer, Unavailable
from ..monitors import sightings
from ..monitors.patience import after_step
from ..monitors.second_look import follow
from ..requests import Advance, Evaluate, Flow, Observe, Score, ask
from ..types import (
    Account,
    DifficultyParts,
    Evaluation,
    FSMState,
    GateDecision,
    Memories,
    Observed,
    Patience,
    Pending,
    ScoreMemory,
    Settings,
    SkippedReason,
    Step,
    StepDecision,
    StepOutcome,
    StepRecord,
    ToolCall,
    TraceState,
)
from ..types.account import Work
from ..util.json import MAX_INT, canonical, storable_json
from ..util.text import cut_with_hash, preview
from . import gates, scoring

RECORDS_KEPT = 8
"""Completed steps in the trace state; the longest query, whether the run is stalled, needs them all."""
PREVIEW = 120
"""Characters of `thought_preview`."""
TEXT_BYTES, ACTION_BYTES, INPUT_BYTES, OBSERVATION_BYTES = 1_000, 200, 80, 80
"""Limits of a step record, within the contract's 2,000, 500 and 500: the whole trace state stays under 64 KB."""
KEY_BYTES = 200
NOTES_KEPT = 64
"""Ids of told notes that are remembered."""
PENDING_CALLS = 4
CALL_BYTES = 300
PENDING_BYTES = 1_200
"""The limit of each text of a stored answer."""


def with_outcome(
    state: TraceState, outcome: StepOutcome, *, auxiliary: bool, cost_usd: float | None = 0.0
) -> TraceState:
    """Return the state after a call: tokens and cost counted and, unless it was auxiliary, its answer stored."""
    tokens = outcome.usage.total
    total = min(state.total_tokens + (tokens or 0), MAX_INT)
    spent = None if state.cost_usd is None or cost_usd is None else state.cost_usd + cost_usd
    state = replace(state, total_tokens=total, cost_usd=spent)
    if auxiliary:
        return state
    answer = Pending(
        text=cut_with_hash(outcome.text or "", PENDING_BYTES),
        reasoning=cut_with_hash(outcome.reasoning or "", PENDING_BYTES) if not (outcome.text or "").strip() else "",
        tool_calls=tuple(map(_bounded_call, outcome.tool_calls[:PENDING_CALLS])),
    )
    failed = outcome.error is not None
    told = state.notes_told if failed or state.last is None else _with_told(state.notes_told, state.last.note_ids)
    pending = None if failed else answer
    return replace(state, call_tokens=tokens, pending=pending, notes_told=told)


def _with_told(told: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Add the notes of a call that returned an answer."""
    if not new:
        return told
    return (*(note_id for note_id in told if note_id not in new), *new)[-NOTES_KEPT:]


def _bounded_call(call: ToolCall) -> ToolCall:
    """Return the call; arguments that are too long become bounded text."""
    arguments = canonical(call.arguments)
    text = cut_with_hash(arguments, CALL_BYTES)
    return ToolCall(
        id=cut_with_hash(str(call.id), KEY_BYTES),
        name=cut_with_hash(str(call.name), KEY_BYTES),
        arguments=storable_json(text) if text == arguments else text,
    )


def completed_step(state: TraceState, given: Step | None) -> Step:
    """Return the completed step: the given values take precedence, and those of `end_step` replace missing ones.

    A thought or a reasoning shows that the adapter read the answer itself: the step is complete, and nothing is added,
    not even calls. Otherwise both come from `end_step`, and so do the calls if none was given.
    """
    step = given or Step()
    if state.pending is None or step.thought or step.reasoning:
        return step
    stored = state.pending
    return replace(
        step, thought=stored.text, reasoning=stored.reasoning, tool_calls=step.tool_calls or stored.tool_calls
    )


def amended_calls(state: TraceState, given: Step | None) -> tuple[ToolCall, ...]:
    """Return the calls now known for the last answered step; empty if the adapter reports none."""
    return () if given is None or state.pending is None else given.tool_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A completed step with its difficulty, the new state of the run, and the monitors' evaluation."""

    step: Step
    difficulty: float
    parts: DifficultyParts | None
    score_memory: ScoreMemory
    history: tuple[float, ...]
    fsm_state: FSMState
    evaluation: Evaluation | None
    memories: Memories
    account: Account
    patience: Patience
    work: Work = field(default_factory=Work)
    observed: Observed = ()
    """The observations of the caller's own monitors."""


def assess(state: TraceState, completed: Step | None, settings: Settings) -> Flow[Assessment]:
    """Observe, score, advance, evaluate. In END a step is not evaluated. Raises `BadAnswer` for texts that are none."""
    step, index = _checked(completed_step(state, completed)), state.steps_begun - 1
    account = observe(step, state.account, index, settings.tool_roles)
    followed = settings.second_look is not None and account is not state.account  # not the same turn again
    work = follow(state.work, step, settings.tool_roles) if followed else state.work
    told = state.injected[-1].step if state.injected and settings.mode == "steer" else None
    patience = after_step(state.patience, index, told, dead=account.did.dead)
    difficulty, parts, score_memory = yield from _score(state, step, account, settings)
    history = (*state.difficulty_history, difficulty)[-settings.history_limit :]
    fsm_state = yield from _advance(state, history, settings)
    evaluation, memories = None, state.memories
    observed: Observed = ()
    if fsm_state is not FSMState.END:
        if settings.custom_monitors:
            observed = yield from ask(Observe(step=step, index=index, memories=memories))
        seen = sightings.gather(step, index, account, memories.get(sightings.OWN_MEMORY), settings.tool_roles)
        own = {name: memory for name, _, memory, _ in observed} | ({} if seen is None else {sightings.OWN_MEMORY: seen})
        request = _request(state, step, account, patience, {**memories, **own}, observed, settings)
        evaluation, memories = yield from _evaluation(request)
        memories = {**memories, **own}
    return Assessment(
        step=step,
        difficulty=difficulty,
        parts=parts,
        score_memory=score_memory,
        history=history,
        fsm_state=fsm_state,
        evaluation=evaluation,
        memories=memories,
        account=account,
        patience=patience,
        work=work,
        observed=observed,
    )


def _checked(step: Step) -> Step:
    """Check that texts are strings, so that a None from a model's API is reported here and not deep below."""
    texts: list[tuple[str, object]] = [
        ("thought", step.thought),
        ("reasoning", step.reasoning),
        ("user_text", step.user_text),
    ]
    texts += [("tool output", result.output) for result in step.tool_results]
    for name, text in texts:
        if not isinstance(text, str):
            raise BadAnswer(f"the completed step's {name}", text, "must be a string; use '' for no text")
    return step


def _score(
    state: TraceState, step: Step, account: Account, settings: Settings
) -> Flow[tuple[float, DifficultyParts | None, ScoreMemory]]:
    if settings.caller_scorer:
        return (yield from ask(Score(step=step))), None, state.score_memory
    return scoring.score(step, state.score_memory, settings.level, account.did, easy=settings.easy)


def _advance(state: TraceState, history: tuple[float, ...], settings: Settings) -> Flow[FSMState]:
    if state.current_state is FSMState.END:
        return FSMState.END
    if settings.transition is None:
        return (yield from ask(Advance(state=state.current_state, history=history)))
    return settings.transition(state.current_state, history)


def _request(
    state: TraceState,
    step: Step,
    account: Account,
    patience: Patience,
    memories: Memories,
    observed: Observed,
    settings: Settings,
) -> Evaluate:
    return Evaluate(
        step=step,
        index=state.steps_begun - 1,
        memories=memories,
        injected=state.injected,
        task=settings.task,
        profile=settings.task_profile,
        weights=dict(settings.weights),
        account=account,
        patience=patience,
        observed=observed,
        run_id=state.trace_id,
        notes_told=state.notes_told,
        takes_notes=settings.operator_notes,
    )


def _evaluation(request: Evaluate) -> Flow[tuple[Evaluation | None, Memories]]:
    try:
        return (yield from ask(request))
    except Unavailable:  # fail open: this step has no evaluation, the next is judged as usual
        return None, request.memories


def decision_for(
    state: TraceState,
    assessment: Assessment,
    settings: Settings,
    *,
    gate: GateDecision | None,
    skipped: SkippedReason | None,
    key: str | None = None,
) -> StepDecision:
    """Return a decision with the assessment and the gate's answer; it injects nothing yet."""
    evaluation = assessment.evaluation
    return StepDecision(
        step=state.calls,
        key=key,
        fsm_state=assessment.fsm_state,
        difficulty=assessment.difficulty,
        difficulty_parts=assessment.parts,
        thought_preview=preview(assessment.step.scored_text, PREVIEW),
        scores=evaluation.scores if evaluation else {},
        composite=evaluation.composite if evaluation else None,
        monitors_fired=evaluation.fired if evaluation else (),
        failure_type=evaluation.failure_type if evaluation else None,
        finding_kind=evaluation.kind if evaluation else None,
        gate_decision=gate,
        skipped_reason=skipped,
        placement=settings.placement,
        mode=settings.mode,
    )


def record_assessment(state: TraceState, assessment: Assessment) -> TraceState:
    """Return the state with everything that the assessment found; nothing is injected or retrieved yet."""
    evaluation = assessment.evaluation
    fired = evaluation.fired if evaluation else ()
    return replace(
        state,
        current_state=assessment.fsm_state,
        difficulty_history=assessment.history,
        steps=(*state.steps, _record(state, assessment, fired))[-RECORDS_KEPT:],
        score_memory=assessment.score_memory,
        memories=assessment.memories,
        account=assessment.account,
        patience=assessment.patience,
        work=assessment.work,
        evaluated=state.evaluated or evaluation is not None,
        fired_before=(*state.fired_before, bool(fired))[-gates.LOOK_BACK :],
    )


def _record(state: TraceState, assessment: Assessment, fired: tuple[str, ...]) -> StepRecord:
    step = assessment.step
    return StepRecord(
        step=state.steps_begun - 1,
        text=cut_with_hash(step.scored_text, TEXT_BYTES),
        action=cut_with_hash(step.action, ACTION_BYTES),
        action_input=cut_with_hash(step.action_input, INPUT_BYTES),
        observation=cut_with_hash(step.observation, OBSERVATION_BYTES),
        is_error=step.is_error,
        difficulty=assessment.difficulty,
        fired=fired,
    )
