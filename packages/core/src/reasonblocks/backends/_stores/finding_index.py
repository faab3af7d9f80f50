"""The findings of one codebase in memory, ranked by meaning and by shared terms."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, KeysView
from typing import TYPE_CHECKING

import numpy as np

from ...types import Finding, RecalledFinding

if TYPE_CHECKING:
    from .table import Rows

TERMS_SHARE = 0.5
"""Share of the terms in the score; the rest is the cosine's."""
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def terms(text: str) -> Iterator[str]:
    """Yield the words of a text and, of identifiers, also their parts: parse_rawHTML, parse, raw, html."""
    for word in _WORD.findall(text):
        yield word.lower()
        parts = _PART.findall(word)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)


def embedded_text(finding: Finding) -> str:
    """Return the text whose vector a search compares: the content, and the words of the path."""
    if not finding.file_path:
        return finding.content
    return f"{' '.join(_PART.findall(finding.file_path))}\n{finding.content}"


class FindingIndex:
    """Ranks findings for a query by a score in [0, 1]. One thread at a time uses it.

    The score is the weighted mean of the cosine of the vectors, 0 if negative, and the share of the query's terms that
    the finding or its path has. A term counts by its rarity among the findings.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._findings: list[Finding | None] = []
        self._matrix: Rows = np.empty((0, 0), np.float32)
        self._postings: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        self._frequencies: Counter[str] = Counter()

    @property
    def ids(self) -> KeysView[str]:
        return self._places.keys()

    def __len__(self) -> int:
        return len(self._places)

    def put(self, finding: Finding, unit: Rows) -> None:
        """Add a finding with its unit vector, or replace the one with its id."""
        self.remove([finding.finding_id])
        place = len(self._findings)
        self._make_room(place, len(unit))
        self._matrix[place] = unit
        self._findings.append(finding)
        self._places[finding.finding_id] = place
        for term in _terms_of(finding):
            self._postings[term].append(place)
            self._frequencies[term] += 1

    def remove(self, finding_ids: Iterable[str]) -> None:
        """Remove findings; unknown ids are skipped."""
        for name in finding_ids:
            if (place := self._places.pop(name, None)) is not None:
                finding, self._findings[place] = self._findings[place], None
                self._matrix[place] = 0
                assert finding is not None
                self._frequencies.subtract(_terms_of(finding))
        if len(self._findings) > 2 * len(self._places) + 64:
            self._compact()

    def search(self, query: str, unit: Rows, *, top_k: int, score_threshold: float) -> tuple[RecalledFinding, ...]:
        """Return the findings with at least this score, the best first, ties by id, at most `top_k`."""
        if not self._places:
            return ()
        scores = self._scores(query, unit)
        found = [
            (-score, finding.finding_id, finding)
            for place in np.flatnonzero(scores >= score_threshold).tolist()
            if (finding := self._findings[place]) is not None and (score := float(scores[place])) >= score_threshold
        ]
        best = sorted(found, key=lambda one: one[:2])[:top_k]
        return tuple(_recalled(finding, -score) for score, _, finding in best)

    def _scores(self, query: str, unit: Rows) -> np.ndarray:
        count = len(self._findings)
        cosines = np.clip((self._matrix[:count] @ unit).astype(np.float64), 0, 1)
        shared, total = np.zeros(count), 0.0
        for term in sorted(set(terms(query))):
            weight = self._rarity(term)
            total += weight
            if term in self._postings:
                shared[np.frombuffer(self._postings[term], np.int32)] += weight
        overlap = shared / total if total else shared
        return np.round((1 - TERMS_SHARE) * cosines + TERMS_SHARE * overlap, 6)

    def _rarity(self, term: str) -> float:
        has = self._frequencies[term]
        return math.log(1 + (len(self._places) - has + 0.5) / (has + 0.5))

    def _make_room(self, place: int, dim: int) -> None:
        if self._matrix.shape[1] != dim or place >= len(self._matrix):
            grown = np.zeros((max(64, 2 * place), dim), np.float32)
            if place:
                grown[:place] = self._matrix[:place]
            self._matrix = grown

    def _compact(self) -> None:
        kept = [(finding, self._matrix[place]) for place, finding in enumerate(self._findings) if finding is not None]
        self.__init__()  # type: ignore[misc]
        for finding, unit in kept:
            self.put(finding, unit)


def _terms_of(finding: Finding) -> frozenset[str]:
    return frozenset(terms(f"{finding.file_path} {finding.content}"))


def _recalled(finding: Finding, score: float) -> RecalledFinding:
    fields = {name: getattr(finding, name) for name in finding.__dataclass_fields__}
    return RecalledFinding(**fields, score=score)
