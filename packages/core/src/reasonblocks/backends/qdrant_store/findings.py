"""`QdrantFindings`: the findings of codebases on a Qdrant server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from ...concurrency.forks import on_fork
from ...exceptions import StoreFull
from ...findings import MOST_FINDINGS
from ...ports import Embedder
from ...types import Codebase, CodebaseSummary, Finding, RecalledFinding
from ...util.json import compact
from ..stores import embedders
from ..stores.finding_index import FindingIndex, embedded_text
from ..stores.stored_findings import FIELDS, LeftOut, finding_of
from ..stores.vectors import Vectors
from .clients import BATCH, TIMEOUT_S, Clients, clients_of, collection_name

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Condition, Filter, Record, ScoredPoint

    from ._store import QdrantStore

NEAREST = 100
"""Findings that a search ranks: about a megabyte of the longest ones."""
SPARE = 32
"""Points read beyond a page, because the last ones may tie."""
ORDER_BYTES = 6
"""Bytes of an id that make its place in the order: the server compares numbers as floats, exact to 53 bits."""
FEW_CODEBASES = 1_000
"""Codebases of the first query for those of an org."""
GROWTH = 4


class QdrantFindings:
    """A `FindingStore` on a Qdrant server, at `url` or behind the caller's own `client`; for several hosts.

    Each embedder has its own collection, named `collection_prefix`, "-findings-" and the embedder's id, created by the
    first `put`. `timeout` is in seconds per request. A finding that cannot be read is left out and logged once. At most
    `most` findings are kept per codebase.

    A search ranks by words only the 100 findings that are nearest by meaning, and takes the rarity of words from these.
    A finding that shares a rare word with the query, but is not among them, is not found.

    Qdrant has no transactions, so some promises are weaker than those of a local store:

    - `put` writes 200 findings per request. A request is applied as a whole on a server with one shard; a cluster
      divides it by shard. If a larger batch fails, part of it may be stored; putting the batch again is safe.
    - After a timeout, a request may still have been applied. Repeating it is safe.
    - The limit of a codebase is checked before a write: processes that write at once may exceed it by their batches.
    - `remove` and `clear` count first and delete then. Each deletes in one request, but findings that another process
      stores or removes in between are not counted correctly.
    - `codebases` reads the count and the newest time of each codebase in requests of their own.

    Raises `ConfigError` for an invalid setting, `ExtraMissing` without qdrant-client, `Unavailable` if the server does
    not respond, `StoreError` if it rejects a request, and `BadAnswer` for invalid vectors of the embedder. Thread-safe
    if a given client is.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        client: QdrantClient | None = None,
        collection_prefix: str = "reasonblocks",
        embedder: Embedder | None = None,
        timeout: int = TIMEOUT_S,
        most: int = MOST_FINDINGS,
    ) -> None:
        clients = clients_of("QdrantFindings", url, api_key, timeout, client)
        self._connect(clients, collection_prefix, embedders.default() if embedder is None else embedder)
        self._most, self._owns_clients = most, True

    @classmethod
    def beside(cls, store: QdrantStore) -> QdrantFindings:
        """Return the findings beside a store of patterns, with its server, prefix and embedder."""
        made = cls.__new__(cls)
        made._most, made._owns_clients = MOST_FINDINGS, False
        made._connect(store._clients, store._prefix, store.embedder)
        return made

    def _connect(self, clients: Clients, prefix: str, embedder: Embedder) -> None:
        self._clients, self._vectors = clients, Vectors(embedder)
        self._name = collection_name(f"{prefix}-findings", embedder.id)
        self._left_out = LeftOut(clients.name)
        self._there = self._prepared = False
        self._new_lock()
        on_fork(self._new_lock)

    @property
    def embedder(self) -> Embedder:
        return self._vectors.embedder

    def put(self, codebase: Codebase, findings: Sequence[Finding]) -> tuple[str, ...]:
        """Store findings and return their ids. One with a stored id replaces that one.

        Up to 200 are stored all or none; the class describes larger batches. Raises `StoreFull`, before it stores
        anything, if the codebase would have more than `most` findings.
        """
        from qdrant_client.models import PointStruct

        given = list({finding.finding_id: finding for finding in findings}.values())
        rows = self._vectors.embed([embedded_text(finding) for finding in given]).tolist()
        points = [
            PointStruct(id=_point_id(codebase, finding.finding_id), vector=row, payload=_payload(codebase, finding))
            for finding, row in zip(given, rows)
        ]
        if points:
            with self._one_writer, self._clients.border():
                client = self._made()
                self._check_room(client, codebase, [str(point.id) for point in points])
                for at in range(0, len(points), BATCH):
                    client.upsert(self._name, points[at : at + BATCH], wait=True)
        return tuple(finding.finding_id for finding in findings)

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        """Return the best of the nearest 100 findings: those with at least this score, ties by id."""
        from qdrant_client.models import SearchParams

        (unit,) = self._vectors.embed([query])
        with self._clients.border():
            if (client := self._client()) is None:
                return ()
            found = client.query_points(
                self._name,
                query=unit.tolist(),
                query_filter=_within(codebase),
                search_params=None if self._clients.is_local else SearchParams(exact=True),  # one codebase is small
                limit=max(NEAREST, top_k),
                with_payload=["finding"],
                with_vectors=True,
            ).points
        index = FindingIndex()
        for point in found:
            if (finding := self._finding(point)) is not None:
                index.put(finding, np.asarray(point.vector, np.float32))
        return index.search(query, unit, top_k=top_k, score_threshold=score_threshold)

    def page(self, codebase: Codebase, *, after: str = "", limit: int = 100) -> tuple[Finding, ...]:
        """Return at most `limit` findings by id, beginning after the id `after`; none at their end.

        The server orders by the first bytes of ids. Points that tie with the last one of an answer may be missing from
        it, so they are left for a larger answer.
        """
        from qdrant_client.models import OrderBy

        order = OrderBy(key="order", start_from=_order(after) if after else None)
        size = limit + SPARE
        with self._clients.border():
            if limit < 1 or (client := self._client()) is None:
                return ()
            while True:
                points, _ = client.scroll(
                    self._name, _within(codebase), limit=size, order_by=order, with_payload=["finding", "order"]
                )
                is_whole = len(points) < size
                if not is_whole:
                    orders = [(point.payload or {})["order"] for point in points]
                    points = [point for point, order in zip(points, orders) if order < orders[-1]]
                read = [finding for point in points if (finding := self._finding(point)) is not None]
                found = sorted([one for one in read if one.finding_id > after], key=lambda one: one.finding_id)
                if is_whole or len(found) >= limit:
                    return tuple(found[:limit])
                size *= GROWTH

    def remove(self, codebase: Codebase, *, finding_ids: Sequence[str] = (), file_paths: Sequence[str] = ()) -> int:
        """Remove the findings with these ids, and those about these files or files in these folders; count them."""
        from qdrant_client.models import FieldCondition, HasIdCondition, MatchAny

        chosen: list[Condition] = []
        if finding_ids:
            chosen.append(HasIdCondition(has_id=[_point_id(codebase, name) for name in finding_ids]))
        if file_paths:
            chosen.append(FieldCondition(key="paths", match=MatchAny(any=list(file_paths))))
        return self._remove(_within(codebase, chosen)) if chosen else 0

    def clear(self, codebase: Codebase) -> int:
        """Remove all findings of a codebase; return their number."""
        return self._remove(_within(codebase))

    def codebases(self, org_id: str) -> tuple[CodebaseSummary, ...]:
        """Return the codebases of an org that have findings, by id."""
        with self._clients.border():
            if (client := self._client()) is None:
                return ()
            counts = self._counts(client, org_id)
            return tuple(
                CodebaseSummary(
                    codebase_id=name,
                    findings=count,
                    newest=self._newest(client, Codebase(org_id=org_id, codebase_id=name)),
                )
                for name, count in sorted(counts.items())
            )

    def close(self) -> None:
        """Close the connections, unless they are those of a store of patterns. The next use opens them again."""
        if self._owns_clients:
            self._clients.close()

    def __enter__(self) -> QdrantFindings:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _finding(self, point: Record | ScoredPoint) -> Finding | None:
        """Return the finding of a point; None, and log it, if it cannot be read."""
        stored: object = None
        try:
            stored = json.loads((point.payload or {}).get("finding") or "null")
            return finding_of(stored)
        except (ValueError, TypeError, RecursionError) as exc:
            name = stored.get("finding_id") if isinstance(stored, dict) else None
            self._left_out.add(repr(name or point.id), exc)
            return None

    def _new_lock(self) -> None:
        self._one_writer = threading.Lock()

    def _client(self) -> QdrantClient | None:
        """Return the client if the collection exists, else None: a missing one reads as empty."""
        client = self._clients.of_threads()
        self._there = self._there or client.collection_exists(self._name)
        return client if self._there else None

    def _made(self) -> QdrantClient:
        """Return the client after creating what is missing of the collection, which another process may do too."""
        client = self._clients.of_threads()
        if not self._prepared:
            if not client.collection_exists(self._name):
                self._create(client)
            if not self._clients.is_local:
                self._index(client)
            self._there = self._prepared = True
        return client

    def _create(self, client: QdrantClient) -> None:
        from qdrant_client.http.exceptions import UnexpectedResponse
        from qdrant_client.models import Distance, VectorParams

        try:
            # Dot product: rows are unit vectors already.
            client.create_collection(self._name, VectorParams(size=self.embedder.dim, distance=Distance.DOT))
        except UnexpectedResponse:
            if not client.collection_exists(self._name):
                raise

    def _index(self, client: QdrantClient) -> None:
        from qdrant_client.models import KeywordIndexParams, KeywordIndexType, PayloadSchemaType

        tenant = KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True)
        client.create_payload_index(self._name, "org", tenant)
        client.create_payload_index(self._name, "codebase", PayloadSchemaType.KEYWORD)
        client.create_payload_index(self._name, "paths", PayloadSchemaType.KEYWORD)
        client.create_payload_index(self._name, "order", PayloadSchemaType.INTEGER)
        client.create_payload_index(self._name, "created_at", PayloadSchemaType.DATETIME)

    def _check_room(self, client: QdrantClient, codebase: Codebase, ids: Sequence[str]) -> None:
        from qdrant_client.models import HasIdCondition

        stored = self._count(client, _within(codebase))
        if stored + len(ids) <= self._most:
            return
        replaced = self._count(client, _within(codebase, [HasIdCondition(has_id=list(ids))]))
        if stored + len(ids) - replaced > self._most:
            more = len(ids) - replaced
            raise StoreFull(
                self._clients.name,
                f"the codebase {codebase.codebase_id!r} has {stored:,} findings, and {more:,} more would exceed the "
                f"limit of {self._most:,}: forget some first",
            )

    def _count(self, client: QdrantClient, chosen: Filter) -> int:
        return client.count(self._name, count_filter=chosen, exact=True).count

    def _remove(self, chosen: Filter) -> int:
        from qdrant_client.models import FilterSelector

        with self._clients.border():
            if (client := self._client()) is None:
                return 0
            if count := self._count(client, chosen):
                client.delete(self._name, FilterSelector(filter=chosen), wait=True)
            return count

    def _counts(self, client: QdrantClient, org_id: str) -> Mapping[str, int]:
        """Return the number of findings by codebase."""
        from qdrant_client.models import Filter

        limit, chosen = FEW_CODEBASES, Filter(must=[_equals("org", org_id)])
        while True:
            hits = client.facet(self._name, "codebase", facet_filter=chosen, limit=limit, exact=True).hits
            if len(hits) < limit:
                return {str(hit.value).removeprefix(CODEBASE): hit.count for hit in hits}
            limit *= GROWTH

    def _newest(self, client: QdrantClient, codebase: Codebase) -> str:
        from qdrant_client.models import Direction, OrderBy

        order = OrderBy(key="created_at", direction=Direction.DESC)
        points, _ = client.scroll(self._name, _within(codebase), limit=1, order_by=order, with_payload=["created_at"])
        return str((points[0].payload or {})["created_at"]) if points else ""


CODEBASE = "codebase:"
"""Precedes ids of codebases, because a local client changes values that look like UUIDs."""


def _payload(codebase: Codebase, finding: Finding) -> dict[str, Any]:
    return {
        "org": codebase.org_id,
        "codebase": CODEBASE + codebase.codebase_id,
        "paths": _paths(finding.file_path),
        "order": _order(finding.finding_id),
        "created_at": finding.created_at,
        "finding": compact({name: getattr(finding, name) for name in FIELDS}),
    }


def _paths(file_path: str) -> list[str]:
    """Return the path and the folders above it, so that one condition selects a file or a folder."""
    ends = [at for at, letter in enumerate(file_path) if letter == "/"]
    return [file_path, *(file_path[:at] or "/" for at in ends)]


def _order(finding_id: str) -> int:
    """Return a number whose order is that of ids, except for ties."""
    return int.from_bytes(finding_id.encode("utf-8", "surrogatepass")[:ORDER_BYTES].ljust(ORDER_BYTES, b"\0"), "big")


def _point_id(codebase: Codebase, finding_id: str) -> str:
    """Return the id of a finding's point, which differs between codebases."""
    named = json.dumps([codebase.org_id, codebase.codebase_id, finding_id])
    return str(uuid5(NAMESPACE_URL, f"reasonblocks:finding:{named}"))


def _within(codebase: Codebase, chosen: Iterable[Condition] = ()) -> Filter:
    """Return the filter for findings of a codebase; with conditions, those for which at least one holds."""
    from qdrant_client.models import Filter

    scope: list[Condition] = [_equals("org", codebase.org_id), _equals("codebase", CODEBASE + codebase.codebase_id)]
    return Filter(must=scope, should=list(chosen) or None)


def _equals(key: str, value: str) -> Condition:
    from qdrant_client.models import FieldCondition, MatchValue

    return FieldCondition(key=key, match=MatchValue(value=value))
