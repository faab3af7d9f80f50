"""Selects and orders the patterns of a search, the same in every store, and converts cosines to similarities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ..exceptions import ConfigError
from ..requests import Retrieve
from ..types import ETrace, Pattern, Tier

HELPFUL_AFTER = 5
"""Injections with a known result from which on a pattern is judged by them."""
HELPFUL = 0.25
"""Share of these injections that recovery must follow; a pattern below it comes after all others."""


def visible(pattern: Pattern, request: Retrieve) -> bool:
    """Return True if the search may return the pattern: its tier, org, failure type and kind match; not off.

    A pattern without an org matches any, except in tier e1; one without a failure type matches any. A search without a
    failure type never returns a pattern with `requires_signal`, and one without a kind returns those of all kinds.
    """
    if pattern.off or pattern.tier != request.tier:
        return False
    if request.kind is not None and not fits(pattern, request.kind):
        return False
    if pattern.org_id != request.org_id and (pattern.org_id is not None or request.tier == "e1"):
        return False
    if request.failure_type is None:
        return not pattern.requires_signal
    return pattern.failure_type in (None, request.failure_type)


def fits(pattern: Pattern, kind: str | None) -> bool:
    """Return True if the pattern may go with a finding of this kind; None is a finding of unknown kind."""
    return not pattern.kinds or kind in pattern.kinds


def gate(pattern: Pattern, similarity: float) -> float:
    """Return the pattern's own threshold, or else that of its tier."""
    return similarity if pattern.gate_threshold is None else pattern.gate_threshold


def helps(pattern: Pattern) -> bool:
    """Return False if the pattern was injected often enough and recovery rarely followed."""
    return helpful(pattern.stats)


def helpful(stats: Mapping[str, int]) -> bool:
    """Return False if these counts are high enough and recovery is rare among them."""
    recovered, not_recovered = stats.get("recovered", 0), stats.get("not_recovered", 0)
    judged = recovered + not_recovered
    return judged < HELPFUL_AFTER or recovered >= HELPFUL * judged


def best(found: Iterable[ETrace], request: Retrieve) -> tuple[ETrace, ...]:
    """Return the found patterns that pass their gate, at most `top_k`, in the order of `place`."""
    near = [trace for trace in found if trace.similarity >= gate(trace.pattern, request.similarity)]
    return tuple(sorted(near, key=place)[: request.top_k])


def place(trace: ETrace) -> tuple[bool, float, str]:
    """Return the sort key of a found pattern: helpful ones first, then by similarity, ties by id."""
    return not helps(trace.pattern), -trace.similarity, trace.pattern.id


def standing(patterns: Iterable[Pattern], request: Retrieve) -> tuple[ETrace, ...]:
    """Return the visible patterns, at most `top_k`, helpful ones first and then by id: tier e3 is not searched."""
    shown = sorted(
        (pattern for pattern in patterns if visible(pattern, request)),
        key=lambda pattern: (not helps(pattern), pattern.id),
    )
    return tuple(ETrace(pattern=pattern) for pattern in shown[: request.top_k])


DECIMALS = 4
"""Decimals of a similarity: the last bits of a cosine differ between machines."""
STEP = 1e-4
"""The smallest difference between two similarities, as rounded."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A monotone map from the cosine of two vectors to a similarity in [0, 1], linear between its points.

    `points` are (cosine, similarity). Cosines rise and similarities never fall. A cosine outside of them has the first
    or the last similarity. Raises `ConfigError` for other points.
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        steps = list(pairwise(self.points))
        rising = all(low < high and below <= above for (low, below), (high, above) in steps)
        if not steps or not rising or not all(0 <= similarity <= 1 for _, similarity in self.points):
            rule = "at least two (cosine, similarity), cosines rising, similarities in [0, 1] and never falling"
            raise ConfigError("Curve.points", self.points, rule)

    def __call__(self, cosine: float) -> float:
        """Return the similarity, rounded to four decimals."""
        if cosine <= self.points[0][0]:
            return round(self.points[0][1], DECIMALS)
        for (low, below), (high, above) in pairwise(self.points):
            if cosine <= high:
                return round(below + (cosine - low) * (above - below) / (high - low), DECIMALS)
        return round(self.points[-1][1], DECIMALS)

    def reach(self, similarity: float) -> float:
        """Return a cosine below which every similarity is lower than this one: the highest, except for rounding.

        -inf if every cosine is similar enough, inf if none is. Stores use it to skip vectors.
        """
        wanted = similarity - STEP
        if wanted <= self.points[0][1]:
            return -math.inf
        for (low, below), (high, above) in pairwise(self.points):
            if wanted <= above:
                return low + (wanted - below) * (high - low) / (above - below)
        return math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityCurves:
    """The curves of one embedder: `e1` for queries of 3 steps' thoughts, `e2` for queries of 5 steps'.

    They are fitted so that of unrelated queries against 400 patterns, at most 5 % reach 0.7 with any pattern, and at
    most 1 % reach 0.8.
    """

    e1: Curve
    e2: Curve

    def of(self, tier: Tier) -> Curve:
        return self.e1 if tier == "e1" else self.e2
