"""What the cosine of two texts is worth: the map from an embedder's cosines to the similarity that gates speak of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from ..exceptions import ConfigError
from ..types import Tier

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
