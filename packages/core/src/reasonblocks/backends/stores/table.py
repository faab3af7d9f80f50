"""Selects the rows of a matrix that may pass a search: a few candidates, and never a row too few."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...patterns import Curve
from .rows import Row

Rows: TypeAlias = "npt.NDArray[np.float32]"
Needed: TypeAlias = "float | npt.NDArray[np.float64]"
"""The lowest cosine that passes: one for all rows, or one per row."""

SLACK = 1e-5
"""Tolerance between a cosine in float32 and in float64; well above the rounding error of a thousand dimensions."""
PIECE = 400_000
"""Numbers multiplied at once. As measured, OpenBLAS uses one thread for 430,000 and several for 1,280,000."""
FEW = 32
"""Up to this many rows are checked one by one; of more, only those that can be among the best."""


class Table:
    """The vectors of some patterns in order. A pattern's cosine is that of its best exemplar."""

    def __init__(self, rows: Sequence[Row], dim: int, curve: Curve) -> None:
        data = [row.vectors or b"" for row in rows]
        joined = memoryview(b"".join(data))
        ends = list(accumulate(len(vectors) for vectors in data))
        for row, size, end in zip(rows, map(len, data), ends):
            row.vectors = joined[end - size : end]  # a single copy in memory, not two
        self.matrix: Rows = np.frombuffer(joined, np.float32).reshape(-1, dim)
        width = 4 * dim
        self.firsts: npt.NDArray[np.intp] = np.array([0, *(end // width for end in ends)])
        self._single = len(self.matrix) == len(rows)
        self._names = [row.id for row in rows]
        self._curve = curve
        own = [np.nan if row.gate is None else curve.reach(row.gate) for row in rows]
        self._own: npt.NDArray[np.float64] | None = None if np.isnan(own).all() else np.array(own)

    def near(
        self, query: Rows, begin: int, end: int, similarity: float, most: int, unhelpful: Collection[str]
    ) -> Iterator[tuple[int, float]]:
        """Yield (place, similarity) of the rows from `begin` to `end` that may be among the `most` best that pass."""
        first, last = self.firsts[begin], self.firsts[end]
        cosines = products(self.matrix[first:last], query)
        if not self._single:
            cosines = np.maximum.reduceat(cosines, self.firsts[begin:end] - first)
        needed = (
            np.float64(self._curve.reach(similarity)) if self._own is None else self._needed(begin, end, similarity)
        )
        places = np.flatnonzero(cosines >= needed - SLACK)
        if not len(places):
            return
        if len(places) > max(FEW, 2 * most):
            places = self._first(places, cosines, needed, begin, most, unhelpful)
        for place in places.tolist():
            yield begin + place, self._similarity(begin + place, query)

    def _needed(self, begin: int, end: int, similarity: float) -> Needed:
        assert self._own is not None
        own = self._own[begin:end]
        return np.where(np.isnan(own), self._curve.reach(similarity), own)

    def _similarity(self, place: int, query: Rows) -> float:
        return self._curve(cosine(self.matrix[self.firsts[place] : self.firsts[place + 1]], query))

    def _first(
        self,
        places: npt.NDArray[np.intp],
        cosines: npt.NDArray[np.float32],
        needed: Needed,
        begin: int,
        most: int,
        unhelpful: Collection[str],
    ) -> npt.NDArray[np.intp]:
        """Return the places at least as similar as the last of the `most` best that certainly pass, ties included."""
        sure = places[(cosines >= needed + self._surely)[places]]
        if unhelpful:
            sure = np.array([at for at in sure.tolist() if self._names[begin + at] not in unhelpful], np.intp)
        if len(sure) < most:
            return places
        last = float(np.partition(cosines[sure], -most)[-most])
        return places[cosines[places] >= self._curve.reach(self._curve(last - SLACK)) - SLACK]

    @property
    def _surely(self) -> float:
        """Return the cosine from which a row certainly passes, despite rounding and float32."""
        return 4 * SLACK + 2e-4 * self._flattest

    @property
    def _flattest(self) -> float:
        """Return the steepest rise of cosine per similarity."""
        slopes = [(high - low) / (above - below) for (low, below), (high, above) in self._pairs if above > below]
        return max(slopes, default=0.0)

    @property
    def _pairs(self) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        return list(zip(self._curve.points, self._curve.points[1:]))


def products(rows: Rows, query: Rows) -> Rows:
    """Return the cosines, computed in pieces: on a busy machine BLAS threads wait milliseconds for each other."""
    step = max(1, PIECE // rows.shape[1])
    found = np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), step):
        np.dot(rows[begin : begin + step], query, out=found[begin : begin + step])
    return found


def cosine(rows: Rows, query: Rows) -> float:
    """Return the highest cosine, in float64, so that every store returns the same similarity."""
    return float(np.max(rows.astype(np.float64) @ query.astype(np.float64)))
