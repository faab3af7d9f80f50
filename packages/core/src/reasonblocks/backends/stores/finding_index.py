"""The findings of one codebase in memory, ranked by meaning and by shared terms."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...types import Finding, RecalledFinding
from .table import SLACK, cosine, products

if TYPE_CHECKING:
    from .table import Rows

TERMS_SHARE = 0.5
"""Weight of the terms in the score; the rest is the cosine's. On the 42 questions of benchmarks/_memory/data/tune.jsonl
the right finding is among the best five as often with .5 as with .6, and once less with .4."""
EXPONENT = 0.88
"""Power of the weighted mean that is the score. A score of .25, the default threshold of a recall, is a mean of .207:
34 of the 36 right findings among the best five of tune.jsonl reach it, and 12 of 40 questions on other software find
anything in that codebase."""
SPARE = 64
"""Places of removed findings that an index keeps."""
FIELDS = tuple(field.name for field in fields(Finding))
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def terms(text: str) -> Iterator[str]:
    """Yield the words of a text and, of identifiers, their parts too: load_rawHTML gives itself, load, raw and html."""
    for word in _WORD.findall(text):
        yield from _terms_of_word(word)


@lru_cache(16_384)  # a codebase repeats its words
def _terms_of_word(word: str) -> tuple[str, ...]:
    parts = _parts(word)
    return tuple(_folded(term.lower()) for term in (word, *(parts if parts != [word] else ())))


def _parts(text: str) -> list[str]:
    return _PART.findall(_HUMP.sub(" ", text))


def _folded(term: str) -> str:
    """Return a plural as its singular, roughly: queries and findings are folded alike."""
    is_plural = len(term) > 3 and term.endswith("s") and not term.endswith(("ss", "us", "is"))
    return term[:-1] if is_plural else term


def embedded_text(finding: Finding) -> str:
    """Return the text that is embedded: the words of the path, and the content."""
    words = " ".join(_parts(finding.file_path))
    return f"{words}\n{finding.content}" if words else finding.content


class FindingIndex:
    """Ranks findings for a query by a score in [0, 1]. One thread at a time uses it.

    The score comes from the mean of two numbers: the cosine of the vectors, 0 if it is negative, and the share of the
    query's terms that the finding or its path has, in which a term weighs more the fewer findings have it.
    """

    def __init__(self) -> None:
        self._empty()

    def _empty(self) -> None:
        self._places: dict[str, int] = {}
        self._findings: list[Finding | None] = []
        """The findings by their place, None for a removed one."""
        self._removed: list[int] = []
        self._matrix: Rows = np.empty((0, 0), np.float32)
        self._having: dict[str, array[int]] = {}
        """The places of the findings that have a term, and of removed ones that had it."""
        self._counts: Counter[str] = Counter()
        """The number of findings that have a term."""

    @property
    def ids(self) -> KeysView[str]:
        return self._places.keys()

    def put(self, finding: Finding, unit: Rows) -> None:
        """Add a finding with its unit vector, or replace the one with its id."""
        self.remove([finding.finding_id])
        place = len(self._findings)
        if place == len(self._matrix):
            grown = np.zeros((max(SPARE, 2 * place), len(unit)), np.float32)
            grown[:place] = self._matrix if place else 0
            self._matrix = grown
        self._matrix[place] = unit
        self._findings.append(finding)
        self._places[finding.finding_id] = place
        for term in _terms_of(finding):
            self._having.setdefault(term, array("i")).append(place)
            self._counts[term] += 1

    def remove(self, finding_ids: Iterable[str]) -> None:
        """Remove findings; unknown ids are skipped."""
        for name in finding_ids:
            if (place := self._places.pop(name, None)) is not None:
                finding, self._findings[place] = self._findings[place], None
                self._removed.append(place)
                if finding is not None:
                    self._counts.subtract(_terms_of(finding))
        if len(self._findings) > 2 * len(self._places) + SPARE:
            self._compact()

    def search(self, query: str, unit: Rows, *, top_k: int, score_threshold: float) -> tuple[RecalledFinding, ...]:
        """Return the findings with at least this score, the best first, ties by id, at most `top_k`."""
        if not self._places:
            return ()
        shares = self._shares(query)
        near = _mean(products(self._matrix[: len(self._findings)], unit).astype(np.float64), shares)
        found = []
        for place in self._candidates(near, top_k, score_threshold):
            finding = self._findings[place]
            exact = np.float64(cosine(self._matrix[place : place + 1], unit))  # the same whatever other rows there are
            score = round(float(_mean(exact, shares[place]) ** EXPONENT), 6)
            if finding is not None and score >= score_threshold:
                found.append((-score, finding.finding_id, finding))
        found.sort(key=lambda one: one[:2])
        return tuple(_recalled(finding, -score) for score, _, finding in found[:top_k])

    def _shares(self, query: str) -> npt.NDArray[np.float64]:
        """Return the share of the query's terms that each place has."""
        shares, total = np.zeros(len(self._findings)), 0.0
        for term in sorted({*terms(query)}):
            weight = self._rarity(term)
            total += weight
            if (places := self._having.get(term)) is not None:
                shares[np.frombuffer(places, np.int32)] += weight
        return shares / total if total else shares

    def _rarity(self, term: str) -> float:
        has = self._counts[term]
        return math.log(1 + (len(self._places) - has + 0.5) / (has + 0.5))

    def _candidates(self, near: npt.NDArray[np.float64], top_k: int, score_threshold: float) -> list[int]:
        """Return the places that may be among the best: never one too few, despite rounding."""
        near[self._removed] = -1.0
        needed = max(0.0, score_threshold) ** (1 / EXPONENT) - SLACK
        if len(near) > top_k:
            needed = max(needed, float(np.partition(near, -top_k)[-top_k]) - SLACK)
        return [int(place) for place in np.flatnonzero(near >= max(needed, -0.5))]

    def _compact(self) -> None:
        kept = [(finding, self._matrix[place]) for place, finding in enumerate(self._findings) if finding is not None]
        self._empty()
        for finding, unit in kept:
            self.put(finding, unit)


def _mean(cosines: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return (1 - TERMS_SHARE) * np.clip(cosines, 0.0, 1.0) + TERMS_SHARE * np.minimum(shares, 1.0)


def _terms_of(finding: Finding) -> frozenset[str]:
    return frozenset(terms(f"{finding.file_path} {finding.content}"))


def _recalled(finding: Finding, score: float) -> RecalledFinding:
    return RecalledFinding(**{name: getattr(finding, name) for name in FIELDS}, score=score)
