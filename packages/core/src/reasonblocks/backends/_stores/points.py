"""Patterns as the points of a vector database: what a point holds, and which points a search asks for."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from ..._json import evolve
from ..._patterns import Curve, best, gate, helps, pattern_of, standing, visible
from ..._requests import Retrieve
from ...types import ETrace, Pattern
from .rows import body
from .table import SLACK, Rows, cosine

SHARED = "shared"
NO_TYPE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Which points: every condition that is given holds; `orgs` always is, so that no search can forget it."""

    orgs: tuple[str, ...]
    tiers: tuple[str, ...] = ()
    failure_types: tuple[str, ...] = ()
    heads: bool = False
    """Only the first point of each pattern."""
    vector: Rows | None = None
    """Nearest first; None: in any order, all of them."""
    threshold: float | None = None
    """The least cosine."""
    limit: int = 0
    gate_most: float | None = None
    """Only points whose own gate is at most that."""
    gated: bool = False
    """Only points that have one."""

    @classmethod
    def of(cls, request: Retrieve) -> Ask:
        """The points that a request may see."""
        shared = () if request.tier == "e1" else (SHARED,)
        types = () if request.failure_type is None else (NO_TYPE, _type(request.failure_type))
        waiting = () if request.failure_type is None else (_waiting(request.tier),)
        return cls(orgs=(_org(request.org_id), *shared), tiers=(request.tier, *waiting), failure_types=types)

    @classmethod
    def listing(cls, org_id: str) -> Ask:
        """The first points of everything that an org may see."""
        return cls(orgs=(_org(org_id), SHARED), heads=True)

    @property
    def matches(self) -> Iterator[tuple[str, list[str]]]:
        """(payload key, its values) of all conditions that are about texts."""
        yield "org_id", list(self.orgs)
        if self.tiers:
            yield "tier", list(self.tiers)
        if self.failure_types:
            yield "failure_type", list(self.failure_types)
        if self.heads:
            yield "place", ["head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A point that was found; without a vector where none was asked for."""

    payload: Mapping[str, Any]
    vector: Rows | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point that is stored."""

    id: str
    vector: list[float]
    payload: dict[str, Any]


class Points(Protocol):
    """A vector database. Raises `Unavailable` when it does not answer, `StoreError` when it refuses."""

    def near(self, ask: Ask) -> list[Hit]: ...
    def every(self, ask: Ask) -> list[Hit]:
        """All points asked for, without vectors."""
        ...

    def by_id(self, ids: list[str]) -> list[Hit]: ...
    def lowest_gate(self) -> float | None: ...
    def count_heads(self) -> int: ...
    def put(self, points: list[Point]) -> None: ...
    def drop(self, ids: list[str]) -> None: ...
    def set_stats(self, ids: list[str], stats: dict[str, int]) -> None: ...
    def close(self) -> None: ...


def point_id(pattern_id: str, number: int) -> str:
    """Of one exemplar: the same pattern has the same points in every process."""
    return str(uuid5(NAMESPACE_URL, f"reasonblocks:{number}:{pattern_id}"))


def points_of(pattern: Pattern, vectors: Rows | None, dim: int) -> Iterator[Point]:
    """One point an exemplar, each with the whole pattern; one of zeros for a pattern that is not searched."""
    rows = [[0.0] * dim] if vectors is None else vectors.tolist()
    payload: dict[str, Any] = {
        "pattern": pattern.id,
        "org_id": SHARED if pattern.org_id is None else _org(pattern.org_id),
        "tier": "off" if pattern.off else _waiting(pattern.tier) if pattern.requires_signal else pattern.tier,
        "failure_type": NO_TYPE if pattern.failure_type is None else _type(pattern.failure_type),
        "exemplars": len(rows),
        "body": body(pattern),
        "stats": dict(pattern.stats),
    }
    if pattern.gate_threshold is not None and vectors is not None:
        payload["gate"] = float(pattern.gate_threshold)
    for number, row in enumerate(rows):
        place = "head" if number == 0 else "more"
        yield Point(id=point_id(pattern.id, number), vector=row, payload={**payload, "place": place})


def pattern_in(hit: Hit) -> Pattern:
    return evolve(pattern_of(json.loads(hit.payload["body"])), stats=hit.payload.get("stats") or {})


def _org(org_id: str) -> str:
    """Apart from what stands for no org, whatever an org is called."""
    return f"org:{org_id}"


def _waiting(tier: str) -> str:
    """Patterns of a tier that only a search which names their failure type sees."""
    return f"{tier} on signal"


def _type(failure_type: str) -> str:
    return f"type:{failure_type}"


MORE = 16
"""Points asked for at first beyond the patterns that are wanted: some patterns have several."""
GROWTH = 4
Asking: TypeAlias = "Generator[Ask, list[Hit], tuple[ETrace, ...]]"
"""Yields what to ask and is sent the points: the same for a store that waits and for one that awaits."""


def standing_rules(request: Retrieve, layer: Iterable[Pattern]) -> Asking:
    """Tier e3, with those of a layer."""
    hits = yield Ask.of(request)
    return standing(chain(map(pattern_in, hits), layer), request)


def nearest(request: Retrieve, query: Rows, curve: Curve, lowest_gate: float | None, layer: Iterable[ETrace]) -> Asking:
    """Tiers e1 and e2: the best of the points and of `layer`. `lowest_gate` is that of any pattern stored."""
    least = min(request.similarity, request.similarity if lowest_gate is None else lowest_gate)
    threshold = max(-2.0, min(2.0, curve.reach(least) - SLACK))
    ask = evolve(Ask.of(request), vector=query, threshold=threshold, limit=request.top_k + MORE)
    found: dict[str, ETrace] = {}
    while True:
        hits = yield ask
        _judge(hits, found, request, query, curve)
        if len(hits) < ask.limit:
            break
        left = curve(hits[-1].score + SLACK)  # the most that any other point is worth
        if _are_enough(found.values(), request, left):
            break
        ask = evolve(ask, limit=ask.limit * GROWTH, gate_most=left, gated=left < request.similarity)
    return best([*found.values(), *layer], request)


def _judge(hits: list[Hit], found: dict[str, ETrace], request: Retrieve, query: Rows, curve: Curve) -> None:
    """Each pattern with its best exemplar; of a replaced one, the newest revision counts."""
    for hit in hits:
        if hit.vector is None:
            continue
        pattern = pattern_in(hit)
        if not visible(pattern, request):
            continue
        new = ETrace(pattern=pattern, similarity=curve(cosine(hit.vector[None], query)))
        old = found.get(pattern.id)
        if old is None or _weight(new) > _weight(old):
            found[pattern.id] = new


def _weight(trace: ETrace) -> tuple[int, float]:
    return trace.pattern.revision, trace.similarity


def _are_enough(found: Iterable[ETrace], request: Retrieve, left: float) -> bool:
    """Are there `top_k` that pass and help and that no other point can come before?"""
    sure = [
        trace
        for trace in found
        if trace.similarity > left
        and trace.similarity >= gate(trace.pattern, request.similarity)
        and helps(trace.pattern)
    ]
    return len(sure) >= request.top_k
