"""`QdrantStore`: patterns on a Qdrant server, with sync and async searches, revisions, counts, and a layer below."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from ...concurrency.forks import on_fork
from ...concurrency.workers import in_daemon
from ...exceptions import ConfigError
from ...patterns import COUNTED, Curve, best, check_pattern, exemplars, gate, helps, revise_pattern, standing, visible
from ...ports import Embedder
from ...requests import Retrieve
from ...types import ETrace, Pattern, Tier
from ..stores import embedders
from ..stores.index import Index
from ..stores.rows import Row, row_of
from ..stores.table import SLACK, Rows, cosine
from ..stores.vectors import Vectors
from ._points import Hit, Point, PointQuery, QdrantPoints, pattern_in, point_id, points_of
from .clients import BATCH, TIMEOUT_S, clients_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import QdrantClient

MORE = 16
"""Extra points in the first query, because a pattern may have several points."""
GROWTH = 4
KNOWN_S = 60.0
"""Seconds for which facts about the database are cached: the layer's hidden patterns and the lowest gate."""

Written: TypeAlias = "tuple[list[Point], list[str]]"
"""Points to write, and ids of points to delete. Within the store, `list` is a method."""
PointSearch: TypeAlias = "Generator[PointQuery, list[Hit], tuple[ETrace, ...]]"
"""A generator that yields queries and is sent hits, so that one search serves sync and async stores."""


@dataclass(frozen=True, slots=True)
class _Known:
    layer: Index
    lowest_gate: float | None
    until: float


class QdrantStore:
    """Patterns on a Qdrant server, at `url` or behind the caller's own `client`; for several hosts.

    Each embedder has its own collection, named `collection_prefix` plus the embedder's id, created by the first `add`.
    Patterns added by another process are found at once; that one of them hides a pattern of `layer`, or has the lowest
    `gate_threshold` of all, is seen within 60 s. `timeout` is in seconds per request. Making a store imports
    qdrant-client, which takes a second; the server is contacted on first use.

    Raises `ExtraMissing` without qdrant-client, `Unavailable` if the server does not respond, `StoreError` if it
    rejects a request, and otherwise the same as `LocalStore`. Thread-safe if a given client is.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        client: QdrantClient | None = None,
        collection_prefix: str = "reasonblocks",
        layer: Iterable[Pattern] = (),
        embedder: Embedder | None = None,
        timeout: int = TIMEOUT_S,
    ) -> None:
        self._clients = clients_of("QdrantStore", url, api_key, timeout, client)
        self._prefix = collection_prefix
        self._vectors = Vectors(embedders.default() if embedder is None else embedder)
        self._points = QdrantPoints(self._clients, collection_prefix, self.embedder.id, self.embedder.dim)
        self._layer = {pattern.id: check_pattern(pattern) for pattern in layer}
        self._new_lock()
        on_fork(self._new_lock)
        self._last: _Known | None = None

    @property
    def embedder(self) -> Embedder:
        return self._vectors.embedder

    @property
    def inline(self) -> bool:
        """False, because a search leaves this process's memory."""
        return False

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Return matches, best first, ties by id. A pattern's `gate_threshold` overrides the requested similarity."""
        asking = self._asking(request)
        try:
            ask = next(asking)
            while True:
                ask = asking.send(self._points.every(ask) if ask.vector is None else self._points.near(ask))
        except StopIteration as done:
            found: tuple[ETrace, ...] = done.value
            return found

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Search without blocking the event loop; a given client is called in a thread."""
        if not self._clients.is_awaitable:
            return await in_daemon(partial(self.search, request))
        from asyncio import get_running_loop

        asking = await in_daemon(partial(self._prepared, request, get_running_loop()))
        try:
            ask = next(asking)
            while True:
                ask = asking.send(await self._points.anear(ask))
        except StopIteration as done:
            found: tuple[ETrace, ...] = done.value
            return found

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns. A pattern with a stored id replaces that one and takes the next revision.

        Patterns that cannot be stored or embedded are refused before anything is written. Up to 200 patterns are
        written atomically. If a larger batch fails, part of it may be stored; adding the batch again is safe.
        """
        given = list({pattern.id: check_pattern(pattern) for pattern in patterns}.values())
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._one_writer:
            batches = [self._written(given[at : at + BATCH], now) for at in range(0, len(given), BATCH)]
            for points, stale in batches:
                self._points.put(points)
                self._points.drop(stale)
            self._last = None

    def remove(self, pattern_id: str) -> bool:
        """Remove a pattern; return False if the store has none with that id.

        To hide a pattern of the layer, add one with its id that is `off`."""
        with self._one_writer:
            heads = self._points.by_id([point_id(pattern_id, 0)])
            self._points.drop([point_id(pattern_id, n) for head in heads for n in range(head.payload["exemplars"])])
            self._last = None
        return bool(heads)

    def count(self, pattern_ids: Iterable[str], what: str) -> None:
        """Increment the count `what` (retrieved, injected, recovered, not_recovered) of each stored id.

        The count is read and written back, so one of two simultaneous increments from two processes may be lost.
        """
        if what not in COUNTED:
            raise ConfigError.unknown("what", what, COUNTED)
        counts: dict[str, int] = {}
        for name in pattern_ids:
            counts[name] = counts.get(name, 0) + 1
        with self._one_writer:
            for head in self._points.by_id([point_id(name, 0) for name in counts]):
                stats, name = dict(head.payload.get("stats") or {}), head.payload["pattern"]
                stats[what] = stats.get(what, 0) + counts[name]
                self._points.set_stats([point_id(name, n) for n in range(head.payload["exemplars"])], stats)

    def get(self, pattern_id: str) -> Pattern | None:
        """Return the store's pattern, else the layer's, else None."""
        heads = self._points.by_id([point_id(pattern_id, 0)])
        return pattern_in(heads[0]) if heads else self._layer.get(pattern_id)

    def list(
        self, org_id: str, tier: Tier | None = None, *, failure_type: str | None = None, layer: bool = False
    ) -> tuple[Pattern, ...]:
        """Return the patterns of an org and those of no org, by id, including those that are off.

        `layer=True` adds the patterns of the layer that are not hidden."""
        own = {pattern.id: pattern for pattern in map(pattern_in, self._points.every(PointQuery.listing(org_id)))}
        under = self._known().layer.patterns() if layer else ()
        kept = [
            pattern
            for _, pattern in sorted({**{pattern.id: pattern for pattern in under}, **own}.items())
            if pattern.org_id in (None, org_id)
            and tier in (None, pattern.tier)
            and failure_type in (None, pattern.failure_type)
        ]
        return tuple(kept)

    def __len__(self) -> int:
        """Return the number of patterns in the store, without the layer."""
        return self._points.count_heads()

    def close(self) -> None:
        """Close the client of threads; `aclose` closes that of an event loop. The next use opens it again."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the client of this event loop."""
        await self._clients.aclose()

    def __enter__(self) -> QdrantStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_lock(self) -> None:
        self._one_writer = threading.Lock()

    def _asking(self, request: Retrieve) -> PointSearch:
        known = self._known()
        if request.tier == "e3":
            return standing_rules(request, known.layer.patterns())
        query = self._vectors.query(request)
        near = known.layer.near(request, lambda: self._vectors)
        return nearest(request, query, self.embedder.curves.of(request.tier), known.lowest_gate, near)

    def _prepared(self, request: Retrieve, loop: AbstractEventLoop) -> PointSearch:
        """Do in a thread all that would block the event loop: make the client, embed the text, read hidden ids."""
        self._clients.of_loop(loop)
        return self._asking(request)

    def _known(self) -> _Known:
        known = self._last
        if known is None or time.monotonic() > known.until:
            known = self._last = self._asked_known()
        return known

    def _asked_known(self) -> _Known:
        heads = self._points.by_id([point_id(name, 0) for name in self._layer]) if self._layer else []
        hidden = {head.payload["pattern"] for head in heads}
        rows = [row for name, row in self._layer_rows.items() if name not in hidden]
        stats = {name: row.stats for name, row in self._layer.items() if row.stats}
        return _Known(Index.of(rows, stats), self._points.lowest_gate(), time.monotonic() + KNOWN_S)

    @cached_property
    def _layer_rows(self) -> Mapping[str, Row]:
        """Return the layer's rows, with vectors once a search needed them."""
        return {name: row_of(pattern) for name, pattern in self._layer.items()}

    def _written(self, given: Sequence[Pattern], now: str) -> Written:
        """Return the points of changed patterns, and the ids of points to delete."""
        heads = {
            head.payload["pattern"]: head for head in self._points.by_id([point_id(pattern.id, 0) for pattern in given])
        }
        stored = {name: pattern_in(head) for name, head in heads.items()}
        changed = [
            new
            for pattern in given
            if (new := revise_pattern(pattern, stored.get(pattern.id), now)) != stored.get(pattern.id)
        ]
        points = list(self._points_of(changed))
        written = {point.id for point in points}
        before = [
            point_id(pattern.id, number)
            for pattern in changed
            if pattern.id in heads
            for number in range(heads[pattern.id].payload["exemplars"])
        ]
        return points, [point for point in before if point not in written]

    def _points_of(self, patterns: Sequence[Pattern]) -> Iterator[Point]:
        texts = [() if pattern.off or pattern.tier == "e3" else exemplars(pattern) for pattern in patterns]
        units = self._vectors.embed([text for of_one in texts for text in of_one])
        begin = 0
        for pattern, of_one in zip(patterns, texts):
            rows = units[begin : begin + len(of_one)] if of_one else None
            begin += len(of_one)
            yield from points_of(pattern, rows, self.embedder.dim)


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
