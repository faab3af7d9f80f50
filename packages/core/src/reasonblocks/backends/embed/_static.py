"""The shipped embedder: a text is the sum of its pieces' rows, in whole numbers, so it is the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy
from numpy.typing import NDArray

from ...memo import WORDS_KEPT, Memo, Ring
from ...patterns import Curve, SimilarityCurves
from ...text import clip, words
from ._table import DIM, table
from ._tokenizer import SPECIAL

__all__ = ["StaticEmbedder"]

Vector = NDArray[numpy.float32]

ROWS_AT_ONCE = 256
"""Rows whose sum fits into int16, whatever they hold: numpy adds these up fastest."""
PLAIN = bytes(byte for byte in range(128) if chr(byte).isalnum() or chr(byte) in " \t\n\r")
"""What of ASCII is neither a mark, which is a piece of its own, nor a control character, which joins what it parts."""
MARKS = bytes(byte for byte in range(33, 127) if not chr(byte).isalnum())


class StaticEmbedder:
    """`embed` gives a unit vector of 256 float32, or zeros where no word is known; a text's middle beyond 16,000
    characters is left out.

    minishlab/potion-base-8M in int8: English, blind to the order of words and to negation. Made in 10 ms the first
    time in a process, for nothing after that; any number of threads may use it. Raises `Unavailable` when the
    package's data is missing.
    """

    id = "potion-base-8M-int8-v1"
    dim = DIM
    curves = SimilarityCurves(e1=Curve(((0.0, 0.0), (1.0, 1.0))), e2=Curve(((0.0, 0.0), (1.0, 1.0))))

    def __init__(self) -> None:
        self._table = table()
        self._marks = {mark: self._table.vocabulary[chr(mark)] for mark in MARKS}

    def embed(self, text: str) -> Vector:
        return _unit(self.embed_sum((text,), None, None))

    def embed_many(self, texts: Sequence[str]) -> Vector:
        """float32 [texts, 256]."""
        made = numpy.zeros((len(texts), DIM), numpy.float32)
        kept: Ring[tuple[int, ...]] = Ring(WORDS_KEPT)
        for at, text in enumerate(texts):
            made[at] = _unit(self._sum(text, None, kept))
        return made

    def embed_sum(self, texts: Sequence[str], words: Sequence[str] | None, memo: Memo | None) -> Vector:
        """The sum of all rows of all texts, not of unit length; each text's own is kept in `memo.vectors`.

        `words` are `reasonblocks.text.words` of the last text, clipped.
        """
        memo = memo or Memo()
        total = numpy.zeros(DIM, numpy.float32)
        for at, text in enumerate(texts, 1):
            total += memo.vectors.of(
                (self.id, text), partial(self._sum, text, words if at == len(texts) else None, memo.words)
            )
        return total

    def _sum(self, text: str, cut_up: Sequence[str] | None, kept: Ring[tuple[int, ...]]) -> Vector:
        ids = self._ids(clip(text), cut_up, kept)
        rows = self._table.rows.take(numpy.fromiter(ids, numpy.intp, len(ids)), axis=0)
        total = numpy.zeros(DIM, numpy.float32)
        for start in range(0, len(ids), ROWS_AT_ONCE):
            total += numpy.add.reduce(rows[start : start + ROWS_AT_ONCE], axis=0, dtype=numpy.int16)
        total.setflags(write=False)
        return total

    def _ids(self, text: str, cut_up: Sequence[str] | None, kept: Ring[tuple[int, ...]]) -> list[int]:
        """The ids of all known pieces, in any order."""
        marks = self._marks_of(text)
        if marks is None:
            return self._table.tokenizer.known(text, lambda word: self._pieces(word, kept))
        found = words(text) if cut_up is None else cut_up
        ids = list(map(self._table.vocabulary.get, found))
        if None in ids:
            for word, one in zip(found, ids, strict=True):
                if one is None:
                    marks.extend(self._pieces(word, kept) or ())
        return [*marks, *[one for one in ids if one is not None]]

    def _pieces(self, word: str, kept: Ring[tuple[int, ...]]) -> tuple[int, ...]:
        """The known pieces of a word, each part of a contraction being a word of its own."""
        return kept.of((self.id, word), lambda: self._table.tokenizer.pieces.known(word.split("'")))

    def _marks_of(self, text: str) -> list[int] | None:
        """The ids of all marks of plain ASCII; None for a text that takes the long way."""
        if not text.isascii() or ("[" in text and any(one in text for one in SPECIAL)):
            return None
        try:
            return [self._marks[mark] for mark in text.encode().translate(None, PLAIN)]
        except KeyError:  # a control character
            return None


def _unit(total: Vector) -> Vector:
    """Whole numbers in float64 give the same length on every machine."""
    exact = total.astype(numpy.float64)
    length = numpy.sqrt(exact @ exact)
    return (exact / (length or 1.0)).astype(numpy.float32)
