"""Represents patterns as points of a Qdrant collection, and reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from ...patterns import pattern_of
from ...requests import Retrieve
from ...types import Pattern
from ..stores.rows import body
from ..stores.table import Rows
from .clients import Clients, collection_name

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter

PAGE = 1_000
"""Points per page when all are read."""
KEYWORDS = ("tier", "failure_type", "place")
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


class QdrantPoints:
    """The points of one embedder, in its own collection. A missing collection reads as empty."""

    def __init__(self, clients: Clients, prefix: str, embedder_id: str, dim: int) -> None:
        self._clients, self._dim = clients, dim
        self.name = collection_name(prefix, embedder_id)
        self._there = False

    def near(self, ask: PointQuery) -> list[Hit]:
        with self._clients.border():
            if (client := self._client()) is None:
                return []
            found = client.query_points(self.name, **self._nearest(ask)).points
        return [_hit(point.payload, point.vector, point.score) for point in found]

    async def anear(self, ask: PointQuery) -> list[Hit]:
        from asyncio import get_running_loop

        with self._clients.border():
            client = self._clients.of_loop(get_running_loop())
            self._there = self._there or await client.collection_exists(self.name)
            if not self._there:
                return []
            if ask.vector is not None:
                points = (await client.query_points(self.name, **self._nearest(ask))).points
                return [_hit(point.payload, point.vector, point.score) for point in points]
            hits: list[Hit] = []
            offset = None
            while True:
                page, offset = await client.scroll(self.name, offset=offset, **_page(ask))
                hits += [_hit(point.payload) for point in page]
                if offset is None:
                    return hits

    def every(self, ask: PointQuery) -> list[Hit]:
        with self._clients.border():
            if (client := self._client()) is None:
                return []
            hits: list[Hit] = []
            offset = None
            while True:
                page, offset = client.scroll(self.name, offset=offset, **_page(ask))
                hits += [_hit(point.payload) for point in page]
                if offset is None:
                    return hits

    def by_id(self, ids: list[str]) -> list[Hit]:
        with self._clients.border():
            if not ids or (client := self._client()) is None:
                return []
            return [_hit(point.payload) for point in client.retrieve(self.name, ids, with_payload=True)]

    def lowest_gate(self) -> float | None:
        from qdrant_client.models import OrderBy

        with self._clients.border():
            if (client := self._client()) is None:
                return None
            first, _ = client.scroll(self.name, limit=1, order_by=OrderBy(key="gate"), with_payload=True)
        return float((first[0].payload or {})["gate"]) if first else None

    def count_heads(self) -> int:
        with self._clients.border():
            if (client := self._client()) is None:
                return 0
            return client.count(self.name, count_filter=_must({"place": ["head"]}), exact=True).count

    def put(self, points: list[Point]) -> None:
        if not points:
            return
        from qdrant_client.models import PointStruct

        with self._clients.border():
            client = self._client() or self._made()
            new = [PointStruct(id=point.id, vector=point.vector, payload=point.payload) for point in points]
            client.upsert(self.name, new, wait=True)

    def drop(self, ids: list[str]) -> None:
        if not ids:
            return
        from qdrant_client.models import PointIdsList

        with self._clients.border():
            if (client := self._client()) is not None:
                client.delete(self.name, PointIdsList(points=list(ids)), wait=True)

    def set_stats(self, ids: list[str], stats: dict[str, int]) -> None:
        with self._clients.border():
            if (client := self._client()) is not None:
                client.set_payload(self.name, {"stats": stats}, points=list(ids), wait=True)

    def _nearest(self, ask: PointQuery) -> dict[str, Any]:
        from qdrant_client.models import SearchParams

        exactly = "e1" in ask.tiers and not self._clients.is_local  # one org has few of them
        return {
            "query": [] if ask.vector is None else ask.vector.tolist(),
            "query_filter": _filter(ask),
            "search_params": SearchParams(exact=True) if exactly else None,
            "limit": ask.limit,
            "score_threshold": ask.threshold,
            "with_payload": True,
            "with_vectors": True,
        }

    def _client(self) -> QdrantClient | None:
        client = self._clients.of_threads()
        self._there = self._there or client.collection_exists(self.name)
        return client if self._there else None

    def _made(self) -> QdrantClient:
        from qdrant_client.models import Distance, KeywordIndexParams, KeywordIndexType, PayloadSchemaType, VectorParams

        client = self._clients.of_threads()
        # Dot product: rows are unit vectors already.
        client.create_collection(self.name, VectorParams(size=self._dim, distance=Distance.DOT))
        if not self._clients.is_local:
            tenant = KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True)
            client.create_payload_index(self.name, "org_id", tenant)
            client.create_payload_index(self.name, "gate", PayloadSchemaType.FLOAT)
            for key in KEYWORDS:
                client.create_payload_index(self.name, key, PayloadSchemaType.KEYWORD)
        self._there = True
        return client


def _page(ask: PointQuery) -> dict[str, Any]:
    return {"scroll_filter": _filter(ask), "limit": PAGE, "with_payload": True}


def _filter(ask: PointQuery) -> Filter:
    from qdrant_client.models import FieldCondition, Filter, Range

    wanted = _must(dict(ask.matches))
    if ask.gate_most is None:
        return wanted
    if ask.gated:
        low = FieldCondition(key="gate", range=Range(lte=ask.gate_most))
        return Filter(must=[wanted, low])
    return Filter(must=[wanted], must_not=[FieldCondition(key="gate", range=Range(gt=ask.gate_most))])


def _must(matches: Mapping[str, list[str]]) -> Filter:
    from qdrant_client.models import FieldCondition, Filter, MatchAny

    return Filter(must=[FieldCondition(key=key, match=MatchAny(any=values)) for key, values in matches.items()])


def _hit(payload: Mapping[str, Any] | None, vector: object = None, score: float = 0.0) -> Hit:
    row = None if vector is None else np.asarray(vector, np.float32)
    return Hit(payload=payload or {}, vector=row, score=score)
