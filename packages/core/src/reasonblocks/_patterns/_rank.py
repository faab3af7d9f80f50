"""Which patterns a search may see, which of them pass, and in what order: the same in every store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from .._requests import Retrieve
from ..exceptions import ConfigError
from ..types import ETrace, Pattern, Tier

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


DECIMALS = 4
"""Of a similarity: the last bits of a cosine differ between machines."""
STEP = 1e-4


@dataclass(frozen=True, slots=True)
class Curve:
    """A monotone map from the cosine of two vectors to a similarity in [0, 1], straight between its points.

    `points` are (cosine, similarity), rising in both; outside of them the first and the last similarity hold.
    Raises `ConfigError` for points that are not.
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        steps = list(pairwise(self.points))
        rising = all(low < high and below <= above for (low, below), (high, above) in steps)
        if not steps or not rising or not all(0 <= similarity <= 1 for _, similarity in self.points):
            rule = "at least two (cosine, similarity), cosines rising, similarities in [0, 1] and never falling"
            raise ConfigError("Curve.points", self.points, rule)

    def __call__(self, cosine: float) -> float:
        """The similarity, rounded to four decimals."""
        if cosine <= self.points[0][0]:
            return round(self.points[0][1], DECIMALS)
        for (low, below), (high, above) in pairwise(self.points):
            if cosine <= high:
                return round(below + (cosine - low) * (above - below) / (high - low), DECIMALS)
        return round(self.points[-1][1], DECIMALS)

    def reach(self, similarity: float) -> float:
        """A cosine below which nothing is worth that much, as near to the least that is as rounding allows.

        -inf where every cosine is, inf where none.
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
    """What a cosine is worth, by kind of text: `e1` for the thoughts of 3 steps, `e2` for those of 5.

    Fitted per embedder, so that of unrelated queries against 400 patterns at most 5 % reach 0.7 with any of them, and
    at most 1 % reach 0.8.
    """

    e1: Curve
    e2: Curve

    def of(self, tier: Tier) -> Curve:
        return self.e1 if tier == "e1" else self.e2
