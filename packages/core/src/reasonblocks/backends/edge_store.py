"""`EdgeStore`: patterns in a folder, searched by Qdrant's engine within this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

from ..concurrency.forks import no_fork, opened
from ..exceptions import StoreError
from ..ports import Embedder
from ..types import Pattern
from ..util.files import make_folder
from .stores import embedders
from .stores.point_store import PointStore, require
from .stores.points import Hit, Point, PointQuery
from .stores.vectors import Vectors

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter

PAGE = 1_000
"""Points per page when all are read."""
MADE = "edge_config.json"
"""File that the engine writes into each of its folders."""
KEYWORDS = ("tier", "failure_type", "place")


class EdgePoints:
    """The points of one embedder, in its own folder under `path`."""

    def __init__(self, path: str, embedder_id: str, dim: int) -> None:
        self._root, self._embedder_id, self._dim = path, embedder_id, dim
        self._path = os.path.join(path, quote(embedder_id, safe=""))
        self._shard: EdgeShard | None = None

    def near(self, ask: PointQuery) -> list[Hit]:
        from qdrant_edge import Query, QueryRequest, SearchParams

        shard = self._opened()
        if shard is None or ask.vector is None:
            return []
        exactly = SearchParams(exact=True) if "e1" in ask.tiers else None  # one org has few of them
        with _EngineErrors(self._root):
            query = QueryRequest(
                limit=ask.limit,
                query=Query.Nearest(ask.vector.tolist()),
                filter=_filter(ask),
                with_vector=True,
                with_payload=True,
                score_threshold=ask.threshold,
                params=exactly,
            )
            found = shard.query(query)
        return [_hit(point.payload, point.vector, point.score) for point in found]

    def every(self, ask: PointQuery) -> list[Hit]:
        return list(self._pages(_filter(ask)))

    def by_id(self, ids: list[str]) -> list[Hit]:
        shard = self._opened()
        if shard is None or not ids:
            return []
        with _EngineErrors(self._root):
            return [_hit(point.payload) for point in shard.retrieve(list(ids), with_payload=True, with_vector=False)]

    def lowest_gate(self) -> float | None:
        from qdrant_edge import Direction, OrderBy, ScrollRequest

        shard = self._opened()
        if shard is None:
            return None
        with _EngineErrors(self._root):
            first, _ = shard.scroll(ScrollRequest(limit=1, order_by=OrderBy("gate", Direction.Asc), with_payload=True))
        return float(_hit(first[0].payload).payload["gate"]) if first else None

    def count_heads(self) -> int:
        from qdrant_edge import CountRequest, FieldCondition, Filter, MatchValue

        shard = self._opened()
        if shard is None:
            return 0
        with _EngineErrors(self._root):
            heads = Filter(must=[FieldCondition("place", match=MatchValue("head"))])
            return shard.count(CountRequest(exact=True, filter=heads))

    def put(self, points: list[Point]) -> None:
        if not points:
            return
        from qdrant_edge import Point as EdgePoint
        from qdrant_edge import UpdateOperation

        shard = self._made()
        with _EngineErrors(self._root):
            new = [EdgePoint(point.id, point.vector, point.payload) for point in points]
            shard.update(UpdateOperation.upsert_points(new))
            shard.flush()

    def drop(self, ids: list[str]) -> None:
        from qdrant_edge import UpdateOperation

        if ids and (shard := self._opened()) is not None:
            with _EngineErrors(self._root):
                shard.update(UpdateOperation.delete_points(list(ids)))
                shard.flush()

    def set_stats(self, ids: list[str], stats: dict[str, int]) -> None:
        from qdrant_edge import UpdateOperation

        if (shard := self._opened()) is not None:
            with _EngineErrors(self._root):
                shard.update(UpdateOperation.set_payload(list(ids), {"stats": stats}))

    def optimize(self) -> bool:
        shard = self._opened()
        if shard is None:
            return False
        with _EngineErrors(self._root):
            return shard.optimize()

    def close(self) -> None:
        with no_fork:
            shard, self._shard = self._shard, None
            if shard is not None:
                shard.close()

    def _pages(self, wanted: Filter) -> Iterator[Hit]:
        from qdrant_edge import ScrollRequest

        shard, offset = self._opened(), None
        while shard is not None:
            with _EngineErrors(self._root):
                page = ScrollRequest(offset=offset, limit=PAGE, filter=wanted, with_payload=True)
                found, offset = shard.scroll(page)
            yield from (_hit(point.payload) for point in found)
            if offset is None:
                return

    def _opened(self) -> EdgeShard | None:
        if self._shard is None and os.path.isfile(os.path.join(self._path, MADE)):
            from qdrant_edge import EdgeShard

            with no_fork:
                if self._shard is None:
                    opened(self)
                    with _EngineErrors(self._root):
                        self._shard = EdgeShard.load(self._path)
        elif self._shard is None:
            self._refuse_another()
        return self._shard

    def _made(self) -> EdgeShard:
        if (shard := self._opened()) is not None:
            return shard
        from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams

        with no_fork, _EngineErrors(self._root):
            make_folder(self._path)
            # Dot product: rows are unit vectors already.
            config = EdgeConfig(vectors=EdgeVectorParams(size=self._dim, distance=Distance.Dot))
            opened(self)
            shard = self._shard = EdgeShard.create(self._path, config)
            _index(shard)
        return shard

    def _refuse_another(self) -> None:
        found = sorted(os.listdir(self._root)) if os.path.isdir(self._root) else []
        others = [name for name in found if os.path.isfile(os.path.join(self._root, name, MADE))]
        if others:
            theirs = ", ".join(map(unquote, others))
            rule = (
                f"it has patterns of embedder {theirs}, none of {self._embedder_id}: give that one, or another folder"
            )
            raise StoreError(self._root, rule)


class _EngineErrors:
    """Turns the engine's plain `Exception` into `StoreError`; other exceptions are not the engine's and propagate."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is Exception or isinstance(error, OSError):
            reason = str(error)
            if "WouldBlock" in reason:
                reason = "another process has it open: give one of them another folder, or use QdrantStore for both"
            raise StoreError(self._path, reason) from error


def _index(shard: EdgeShard) -> None:
    from qdrant_edge import FloatIndexParams, KeywordIndexParams, UpdateOperation

    shard.update(UpdateOperation.create_field_index("org_id", KeywordIndexParams(is_tenant=True)))
    shard.update(UpdateOperation.create_field_index("gate", FloatIndexParams()))
    for key in KEYWORDS:
        shard.update(UpdateOperation.create_field_index(key, KeywordIndexParams()))


def _filter(ask: PointQuery) -> Filter:
    from qdrant_edge import FieldCondition, Filter, MatchAny, RangeFloat

    must = [FieldCondition(key, match=MatchAny(any=values)) for key, values in ask.matches]
    if ask.gate_most is None:
        return Filter(must=list(must))
    if ask.gated:
        return Filter(must=[*must, FieldCondition("gate", range=RangeFloat(lte=ask.gate_most))])
    return Filter(must=list(must), must_not=[FieldCondition("gate", range=RangeFloat(gt=ask.gate_most))])


def _hit(payload: Mapping[str, Any] | None, vector: Any = None, score: float = 0.0) -> Hit:
    row = None if vector is None else np.asarray(vector, np.float32)
    return Hit(payload=payload or {}, vector=row, score=score)


class EdgeStore(PointStore):
    """Patterns in a folder, searched by Qdrant's engine in this process; for 20,000 to a million patterns.

    Each embedder has its own subfolder. The folder is created by the first `add`; only one process at a time can open
    it. Raises `ExtraMissing` without qdrant-edge-py, `StoreError` for what the engine rejects, and otherwise the same
    as `LocalStore`. Thread-safe; a fork closes it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, layer: Iterable[Pattern] = (), embedder: Embedder | None = None
    ) -> None:
        require("EdgeStore", "qdrant_edge", "qdrant-edge-py", "edge")
        self.path = os.fspath(path)
        made = embedders.default() if embedder is None else embedder
        self._engine = EdgePoints(self.path, made.id, made.dim)
        super().__init__(self._engine, layer, Vectors(made))

    def optimize(self) -> bool:
        """Build the engine's vector graph, which takes minutes from 20,000 patterns on; return True if built.

        Searches are exact until then. Afterwards a search of all of tier e2 takes a tenth of the time and may miss
        a pattern.
        """
        return self._engine.optimize()

    def __enter__(self) -> EdgeStore:
        return self
