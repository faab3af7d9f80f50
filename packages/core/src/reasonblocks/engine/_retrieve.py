"""One request to the pattern store, and what of its answer is usable (section 5)."""

from __future__ import annotations

from collections.abc import Iterable

from .. import gates
from ..patterns import gate, place
from ..requests import Flow, Retrieve, ask
from ..types import ETrace, Settings, Step, Tier, TraceState


def retrieve(
    tier: Tier,
    state: TraceState,
    failure_type: str | None,
    model: str,
    settings: Settings,
    step: Step | None = None,
    top_k: int | None = None,
) -> Flow[tuple[ETrace, ...]]:
    """What a store has for the newest steps: the right tier and org, similar enough, not shown yet, best first.

    A lesson that rarely helped comes after all others. `step` is the newest of them, whose words the scorer has cut.
    """
    rule = gates.TIERS[tier]
    texts = tuple([record.text for record in state.steps[-rule.steps :]]) if rule.steps else ()
    most = top_k or rule.top_k
    request = Retrieve(
        tier=tier,
        texts=texts,
        top_k=most,
        similarity=rule.similarity,
        org_id=settings.org_id,
        failure_type=failure_type,
        model=model,
        words=step.scored_words if step is not None and texts and step.scored_text == texts[-1] else None,
    )
    answer = yield from ask(request)
    usable = [
        trace
        for trace in answer
        if trace.pattern.tier == tier
        and trace.pattern.org_id in ((settings.org_id,) if tier == "e1" else (None, settings.org_id))
        and trace.pattern.id not in state.patterns_shown
        and (tier == "e3" or trace.similarity >= gate(trace.pattern, rule.similarity))
    ]
    if tier != "e3":
        usable.sort(key=place)
    return tuple(usable[:most])


def ids_of(found: Iterable[ETrace]) -> tuple[str, ...]:
    """The patterns' ids, in their order."""
    return tuple([trace.pattern.id for trace in found])
