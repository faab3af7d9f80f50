"""Translates queries and points to qdrant-client's models and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import numpy as np

from ...concurrency.forks import no_fork, opened
from ...exceptions import ConfigError, StoreError, Unavailable
from ...util.secret import KEY_RULE, Secret, described, is_key, shown_url
from ..stores.point_store import require
from ..stores.points import Hit, Point, PointQuery

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import AsyncQdrantClient, QdrantClient
    from qdrant_client.models import Filter


TIMEOUT_S = 5
"""Seconds per request: writing 200 patterns over a slow line. A search ends earlier, with its step's deadline."""
TRY_AGAIN = (408, 429)
"""Status codes below 500 after which a request may be repeated."""


class Clients:
    """The clients of one server, made on first use. A `given` client is closed by its owner and serves threads only."""

    def __init__(self, url: str | None, api_key: str | None, timeout: int, given: QdrantClient | None) -> None:
        if api_key is not None and not is_key(api_key):
            raise ConfigError("api_key", described(api_key), KEY_RULE)
        self._url = None if url is None else Secret(url)
        self._api_key = None if api_key is None else Secret(api_key)
        self._timeout, self._given = timeout, given
        self._made: QdrantClient | None = None
        self._of_loops: WeakKeyDictionary[AbstractEventLoop, AsyncQdrantClient] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return f"Qdrant at {shown_url(self._url.reveal())}" if self._url else "Qdrant"

    @property
    def is_awaitable(self) -> bool:
        return self._given is None

    @property
    def is_local(self) -> bool:
        """True for a caller's client without a server; it has no payload indexes."""
        options = {} if self._given is None else self._given.init_options
        return options.get("location") == ":memory:" or options.get("path") is not None

    def load(self) -> None:
        """Import the library, which takes a second, and make a client, so that no step has to."""
        try:
            self.of_threads()
        except ValueError as exc:
            given = shown_url(self._url.reveal()) if self._url else None
            raise ConfigError("url", given, "must be the URL of a Qdrant server") from exc

    def of_threads(self) -> QdrantClient:
        if self._given is not None:
            return self._given
        made = self._made
        return self._connected() if made is None else made

    @property
    def _options(self) -> dict[str, Any]:
        url, key = (None if secret is None else secret.reveal() for secret in (self._url, self._api_key))
        return {"url": url, "api_key": key, "timeout": self._timeout, "check_compatibility": False}

    def _connected(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        with no_fork:
            if self._made is None:
                self._made = QdrantClient(**self._options)
                opened(self)
            return self._made

    def of_loop(self, loop: AbstractEventLoop) -> AsyncQdrantClient:
        """Return the client of this event loop. Call it in a thread: the first call takes tens of milliseconds."""
        found = self._of_loops.get(loop)
        if found is not None:
            return found
        from qdrant_client import AsyncQdrantClient

        with no_fork:
            if loop not in self._of_loops:
                self._of_loops[loop] = AsyncQdrantClient(**self._options)
            return self._of_loops[loop]

    def close(self) -> None:
        """Close the client for threads, also before a fork. Clients of event loops belong to their loops."""
        with no_fork:
            made, self._made = self._made, None
            if made is not None:
                made.close()

    async def aclose(self) -> None:
        from asyncio import get_running_loop

        found = self._of_loops.pop(get_running_loop(), None)
        if found is not None:
            await found.close()

    @contextmanager
    def border(self) -> Iterator[None]:
        from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as exc:
            code = exc.status_code or 0
            if code >= 500 or code in TRY_AGAIN:
                raise Unavailable(self.name, str(exc)) from exc
            raise StoreError(self.name, str(exc)) from exc
        except ApiException as exc:
            raise Unavailable(self.name, f"{type(exc).__name__}: {exc}") from exc


def clients_of(what: str, url: str | None, api_key: str | None, timeout: int, client: QdrantClient | None) -> Clients:
    """Return the clients of the server that was given, as a URL or as a client, after loading the library."""
    if (url is None) == (client is None):
        raise ConfigError(
            "url", shown_url(url) if url else url, "give the url of a Qdrant server, or a client: one of the two"
        )
    if client is None:
        require(what, "qdrant_client", "qdrant-client", "qdrant")
    clients = Clients(url, api_key, timeout, client)
    clients.load()
    return clients


def collection_name(prefix: str, embedder_id: str) -> str:
    return f"{prefix}-{quote(embedder_id, safe='').replace('%', '_')}"


PAGE = 1_000
"""Points per page when all are read."""
KEYWORDS = ("tier", "failure_type", "place")


class QdrantPoints:
    """The points of one embedder, in its own collection. A missing collection reads as empty."""

    def __init__(self, clients: Clients, prefix: str, embedder_id: str, dim: int) -> None:
        self.clients, self._dim = clients, dim
        self.name = collection_name(prefix, embedder_id)
        self._there = False

    def near(self, ask: PointQuery) -> list[Hit]:
        with self.clients.border():
            if (client := self._client()) is None:
                return []
            found = client.query_points(self.name, **self._nearest(ask)).points
        return [_hit(point.payload, point.vector, point.score) for point in found]

    async def anear(self, ask: PointQuery) -> list[Hit]:
        from asyncio import get_running_loop

        with self.clients.border():
            client = self.clients.of_loop(get_running_loop())
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
        with self.clients.border():
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
        with self.clients.border():
            if not ids or (client := self._client()) is None:
                return []
            return [_hit(point.payload) for point in client.retrieve(self.name, ids, with_payload=True)]

    def lowest_gate(self) -> float | None:
        from qdrant_client.models import OrderBy

        with self.clients.border():
            if (client := self._client()) is None:
                return None
            first, _ = client.scroll(self.name, limit=1, order_by=OrderBy(key="gate"), with_payload=True)
        return float((first[0].payload or {})["gate"]) if first else None

    def count_heads(self) -> int:
        with self.clients.border():
            if (client := self._client()) is None:
                return 0
            return client.count(self.name, count_filter=_must({"place": ["head"]}), exact=True).count

    def put(self, points: list[Point]) -> None:
        if not points:
            return
        from qdrant_client.models import PointStruct

        with self.clients.border():
            client = self._client() or self._made()
            new = [PointStruct(id=point.id, vector=point.vector, payload=point.payload) for point in points]
            client.upsert(self.name, new, wait=True)

    def drop(self, ids: list[str]) -> None:
        if not ids:
            return
        from qdrant_client.models import PointIdsList

        with self.clients.border():
            if (client := self._client()) is not None:
                client.delete(self.name, PointIdsList(points=list(ids)), wait=True)

    def set_stats(self, ids: list[str], stats: dict[str, int]) -> None:
        with self.clients.border():
            if (client := self._client()) is not None:
                client.set_payload(self.name, {"stats": stats}, points=list(ids), wait=True)

    def close(self) -> None:
        self.clients.close()

    def _nearest(self, ask: PointQuery) -> dict[str, Any]:
        from qdrant_client.models import SearchParams

        exactly = "e1" in ask.tiers and not self.clients.is_local  # one org has few of them
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
        client = self.clients.of_threads()
        self._there = self._there or client.collection_exists(self.name)
        return client if self._there else None

    def _made(self) -> QdrantClient:
        from qdrant_client.models import Distance, KeywordIndexParams, KeywordIndexType, PayloadSchemaType, VectorParams

        client = self.clients.of_threads()
        # Dot product: rows are unit vectors already.
        client.create_collection(self.name, VectorParams(size=self._dim, distance=Distance.DOT))
        if not self.clients.is_local:
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
