"""Represents patterns as points of a vector database, and searches them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from ...patterns import Curve, best, gate, helps, pattern_of, standing, visible
from ...requests import Retrieve
from ...types import ETrace, Pattern
from .rows import body
from .table import SLACK, Rows, cosine

SHARED = "shared"
NO_TYPE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointQuery:
    """A query. All given conditions must hold. `orgs` has no default, so that no search can forget it."""

    orgs: tuple[str, ...]
    tiers: tuple[str, ...] = ()
    failure_types: tuple[str, ...] = ()
    heads: bool = False
    """Select only the first point of each pattern."""
    vector: Rows | None = None
    """Query vector: nearest first. None returns all points in any order."""
    threshold: float | None = None
    """Lowest cosine."""
    limit: int = 0
    gate_most: float | None = None
    """Select only points whose own gate is at most this."""
    gated: bool = False
    """Select only points with a gate of their own."""

    @classmethod
    def of(cls, request: Retrieve) -> PointQuery:
        """Return the query for the points that a request may see."""
        shared = () if request.tier == "e1" else (SHARED,)
        types = () if request.failure_type is None else (NO_TYPE, _type(request.failure_type))
        waiting = () if request.failure_type is None else (_waiting(request.tier),)
        return cls(orgs=(_org(request.org_id), *shared), tiers=(request.tier, *waiting), failure_types=types)

    @classmethod
    def listing(cls, org_id: str) -> PointQuery:
        """Return the query for the first point of every pattern that an org may see."""
        return cls(orgs=(_org(org_id), SHARED), heads=True)

    @property
    def matches(self) -> Iterator[tuple[str, list[str]]]:
        """Return (payload key, accepted values) of all conditions on texts."""
        yield "org_id", list(self.orgs)
        if self.tiers:
            yield "tier", list(self.tiers)
        if self.failure_types:
            yield "failure_type", list(self.failure_types)
        if self.heads:
            yield "place", ["head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A point that was found. It has a vector only if the query asked for vectors."""

    payload: Mapping[str, Any]
    vector: Rows | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A stored point."""

    id: str
    vector: list[float]
    payload: dict[str, Any]


class Points(Protocol):
    """A vector database. Raises `Unavailable` if it does not respond, `StoreError` if it rejects a request."""

    def near(self, ask: PointQuery) -> list[Hit]: ...
    def every(self, ask: PointQuery) -> list[Hit]:
        """Return all matching points, without vectors."""
        ...

    def by_id(self, ids: list[str]) -> list[Hit]: ...
    def lowest_gate(self) -> float | None: ...
    def count_heads(self) -> int: ...
    def put(self, points: list[Point]) -> None: ...
    def drop(self, ids: list[str]) -> None: ...
    def set_stats(self, ids: list[str], stats: dict[str, int]) -> None: ...
    def close(self) -> None: ...


def point_id(pattern_id: str, number: int) -> str:
    """Return the id of an exemplar's point, which is the same in every process."""
    return str(uuid5(NAMESPACE_URL, f"reasonblocks:{number}:{pattern_id}"))


def points_of(pattern: Pattern, vectors: Rows | None, dim: int) -> Iterator[Point]:
    """Return one point per exemplar, each with the whole pattern; a single zero vector if it is not searched."""
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
    return replace(pattern_of(json.loads(hit.payload["body"])), stats=hit.payload.get("stats") or {})


def _org(org_id: str) -> str:
    """Return the stored form of an org's name, which never equals the marker for "no org"."""
    return f"org:{org_id}"


def _waiting(tier: str) -> str:
    """Return the condition for patterns that only a search with their failure type finds."""
    return f"{tier} on signal"


def _type(failure_type: str) -> str:
    return f"type:{failure_type}"


MORE = 16
"""Extra points in the first query, because a pattern may have several points."""
GROWTH = 4
PointSearch: TypeAlias = "Generator[PointQuery, list[Hit], tuple[ETrace, ...]]"
"""A generator that yields queries and is sent hits, so that one search serves sync and async stores."""


def standing_rules(request: Retrieve, layer: Iterable[Pattern]) -> PointSearch:
    """Return the standing rules of tier e3, including the layer's."""
    hits = yield PointQuery.of(request)
    return standing(chain(map(pattern_in, hits), layer), request)


def nearest(
    request: Retrieve, query: Rows, curve: Curve, lowest_gate: float | None, layer: Iterable[ETrace]
) -> PointSearch:
    """Search tiers e1 and e2: the best of the points and of `layer`.

    `lowest_gate` is the lowest own gate of all stored patterns, None without any."""
    least = min(request.similarity, request.similarity if lowest_gate is None else lowest_gate)
    threshold = max(-2.0, min(2.0, curve.reach(least) - SLACK))
    ask = replace(PointQuery.of(request), vector=query, threshold=threshold, limit=request.top_k + MORE)
    found: dict[str, ETrace] = {}
    while True:
        hits = yield ask
        _judge(hits, found, request, query, curve)
        if len(hits) < ask.limit:
            break
        left = curve(hits[-1].score + SLACK)  # the highest similarity that a remaining point can have
        if _are_enough(found.values(), request, left):
            break
        ask = replace(ask, limit=ask.limit * GROWTH, gate_most=left, gated=left < request.similarity)
    return best([*found.values(), *layer], request)


def _judge(hits: list[Hit], found: dict[str, ETrace], request: Retrieve, query: Rows, curve: Curve) -> None:
    """Keep each pattern with its best exemplar, in its newest revision."""
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
    """Return True if `top_k` results are found that no remaining point can beat."""
    sure = [
        trace
        for trace in found
        if trace.similarity > left
        and trace.similarity >= gate(trace.pattern, request.similarity)
        and helps(trace.pattern)
    ]
    return len(sure) >= request.top_k
