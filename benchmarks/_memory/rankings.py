"""The rankings that the benchmark of codebase memory compares, each from one codebase's findings to scores."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TypeAlias

from reasonblocks.backends.embed import default_embedder
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.backends.stores.finding_index import embedded_text, terms
from reasonblocks.backends.stores.vectors import Vectors
from reasonblocks.types import Codebase, Finding

Ranked: TypeAlias = "list[tuple[float, str]]"
"""Scores and ids, the best first, ties by id."""
Ranking: TypeAlias = "Callable[[str], Ranked]"
K1, B = 1.2, 0.75
"""The usual numbers of Okapi BM25."""
SCOPE = Codebase(org_id="benchmark", codebase_id="benchmark")


def ours(findings: Sequence[Finding]) -> Ranking:
    store = LocalFindings()
    store.put(SCOPE, findings)

    def rank(query: str) -> Ranked:
        found = store.search(SCOPE, query, top_k=len(findings), score_threshold=0.0)
        return [(one.score, one.finding_id) for one in found]

    return rank


def embedding(findings: Sequence[Finding]) -> Ranking:
    """The cosine alone, of the same texts."""
    vectors = Vectors(default_embedder())
    rows = vectors.embed([embedded_text(finding) for finding in findings])

    def rank(query: str) -> Ranked:
        cosines = (rows @ vectors.embed([query])[0]).tolist()
        return _ranked(zip(cosines, findings))

    return rank


def bm25(findings: Sequence[Finding]) -> Ranking:
    """Okapi BM25 on the terms of ours."""
    bags = [Counter(terms(f"{finding.file_path} {finding.content}")) for finding in findings]
    having = Counter(term for bag in bags for term in bag)
    mean = sum(bag.total() for bag in bags) / len(bags)

    def weight(term: str) -> float:
        return math.log(1 + (len(bags) - having[term] + 0.5) / (having[term] + 0.5))

    def score(asked: Sequence[str], bag: Counter[str]) -> float:
        short = K1 * (1 - B + B * bag.total() / mean)
        return sum(weight(term) * bag[term] * (K1 + 1) / (bag[term] + short) for term in asked)

    def rank(query: str) -> Ranked:
        asked = sorted({*terms(query)})
        return _ranked((found, one) for one, bag in zip(findings, bags) if (found := score(asked, bag)) > 0)

    return rank


def fts5(findings: Sequence[Finding]) -> Ranking:
    """The full-text search of SQLite with its own tokenizer and bm25."""
    rows = [(number, finding.file_path, finding.content) for number, finding in enumerate(findings)]

    def rank(query: str) -> Ranked:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE found USING fts5 (path, content)")
            db.executemany("INSERT INTO found (rowid, path, content) VALUES (?,?,?)", rows)
            found = db.execute("SELECT -bm25(found), rowid FROM found WHERE found MATCH ?", (words,)).fetchall()
        return _ranked((score, findings[number]) for score, number in found)

    return rank


RANKINGS = {"ours": ours, "bm25": bm25, "fts5": fts5, "embedding": embedding}


def _ranked(found: Iterable[tuple[float, Finding]]) -> Ranked:
    return sorted(((score, one.finding_id) for score, one in found), key=lambda one: (-one[0], one[1]))
