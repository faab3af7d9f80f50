"""An immutable in-memory index of patterns. A change makes a new index, so readers never lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...patterns import best, fits, gate, helpful, helps, standing
from ...requests import Retrieve
from ...types import ETrace, Pattern
from .rows import Block, Row, Stats

if TYPE_CHECKING:
    from .table import Rows as Vector
    from .table import Table
    from .vectors import Vectors

GROWTH = 8
"""Factor by which a search for one kind considers more rows, as long as too few of them fit."""


class Index:
    """Rows grouped by tier, org and signal-only flag, then by failure type.

    The vectors of a group are laid out in one matrix when it is first searched.

    `stats` holds newer counts by pattern id; they take precedence over those stored in a pattern.
    """

    __slots__ = ("_parts", "_unhelpful", "largest", "stats")

    def __init__(self, parts: Mapping[Block, _Part], stats: Stats) -> None:
        self._parts, self.stats = parts, stats
        self._unhelpful = frozenset(name for name, counted in stats.items() if not helpful(counted))
        self.largest = max(_sizes(parts).values(), default=0)
        """Number of patterns in the largest tier."""

    @classmethod
    def of(cls, rows: Iterable[Row], stats: Stats) -> Index:
        return cls({}, stats).changed((), rows)

    def changed(self, gone: Iterable[Row], new: Iterable[Row]) -> Index:
        """Return an index without some rows and with others. Unaffected groups are shared with this one."""
        dropped, added = _by_block(gone), _by_block(row for row in new if not row.off)
        parts = dict(self._parts)
        for block in {**dropped, **added}:
            without = {row.id for row in dropped.get(block, ())}
            before = parts.pop(block).rows if block in parts else ()
            rows = [*(row for row in before if row.id not in without), *added.get(block, ())]
            if rows:
                parts[block] = _Part(rows)
        return Index(parts, self.stats)

    def counted(self, stats: Stats) -> Index:
        return Index(self._parts, stats)

    def is_ready(self, request: Retrieve) -> bool:
        """Return True if this search has to lay out nothing."""
        return request.tier == "e3" or all(part.table is not None for part in self._of(request))

    def lay_out(self, vectors: Callable[[], Vectors]) -> None:
        """Lay out the matrices of all groups."""
        for (tier, *_), part in self._parts.items():
            if tier != "e3":
                part.laid_out(vectors())

    def patterns(self) -> list[Pattern]:
        return [row.told(self.stats) for part in self._parts.values() for row in part.rows]

    def standing(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Return the standing rules of tier e3, which need no search."""
        return standing((row.told(self.stats) for part in self._of(request) for row in part.rows), request)

    def search(self, request: Retrieve, vectors: Callable[[], Vectors]) -> tuple[ETrace, ...]:
        """Search tiers e1 and e2 as `PatternStore.search` does. `vectors` is called only if there are candidates."""
        return best(self.near(request, vectors), request)

    def near(self, request: Retrieve, vectors: Callable[[], Vectors]) -> list[ETrace]:
        """Return the candidates for `best`: a superset of the results."""
        spans = [(part, *span) for part in self._of(request) for span in part.spans(request.failure_type)]
        if not spans:
            return []
        made = vectors()
        query = made.query(request)
        return [
            trace
            for part, begin, end in spans
            for trace in self._fitting(part.rows, part.laid_out(made), query, begin, end, request)
        ]

    def _fitting(
        self, rows: Sequence[Row], table: Table, query: Vector, begin: int, end: int, request: Retrieve
    ) -> list[ETrace]:
        """Return the candidates among these rows that fit the request's kind: those of more rows if too few do."""
        most = request.top_k
        while True:
            near = table.near(query, begin, end, request.similarity, most, self._unhelpful)
            found = [ETrace(pattern=rows[place].told(self.stats), similarity=similarity) for place, similarity in near]
            if request.kind is None:
                return found
            found = [trace for trace in found if fits(trace.pattern, request.kind)]
            if most >= end - begin or _sure(found, request) >= request.top_k:
                return found
            most *= GROWTH

    def _of(self, request: Retrieve) -> Iterator[_Part]:
        for org in (request.org_id,) if request.tier == "e1" else (request.org_id, None):
            for waits in (False,) if request.failure_type is None else (False, True):
                if (part := self._parts.get((request.tier, org, waits))) is not None:
                    yield part


class _Part:
    """The rows of one tier and org, sorted by failure type and id."""

    __slots__ = ("_spans", "rows", "table")

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: Sequence[Row] = sorted(rows, key=lambda row: (*_place(row.failure_type), row.id))
        self.table: Table | None = None
        self._spans: dict[str | None, tuple[int, int]] = {}
        begin = 0
        for name, rows_of in groupby(self.rows, key=lambda row: row.failure_type):
            end = begin + sum(1 for _ in rows_of)
            self._spans[name] = (begin, end)
            begin = end

    def spans(self, failure_type: str | None) -> list[tuple[int, int]]:
        """Return the ranges of rows with this failure type and with none; the whole range if `failure_type` is None."""
        if failure_type is None:
            return [(0, len(self.rows))]
        return [self._spans[name] for name in (None, failure_type) if name in self._spans]

    def laid_out(self, vectors: Vectors) -> Table:
        if self.table is None:
            self.table = vectors.table(self.rows)
        return self.table


def _sizes(parts: Mapping[Block, _Part]) -> Counter[str]:
    """Return the number of patterns by tier."""
    sizes: Counter[str] = Counter()
    for (tier, *_), part in parts.items():
        sizes[tier] += len(part.rows)
    return sizes


def _sure(found: Iterable[ETrace], request: Retrieve) -> int:
    """Return how many candidates pass and are helpful: no row that is less similar comes before them."""
    return sum(trace.similarity >= gate(trace.pattern, request.similarity) and helps(trace.pattern) for trace in found)


def _by_block(rows: Iterable[Row]) -> dict[Block, list[Row]]:
    found: dict[Block, list[Row]] = {}
    for row in rows:
        found.setdefault(row.block, []).append(row)
    return found


def _place(failure_type: str | None) -> tuple[bool, str]:
    return failure_type is not None, failure_type or ""
