"""Retrieves lessons for one call: selects the tiers to search and records each tier's progress (section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..exceptions import Unavailable
from ..patterns import fits, gate, place
from ..render import guidance as render
from ..requests import Flow, Retrieve, ask
from ..types import ETrace, FSMState, Injection, Settings, Step, Tier, TierUse, TraceState
from . import gates
from ._assess import Assessment


def retrieve(
    tier: Tier,
    state: TraceState,
    failure_type: str | None,
    model: str,
    settings: Settings,
    step: Step | None = None,
    top_k: int | None = None,
    kind: str | None = None,
    beside_finding: bool = False,
) -> Flow[tuple[ETrace, ...]]:
    """Return the patterns for the newest steps: of this tier and org, similar enough, not shown yet, best first.

    Patterns that rarely helped are last, and those for other kinds of findings than `kind` are left out. If it is None,
    those for any kind are left out `beside_finding`, and none otherwise. `step` is the newest step, whose words the
    scorer has already split.
    """
    rule = gates.TIER_RULES[tier]
    texts = tuple([record.text for record in state.steps[-rule.steps :]]) if rule.steps else ()
    limit = top_k or rule.top_k
    request = Retrieve(
        tier=tier,
        texts=texts,
        top_k=limit,
        similarity=rule.similarity,
        org_id=settings.org_id,
        failure_type=failure_type,
        model=model,
        kind=kind,
        words=step.scored_words if step is not None and texts and step.scored_text == texts[-1] else None,
    )
    answer = yield from ask(request)
    anything = kind is None and not beside_finding
    usable = [
        trace
        for trace in answer
        if trace.pattern.tier == tier
        and trace.pattern.org_id in ((settings.org_id,) if tier == "e1" else (None, settings.org_id))
        and trace.pattern.id not in state.patterns_shown
        and (anything or fits(trace.pattern, kind))  # again: a store of the caller's may not know kinds
        and (tier == "e3" or trace.similarity >= gate(trace.pattern, rule.similarity))
    ]
    if tier != "e3":
        usable.sort(key=place)
    return tuple(usable[:limit])


def ids_of(found: Iterable[ETrace]) -> tuple[str, ...]:
    """Return the patterns' ids, in their order."""
    return tuple([trace.pattern.id for trace in found])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """The tiers' injections for one call, and each tier's progress."""

    e1: TierUse
    e2: TierUse
    e3: TierUse
    injections: tuple[Injection, ...] = ()
    warnings: tuple[str, ...] = ()
    failed: bool = False
    """The store could not answer for one of the tiers."""
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Ids of the found patterns, by searched tier; None if the store could not answer."""


def lessons_for(
    state: TraceState, assessment: Assessment, model: str, settings: Settings, *, e1_open: bool
) -> Flow[Lessons]:
    """Return the lessons of E1 and E2 by similarity, and of E3 if its request failed so far (section 5)."""
    lessons = Lessons(e1=state.e1, e2=state.e2, e3=state.e3)
    if not settings.e_traces_enabled or assessment.fsm_state is FSMState.FAST:
        return lessons
    evaluation, call = assessment.evaluation, state.steps_begun
    if e1_open and gates.may_ask(state.e1, call):
        lessons = yield from _similar("e1", state, lessons, assessment, model, settings)
    if gates.may_ask(state.e2, call) and (
        not settings.e2_requires_signal or gates.e2_signalled(assessment.fsm_state, evaluation)
    ):
        lessons = yield from _similar("e2", state, lessons, assessment, model, settings)
    if gates.may_ask(state.e3, call):
        lessons = yield from standing_rules(state, lessons, model, settings)
    return lessons


def _similar(
    tier: Tier, state: TraceState, lessons: Lessons, assessment: Assessment, model: str, settings: Settings
) -> Flow[Lessons]:
    use = lessons.e1 if tier == "e1" else lessons.e2
    step, evaluation = assessment.step, assessment.evaluation if tier == "e2" else None
    beside = evaluation is not None and evaluation.inject
    failure_type = evaluation.failure_type if evaluation is not None and beside else None
    kind = evaluation.kind if evaluation else None
    failed = False
    found: tuple[ETrace, ...] = ()
    try:
        found = yield from retrieve(tier, state, failure_type, model, settings, step, kind=kind, beside_finding=beside)
    except Unavailable:  # fail open: an empty answer that is tried again
        failed = True
    use = gates.after_answer(use, state.steps_begun, got_any=bool(found))
    injections, warnings = render.tier_injections(tier, found, model)
    return replace(
        lessons,
        injections=lessons.injections + injections,
        e1=use if tier == "e1" else lessons.e1,
        e2=use if tier == "e2" else lessons.e2,
        warnings=lessons.warnings + warnings,
        failed=lessons.failed or failed,
        retrieved={**lessons.retrieved, tier: None if failed else ids_of(found)},
    )


def standing_rules(state: TraceState, lessons: Lessons, model: str, settings: Settings) -> Flow[Lessons]:
    """Add E3, all of it at once. Any answer uses it up; a failed request is tried again on the following steps."""
    try:
        found = yield from retrieve("e3", state, None, model, settings)
    except Unavailable:
        counted = {**lessons.retrieved, "e3": None}
        return replace(lessons, e3=gates.after_failure(lessons.e3), failed=True, retrieved=counted)
    injections, warnings = render.tier_injections("e3", found, model)
    return replace(
        lessons,
        injections=lessons.injections + injections,
        e3=TierUse(asked=lessons.e3.asked + 1, used=True),
        warnings=lessons.warnings + warnings,
        retrieved={**lessons.retrieved, "e3": ids_of(found)},
    )


def record_tiers(state: TraceState, lessons: Lessons) -> TraceState:
    """Return the state after the tiers were searched."""
    if lessons.e1 is state.e1 and lessons.e2 is state.e2 and lessons.e3 is state.e3:
        return state  # none was searched
    return replace(state, e1=lessons.e1, e2=lessons.e2, e3=lessons.e3)


def with_shown_patterns(state: TraceState, injections: Sequence[Injection]) -> TraceState:
    """Return the state with the patterns of these injections marked as shown."""
    if not injections:
        return state
    ids = [pattern_id for injection in injections for pattern_id in injection.pattern_ids]
    new = [pattern_id for pattern_id in dict.fromkeys(ids) if pattern_id not in state.patterns_shown]
    return replace(state, patterns_shown=(*state.patterns_shown, *new)) if new else state
