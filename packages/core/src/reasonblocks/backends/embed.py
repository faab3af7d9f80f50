"""A lexical embedder without dependencies: hashed words and word pairs, so only shared wording counts as similar."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from zlib import crc32

from ..text import clip, words

__all__ = ["HashEmbedder"]

DIM = 512
STOP = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "i", "in", "is", "it", "its", "let", "me",
     "my", "now", "of", "on", "or", "so", "that", "the", "then", "there", "this", "to", "was", "we", "will", "with"}
)  # fmt: skip
"""Words that carry no subject."""
PAIR_WEIGHT = 0.5
KNEE = (0.35, 0.7)
"""A cosine of .35 reads as similarity .7: beyond what unrelated steps of recorded runs reach."""


class HashEmbedder:
    """`embed` gives a unit vector of 512 dimensions, or zeros for a text without words. Pure, so it answers inline."""

    id = "hash-512-v1"
    dim = DIM

    def embed(self, text: str) -> tuple[float, ...]:
        tokens = [word for word in words(clip(text)) if word not in STOP]
        vector = [0.0] * DIM
        for term, count in Counter(tokens).items():
            _add(vector, term, 1 + math.log(count))
        for first, second in pairwise(tokens):
            _add(vector, f"{first} {second}", PAIR_WEIGHT)
        norm = math.sqrt(sum(value * value for value in vector))
        return tuple(value / norm for value in vector) if norm else tuple(vector)

    def similarity(self, cosine: float) -> float:
        """Monotone, through (0, 0), the knee and (1, 1)."""
        low, at = KNEE
        if cosine <= low:
            return max(0.0, cosine) * at / low
        return min(1.0, at + (cosine - low) * (1 - at) / (1 - low))


def _add(vector: list[float], term: str, weight: float) -> None:
    mark = crc32(term.encode("utf-8", "replace"))
    vector[mark % DIM] += weight if mark & 0x8000_0000 else -weight
