"""The shipped embedder: sums the int8 rows of a text's word pieces, so the result is the same on every machine."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from ...concurrency.forks import on_fork
from ...exceptions import Unavailable
from ...patterns import Curve, SimilarityCurves
from ...util.memo import WORDS_KEPT, Memo
from ...util.text import clip, words
from ._tokenizer import SPECIAL, UNKNOWN, Tokenizer

DATA = Path(__file__).with_name("data")
DIM = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The data of the shipped model.

    `rows` is int8 [pieces, 256], read only, in the order of the ids of `vocabulary` and `tokenizer`.
    """

    rows: NDArray[numpy.int8]
    vocabulary: Mapping[str, int]
    tokenizer: Tokenizer
    unknown: int
    """The id of an unknown word; its row is zeros."""


_lock = threading.Lock()
_loaded: list[Table] = []


def table() -> Table:
    """Return the table, loaded once per process. Raises `Unavailable` if its files are missing or damaged."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(read_table(DATA))
    return _loaded[0]


def _new_lock() -> None:
    """Replace the lock: a thread of the parent may have held it at the fork."""
    global _lock
    _lock = threading.Lock()


on_fork(_new_lock)


def read_table(folder: Path) -> Table:
    """Read the table that `tools/build_embed.py` wrote to a folder."""
    try:
        pieces = (folder / "vocabulary.txt").read_bytes().decode().split("\n")
        numbers = numpy.fromfile(folder / "rows.int8", dtype=numpy.int8)
    except OSError as error:
        raise _broken(f"{error.filename} cannot be read, {error.strerror}") from error
    if len(numbers) != len(pieces) * DIM:
        raise _broken(f"{folder} holds {len(pieces)} pieces and {len(numbers)} numbers, not {DIM} of each")
    rows = numbers.reshape(-1, DIM)
    rows.setflags(write=False)
    vocabulary = dict(zip(pieces, range(len(pieces)), strict=True))
    return Table(rows=rows, vocabulary=vocabulary, tokenizer=Tokenizer(vocabulary), unknown=vocabulary[UNKNOWN])


def _broken(reason: str) -> Unavailable:
    return Unavailable("StaticEmbedder", f"{reason}: install reasonblocks-core again")


Vector: TypeAlias = NDArray[numpy.float32]
Ids: TypeAlias = NDArray[numpy.intp]
Kept: TypeAlias = dict[str, tuple[int, ...]]
"""Cache of one run or call: the pieces of the most recent words that are not a single piece."""

ROWS_AT_ONCE = 256
"""Rows whose sum always fits into int16, which numpy adds fastest."""
PLAIN = 128
"""Number of ASCII characters."""
PRINTED = bytes(range(32, 127)) + b"\t\n\r"
MARKS = [code for code in range(33, 127) if not chr(code).isalnum()]
"""Characters that are always a piece of their own, so that counting them is enough."""
CURVES = SimilarityCurves(
    e1=Curve(((0.0, 0.0), (0.54, 0.7), (0.6, 0.8), (1.0, 1.0))),
    e2=Curve(((0.0, 0.0), (0.54, 0.7), (0.62, 0.8), (1.0, 1.0))),
)
"""Cosine to similarity, fitted by `tools/shipped_curves.py`: of queries of 4,678 recorded runs of agents of six kinds
(tool use, questions, shell and SQL, repositories, customer service, teams) against 400 exemplars of the other kinds,
half thoughts, half as long as the query, 5 % reach a cosine of .532 with any over 3 steps and .536 over 5, 1 % reach
.590 and .612, where both kinds are strange to the table's centre; rounded up."""


class StaticEmbedder:
    """Embeds with a small static model.

    `embed` returns a unit vector of 256 float32, or zeros without a known word. Of a text of more than 16,000
    characters the middle is skipped.

    The model is minishlab/potion-base-8M in int8, centred on agents' texts, with digits and punctuation weighted by a
    quarter. It is English, and blind to word order and negation. The first embedder in a process takes 10 ms.
    Thread-safe. Raises `Unavailable` if the package's data is missing.
    """

    id = "potion-base-8M-centred-int8-v1"
    dim = DIM
    inline = True
    curves = CURVES

    def __init__(self) -> None:
        self._table = table()
        self._marks = numpy.zeros((PLAIN, DIM), numpy.float32)
        self._marks[MARKS] = self._table.rows[[self._table.vocabulary[chr(code)] for code in MARKS]]

    def embed(self, text: str) -> Vector:
        return _unit(self.embed_sum((text,), None, None))

    def embed_many(self, texts: Sequence[str]) -> Vector:
        """Return float32 [texts, 256]."""
        made = numpy.zeros((len(texts), DIM), numpy.float32)
        kept: Kept = {}
        for at, text in enumerate(texts):
            made[at] = _unit(self._sum(text, None, kept))
        return made

    def embed_sum(self, texts: Sequence[str], words: Sequence[str] | None, memo: Memo | None) -> Vector:
        """Return the sum of all rows of all texts, not normalised. Each text's own sum is cached in `memo.vectors`.

        `words` are `_text.words` of the last text, clipped.
        """
        memo = memo or Memo()
        kept: Kept = memo.words.of(self.id, dict)
        total = numpy.zeros(DIM, numpy.float32)
        for at, text in enumerate(texts, 1):
            own = words if at == len(texts) else None
            total += memo.vectors.of((self.id, text), partial(self._sum, text, own, kept))
        return total

    def _sum(self, text: str, cut_up: Sequence[str] | None, kept: Kept) -> Vector:
        text = clip(text)
        if _is_plain(text):
            counts = numpy.bincount(numpy.frombuffer(text.encode(), numpy.uint8), minlength=PLAIN)
            total = counts.astype(numpy.float32) @ self._marks
            self._add(total, self._ids(words(text) if cut_up is None else cut_up, kept))
        else:
            total = numpy.zeros(DIM, numpy.float32)
            ids = self._table.tokenizer.ids(text, partial(self._pieces, kept))
            self._add(total, numpy.fromiter(ids, numpy.intp, len(ids)))
        total.setflags(write=False)
        return total

    def _add(self, total: Vector, ids: Ids) -> None:
        rows = self._table.rows.take(ids, axis=0)
        for start in range(0, len(ids), ROWS_AT_ONCE):
            total += rows[start : start + ROWS_AT_ONCE].sum(axis=0, dtype=numpy.int16)

    def _ids(self, found: Sequence[str], kept: Kept) -> Ids:
        """Return the piece ids of some words in any order, including the id of unknown words, whose row is zeros."""
        of, unknown = self._table.vocabulary.get, self._table.unknown
        whole = numpy.fromiter(map(of, found, repeat(unknown)), numpy.intp, len(found))
        parts: list[int] = []
        for at in (whole == unknown).nonzero()[0].tolist():
            parts += kept.get(found[at]) or self._pieces(kept, found[at])
        return numpy.concatenate((whole, numpy.fromiter(parts, numpy.intp, len(parts)))) if parts else whole

    def _pieces(self, kept: Kept, word: str) -> tuple[int, ...]:
        """Return the pieces of a word that is not a single piece. The parts of a contraction are separate words."""
        pieces = kept.get(word)
        if pieces is None:
            while len(kept) >= WORDS_KEPT:
                kept.pop(next(iter(kept)))
            pieces = kept[word] = self._table.tokenizer.pieces(word)
        return pieces


def _is_plain(text: str) -> bool:
    """Return True for ASCII without control characters and special pieces, which the tokenizer treats differently."""
    if not text.isascii() or text.encode().translate(None, PRINTED):
        return False
    return "[" not in text or not any(special in text for special in SPECIAL)


def _unit(total: Vector) -> Vector:
    """Return the unit vector. Integers in float64 have the same length on every machine."""
    exact = total.astype(numpy.float64)
    length = numpy.sqrt(exact @ exact)
    return (exact / (length or 1.0)).astype(numpy.float32)
