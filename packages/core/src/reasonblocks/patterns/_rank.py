"""Which patterns a search may see, which of them pass, and in what order: the same in every store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..requests import Retrieve
from ..types import ETrace, Pattern

HELPFUL_AFTER = 5
"""Injections of a pattern after which what followed them counts."""
HELPFUL = 0.25
"""The share of them that has to be followed by recovery: a pattern below it loses its place."""


def visible(pattern: Pattern, request: Retrieve) -> bool:
    """Of the asked tier; of the asked org or, but for tier e1, of no org; of the asked failure type, or of none.

    Without a failure type that is asked for, none that waits for one.
    """
    if pattern.off or pattern.tier != request.tier:
        return False
    if pattern.org_id != request.org_id and (pattern.org_id is not None or request.tier == "e1"):
        return False
    if request.failure_type is None:
        return not pattern.requires_signal
    return pattern.failure_type in (None, request.failure_type)


def gate(pattern: Pattern, similarity: float) -> float:
    """A pattern's own threshold goes before that of its tier."""
    return similarity if pattern.gate_threshold is None else pattern.gate_threshold


def helps(pattern: Pattern) -> bool:
    """False once it was injected often enough and rarely followed by recovery."""
    return helpful(pattern.stats)


def helpful(stats: Mapping[str, int]) -> bool:
    """The same of its counts."""
    recovered, not_recovered = stats.get("recovered", 0), stats.get("not_recovered", 0)
    judged = recovered + not_recovered
    return judged < HELPFUL_AFTER or recovered >= HELPFUL * judged


def best(found: Iterable[ETrace], request: Retrieve) -> tuple[ETrace, ...]:
    """Those that pass, best first, ties by id, at most `top_k`; patterns that do not help come after all others."""
    near = [trace for trace in found if trace.similarity >= gate(trace.pattern, request.similarity)]
    return tuple(sorted(near, key=place)[: request.top_k])


def place(trace: ETrace) -> tuple[bool, float, str]:
    """What found patterns are sorted by."""
    return not helps(trace.pattern), -trace.similarity, trace.pattern.id


def standing(patterns: Iterable[Pattern], request: Retrieve) -> tuple[ETrace, ...]:
    """Tier e3 is not searched: all that the request may see, in the order of their ids."""
    seen = sorted((one for one in patterns if visible(one, request)), key=lambda one: (not helps(one), one.id))
    return tuple(ETrace(pattern=one) for one in seen[: request.top_k])
