"""A pattern store over a vector database: layer, revisions, counts, and the points that stand for a pattern."""

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

from ..._patterns import COUNTED, checked, exemplars, revised
from ..._process import on_fork
from ..._requests import Retrieve
from ..._threads import in_daemon
from ...exceptions import ConfigError, ExtraMissing
from ...ports import Embedder
from ...types import ETrace, Pattern, Tier
from .index import Index
from .points import Ask, Asking, Point, Points, nearest, pattern_in, point_id, points_of, standing_rules
from .rows import Row, row_of
from .vectors import Vectors

KNOWN_S = 60.0
"""How old what is known of the database may be: which patterns of the layer it hides, and its lowest gate."""
BATCH = 200
"""Patterns that are written at once; with 256 dimensions some 2 MB of JSON."""

Written: TypeAlias = "tuple[list[Point], list[str]]"
"""Points to write, and ids of points to drop."""


@dataclass(frozen=True, slots=True)
class _Known:
    layer: Index
    lowest_gate: float | None
    until: float


class PointStore:
    """What `EdgeStore` and `QdrantStore` share; `_points` is what they differ in."""

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
        """False: a search asks something else than this process's memory."""
        return False

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Best first, ties by id; a pattern's own `gate_threshold` goes before the asked similarity."""
        asking = self._asking(request)
        try:
            ask = next(asking)
            while True:
                ask = asking.send(self._points.every(ask) if ask.vector is None else self._points.near(ask))
        except StopIteration as done:
            found: tuple[ETrace, ...] = done.value
            return found

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """As `search`, in a thread."""
        return await in_daemon(partial(self.search, request))

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns, or replace those of the same id, which takes the next revision.

        What cannot be stored or embedded is refused before anything is written. Up to 200 patterns are there all or
        not at all; of more, an error leaves what was written until then, and adding them again is safe.
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
        """False: the store has none of that id. One of the layer is switched off by one that is `off`."""
        with self._one_writer:
            heads = self._points.by_id([point_id(pattern_id, 0)])
            self._points.drop([point_id(pattern_id, n) for head in heads for n in range(head.payload["exemplars"])])
            self._last = None
        return bool(heads)

    def count(self, pattern_ids: Iterable[str], what: str) -> None:
        """Count one more of `what` (retrieved, injected, recovered, not_recovered) for each id that is stored.

        Read and written back: of two processes that count one pattern at the same time, one may get lost.
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
        """The store's own, else the layer's."""
        heads = self._points.by_id([point_id(pattern_id, 0)])
        return pattern_in(heads[0]) if heads else self._layer.get(pattern_id)

    def list(
        self, org_id: str, tier: Tier | None = None, *, failure_type: str | None = None, layer: bool = False
    ) -> tuple[Pattern, ...]:
        """Those of an org and of none, by id, also those that are off. `layer`: what shows of the layer, too."""
        own = {one.id: one for one in map(pattern_in, self._points.every(Ask.listing(org_id)))}
        under = self._known().layer.patterns() if layer else ()
        kept = [
            pattern
            for _, pattern in sorted({**{one.id: one for one in under}, **own}.items())
            if pattern.org_id in (None, org_id)
            and tier in (None, pattern.tier)
            and failure_type in (None, pattern.failure_type)
        ]
        return tuple(kept)

    def __len__(self) -> int:
        """How many the store itself has."""
        return self._points.count_heads()

    def close(self) -> None:
        """Let go of what is open; what uses the store after that opens it again."""
        self._points.close()

    def _new_lock(self) -> None:
        self._one_writer = threading.Lock()

    def _asking(self, request: Retrieve) -> Asking:
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
        stats = {name: one.stats for name, one in self._layer.items() if one.stats}
        return _Known(Index.of(rows, stats), self._points.lowest_gate(), time.monotonic() + KNOWN_S)

    @cached_property
    def _layer_rows(self) -> Mapping[str, Row]:
        """With their vectors, once a search needed them."""
        return {name: row_of(pattern) for name, pattern in self._layer.items()}

    def _written(self, given: Sequence[Pattern], now: str) -> Written:
        """The points of what differs from what is stored, and the ids of points that are no more."""
        heads = {head.payload["pattern"]: head for head in self._points.by_id([point_id(one.id, 0) for one in given])}
        stored = {name: pattern_in(head) for name, head in heads.items()}
        changed = [new for one in given if (new := revised(one, stored.get(one.id), now)) != stored.get(one.id)]
        points = list(self._points_of(changed))
        written = {point.id for point in points}
        before = [
            point_id(one.id, number)
            for one in changed
            if one.id in heads
            for number in range(heads[one.id].payload["exemplars"])
        ]
        return points, [one for one in before if one not in written]

    def _points_of(self, patterns: Sequence[Pattern]) -> Iterator[Point]:
        texts = [() if one.off or one.tier == "e3" else exemplars(one) for one in patterns]
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
    """Raises `ExtraMissing`, with the line that installs it."""
    try:
        found = find_spec(module) is not None
    except ValueError:  # what stands in `sys.modules` is no module
        found = False
    if not found:
        raise ExtraMissing(what, distribution, extra)
