"""A lexical embedder without dependencies: hashed words and word pairs, so only shared wording counts as similar."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

from ...patterns import Curve, SimilarityCurves
from ...util.text import clip, words

DIM = 512
STOP = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "i", "in", "is", "it", "its", "let", "me",
     "my", "now", "of", "on", "or", "so", "that", "the", "then", "there", "this", "to", "was", "we", "will", "with"}
)  # fmt: skip
"""Words without a topic."""
PAIR_WEIGHT = 0.5
CURVES = SimilarityCurves(
    e1=Curve(((0.0, 0.0), (0.27, 0.7), (0.31, 0.8), (1.0, 1.0))),
    e2=Curve(((0.0, 0.0), (0.26, 0.7), (0.3, 0.8), (1.0, 1.0))),
)
"""Cosine to similarity, fitted by `tools/shipped_curves.py`: of queries of 4,678 recorded runs of agents of six kinds
(tool use, questions, shell and SQL, repositories, customer service, teams) against 400 exemplars of the other kinds,
half thoughts, half as long as the query, 5 % reach a cosine of .262 with any over 3 steps and .256 over 5, 1 % reach
.308 and .293; rounded up."""


class HashEmbedder:
    """A hashed bag of words and word pairs. `embed` returns a unit vector of 512 dimensions, zeros without words."""

    id = "hash-512-v1"
    dim = DIM
    inline = True
    curves = CURVES

    def embed(self, text: str) -> tuple[float, ...]:
        tokens = [word for word in words(clip(text)) if word not in STOP]
        vector = [0.0] * DIM
        for term, count in Counter(tokens).items():
            _add(vector, term, 1 + math.log(count))
        for first, second in pairwise(tokens):
            _add(vector, f"{first} {second}", PAIR_WEIGHT)
        norm = math.sqrt(math.fsum(value * value for value in vector))
        return tuple(value / norm for value in vector) if norm else tuple(vector)

    def embed_many(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        return [self.embed(text) for text in texts]


def _add(vector: list[float], term: str, weight: float) -> None:
    mark = crc32(term.encode("utf-8", "replace"))
    vector[mark % DIM] += weight if mark & 0x8000_0000 else -weight
