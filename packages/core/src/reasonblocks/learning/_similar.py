"""How alike two texts are, as a live search would say it; each text is embedded once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul

from ..ports import Embedder
from ..types import Tier

__all__ = ["Similar"]

Vector = tuple[float, ...]


class Similar:
    """Calibrated similarity by one embedder."""

    __slots__ = ("_embedder", "_vectors")

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}

    def of(self, tier: Tier, one: str, others: Iterable[str]) -> float:
        """The similarity of a text and the nearest of others; 0 without any."""
        vector = self._vector(one)
        cosine = max((sum(map(mul, vector, self._vector(other))) for other in others), default=None)
        return 0.0 if cosine is None else self._embedder.curves.of(tier)(cosine)

    def _vector(self, text: str) -> Vector:
        if (found := self._vectors.get(text)) is None:
            found = self._vectors[text] = _unit(self._embedder.embed(text))
        return found


def _unit(given: Sequence[float]) -> Vector:
    vector = tuple(map(float, given))
    norm = math.sqrt(math.fsum(value * value for value in vector))
    return tuple(value / norm for value in vector) if norm else vector
