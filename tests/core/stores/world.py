"""What the tests of stores share: an embedder whose texts are their vectors, patterns, requests, and a plain search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from reasonblocks.patterns import Curve, SimilarityCurves, best, exemplars, standing, visible
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, Pattern, Tier

CURVES = SimilarityCurves(
    e1=Curve(((0.0, 0.0), (0.5, 0.7), (0.8, 0.8), (1.0, 1.0))), e2=Curve(((-0.2, 0.0), (0.4, 0.7), (1.0, 1.0)))
)
Answer: TypeAlias = "list[tuple[str, float]]"
FIELDS = {"instruction": "Look.", "observation": "It is so.", "diagnosis": "It loops.", "intervention": "Stop."}


class Numbers:
    """The text "1 0 2" is the vector (1, 0, 2); what is short is filled up with zeros."""

    def __init__(self, name: str = "numbers", dim: int = 4) -> None:
        self.id, self.dim, self.curves = name, dim, CURVES
        self.texts = 0

    def embed(self, text: str) -> Sequence[float]:
        self.texts += 1
        numbers = [float(word) for word in text.split()]
        return (numbers + [0.0] * self.dim)[: self.dim]

    def embed_many(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed(text) for text in texts]


class Broken(Numbers):
    """Gives, or raises, `answer` as soon as it is set."""

    answer: Any = None

    def embed(self, text: str) -> Sequence[float]:
        if isinstance(self.answer, Exception):
            raise self.answer
        given: Sequence[float] = self.answer
        return super().embed(text) if self.answer is None else given


def pattern(name: str, tier: Tier = "e2", *texts: str, **changes: Any) -> Pattern:
    org = {"org_id": "acme"} if tier == "e1" else {}
    return Pattern(**{"id": name, "tier": tier, "fields": FIELDS, "exemplars": texts or ("1",), **org, **changes})


def request(tier: Tier = "e2", text: str = "1", **changes: Any) -> Retrieve:
    plain: dict[str, Any] = {"top_k": 2, "similarity": 0.7, "org_id": "acme", "failure_type": None, "model": ""}
    return Retrieve(**{"tier": tier, "texts": () if tier == "e3" else (text,), **plain, **changes})


def plain_search(patterns: Iterable[Pattern], asked: Retrieve, layer: Iterable[Pattern] = ()) -> Answer:
    """What every store has to give, found without any of their code but the rules."""
    seen = [*{**{one.id: one for one in layer}, **{one.id: one for one in patterns}}.values()]
    if asked.tier == "e3":
        return answer(standing(seen, asked))
    curve = CURVES.of(asked.tier)
    found = [
        ETrace(pattern=one, similarity=max(curve(_cosine(text, asked.query)) for text in exemplars(one)))
        for one in seen
        if visible(one, asked)
    ]
    return answer(best(found, asked))


def answer(found: Iterable[ETrace]) -> Answer:
    return [(trace.pattern.id, trace.similarity) for trace in found]


def _cosine(one: str, other: str) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(_unit(one), _unit(other)))


def _unit(text: str) -> list[np.float32]:
    numbers = np.array(Numbers().embed(text))
    length = math.sqrt(math.fsum(numbers**2))
    return list((numbers / length if length else numbers).astype(np.float32))
