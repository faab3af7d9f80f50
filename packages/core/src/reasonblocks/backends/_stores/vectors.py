"""How texts become vectors that are compared: unit rows of float32, refused where the embedder broke its word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._requests import Retrieve
from ...exceptions import BadAnswer
from ...ports import Embedder, SummingEmbedder
from .rows import Row
from .table import Rows, Table

BATCH = 256
"""Texts embedded at once: an embedder over HTTP takes no more, and a local one gains nothing by more."""


class Vectors:
    """One embedder's, checked: every error of ours names its id; what it raises itself is passed on.

    `kept` is told which rows got vectors because a search needed them.
    """

    def __init__(self, embedder: Embedder, kept: Callable[[Sequence[Row]], None] = lambda rows: None) -> None:
        self.embedder, self._kept = embedder, kept
        self._summing = embedder if isinstance(embedder, SummingEmbedder) else None  # a slow question

    @cached_property
    def _name(self) -> str:
        return f"embedder {self.embedder.id!r}"

    def of(self, texts: Sequence[str]) -> Rows:
        """A row each, of length 1, or of zeros for a text of which the embedder knows nothing."""
        rows = [self._batch(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(rows) if rows else np.empty((0, self.embedder.dim), np.float32)

    def query(self, request: Retrieve) -> Rows:
        """The vector of what is asked for, the run's memo being asked first."""
        embedder, memo = self.embedder, request.memo
        given: Any
        if self._summing is not None:
            given = self._summing.embed_sum(request.texts, request.words, memo)
        elif memo is not None:
            text = request.query
            given = memo.vectors.of((embedder.id, text), lambda: embedder.embed(text))
        else:
            given = embedder.embed(request.query)
        return self._unit(given)

    def fill(self, rows: Sequence[Row]) -> None:
        """Give each row the vectors of its texts: all of them or, after an error, none."""
        texts = [row.texts for row in rows]
        units = self.of([text for of_row in texts for text in of_row])
        begin = 0
        for row, of_row in zip(rows, texts):
            row.vectors = units[begin : begin + len(of_row)].tobytes()
            begin += len(of_row)

    def table(self, rows: Sequence[Row]) -> Table:
        """Rows of one tier, laid out; those without vectors are embedded first."""
        if missing := [row for row in rows if row.vectors is None]:
            self.fill(missing)
            self._kept(missing)
        return Table(rows, self.embedder.dim, self.embedder.curves.of(rows[0].tier))

    def _batch(self, texts: Sequence[str]) -> Rows:
        return self._units(self.embedder.embed_many(texts), (len(texts), self.embedder.dim))

    def _units(self, given: Any, shape: tuple[int, int]) -> Rows:
        values = self._numbers(given, shape)
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        self._check(bool(np.isfinite(lengths).all()))
        units: npt.NDArray[np.float64] = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
        return units.astype(np.float32)

    def _unit(self, given: Any) -> Rows:
        """The same of one: on every search, so in a third of the time."""
        values = self._numbers(given, (self.embedder.dim,))
        length = math.sqrt(values.dot(values))
        self._check(math.isfinite(length))
        return (values / length if length else values).astype(np.float32)

    def _numbers(self, given: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        try:
            values: npt.NDArray[np.float64] = np.asarray(given, np.float64)
        except (TypeError, ValueError) as exc:
            raise BadAnswer(self._name, given, f"must give numbers of shape {shape} ({exc})") from exc
        if values.shape != shape:
            raise BadAnswer(self._name, f"an answer of shape {values.shape}", f"must be of shape {shape}")
        return values

    def _check(self, finite: bool) -> None:
        if not finite:
            raise BadAnswer(self._name, "NaN or infinite", "must give finite numbers")
