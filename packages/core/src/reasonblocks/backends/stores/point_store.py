"""A pattern store on top of a vector database. Adds the read-only layer, revisions and counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, partial
from importlib.util import find_spec
from types import TracebackType
from typing import TypeAlias

from ...concurrency.forks import on_fork
from ...concurrency.workers import in_daemon
from ...exceptions import ConfigError, ExtraMissing
from ...patterns import COUNTED, checked, exemplars, revised
from ...ports import Embedder
from ...requests import Retrieve
from ...types import ETrace, Pattern, Tier
from .index import Index
from .points import Point, PointQuery, Points, PointSearch, nearest, pattern_in, point_id, points_of, standing_rules
from .rows import Row, row_of
from .vectors import Vectors

KNOWN_S = 60.0
"""Seconds for which facts about the database are cached: the layer's hidden patterns and the lowest gate."""
BATCH = 200
"""Patterns written in one request; about 2 MB of JSON with 256 dimensions."""

Written: TypeAlias = "tuple[list[Point], list[str]]"
"""Points to write, and ids of points to delete."""


@dataclass(frozen=True, slots=True)
class _Known:
    layer: Index
    lowest_gate: float | None
    until: float


class PointStore:
    """Base of `EdgeStore` and `QdrantStore`, which differ in `_points` only."""

    def __init__(self, points: Points, layer: Iterable[Pattern], vectors: Vectors) -> None:
        self._points, self._vectors = points, vectors
        self._layer = {pattern.id: checked(pattern) for pattern in layer}
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
        """Run `search` in a thread."""
        return await in_daemon(partial(self.search, request))

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns. A pattern with a stored id replaces that one and takes the next revision.

        Patterns that cannot be stored or embedded are refused before anything is written. Up to 200 patterns are
        written atomically. If a larger batch fails, part of it may be stored; adding the batch again is safe.
        """
        given = list({pattern.id: checked(pattern) for pattern in patterns}.values())
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
        """Close the database. The next use opens it again."""
        self._points.close()

    def _new_lock(self) -> None:
        self._one_writer = threading.Lock()

    def _asking(self, request: Retrieve) -> PointSearch:
        known = self._known()
        if request.tier == "e3":
            return standing_rules(request, known.layer.patterns())
        query = self._vectors.query(request)
        near = known.layer.near(request, lambda: self._vectors)
        return nearest(request, query, self.embedder.curves.of(request.tier), known.lowest_gate, near)

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
            new for pattern in given if (new := revised(pattern, stored.get(pattern.id), now)) != stored.get(pattern.id)
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
        units = self._vectors.of([text for of_one in texts for text in of_one])
        begin = 0
        for pattern, of_one in zip(patterns, texts):
            rows = units[begin : begin + len(of_one)] if of_one else None
            begin += len(of_one)
            yield from points_of(pattern, rows, self.embedder.dim)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def require(what: str, module: str, distribution: str, extra: str) -> None:
    """Raise `ExtraMissing`, with the command that installs it, if the module is missing."""
    try:
        found = find_spec(module) is not None
    except ValueError:  # `sys.modules` holds None for this name
        found = False
    if not found:
        raise ExtraMissing(what, distribution, extra)
