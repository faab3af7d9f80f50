"""Embeds texts as unit rows of float32, and rejects invalid output of an embedder."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...exceptions import BadAnswer
from ...ports import Embedder, SummingEmbedder
from ...requests import Retrieve
from .rows import Row
from .table import Rows, Table

BATCH = 256
"""Texts per call: an HTTP embedder accepts no more, and a local one gains nothing by more."""


class Vectors:
    """The vectors of one embedder, checked. Our errors name the embedder's id; its own exceptions propagate.

    `kept` is called with the rows that were embedded because a search needed them.
    """

    def __init__(self, embedder: Embedder, on_embedded: Callable[[Sequence[Row]], None] = lambda rows: None) -> None:
        self.embedder, self._on_embedded = embedder, on_embedded
        self._summing = embedder if isinstance(embedder, SummingEmbedder) else None  # this attribute is slow to read

    @cached_property
    def _name(self) -> str:
        return f"embedder {self.embedder.id!r}"

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return the vectors of the texts, float32 of shape (len(texts), dim).

        Each has the Euclidean length 1, or is zero for a text without a known word. Raises `BadAnswer` for a wrong
        shape, and for numbers that are not finite.
        """
        rows = [self._batch(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(rows) if rows else np.empty((0, self.embedder.dim), np.float32)

    def query(self, request: Retrieve) -> Rows:
        """Return the query's vector, from the run's memo if it is there."""
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
        """Embed the texts of the rows: all of them or, after an error, none."""
        texts = [row.texts for row in rows]
        units = self.embed([text for of_row in texts for text in of_row])
        begin = 0
        for row, of_row in zip(rows, texts):
            row.vectors = units[begin : begin + len(of_row)].tobytes()
            begin += len(of_row)

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the rows of one tier as a table, after embedding those without vectors."""
        if missing := [row for row in rows if row.vectors is None]:
            self.fill(missing)
            self._on_embedded(missing)
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
        """Return the unit vector of one row; runs on every search and takes a third of the batch version's time."""
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
