"""Which patterns say the same, or would be found by the same thoughts: one of them is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..backends.local_store import LocalStore
from ..patterns import exemplars
from ..ports import Embedder
from ..render import render_pattern
from ..requests import Retrieve
from ..text import collapse
from ..types import Pattern

__all__ = ["NEAR", "Near", "near_duplicates"]

NEAR = 0.9
"""The calibrated similarity of two exemplars from which on they are taken for one. 0.8 is what 1 % of unrelated texts
reach with any of 400 patterns (PATTERNS section 2); no two shipped patterns reach 0.9."""
BANK = "bank"
"""The org of a comparison: patterns of different orgs are never compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Two patterns, by id, in order. `same`: a model reads the same; else `similarity` is that of their exemplars."""

    first: str
    second: str
    similarity: float
    same: bool


def near_duplicates(patterns: Sequence[Pattern], embedder: Embedder | None = None) -> tuple[Near, ...]:
    """Every pair, the nearest first. Only patterns of one tier, org and failure type compete with each other.

    Without an `embedder` it is the library's. What an embedder raises is passed on.
    """
    found: dict[tuple[str, str], Near] = {}
    for group in _groups(patterns):
        for near in (*_same(group), *_alike(group, embedder)):
            pair = (near.first, near.second)
            found[pair] = max(near, found.get(pair, near), key=_nearness)
    return tuple(sorted(found.values(), key=lambda one: (*(-value for value in _nearness(one)), one.first, one.second)))


def _nearness(near: Near) -> tuple[bool, float]:
    return near.same, near.similarity


def _pair(one: str, other: str, similarity: float, *, same: bool = False) -> Near:
    return Near(first=min(one, other), second=max(one, other), similarity=similarity, same=same)


def _groups(patterns: Iterable[Pattern]) -> Iterator[list[Pattern]]:
    groups: dict[tuple[str, str | None, str | None], list[Pattern]] = defaultdict(list)
    for one in patterns:
        if not one.off:
            groups[one.tier, one.org_id, one.failure_type].append(one)
    yield from (group for group in groups.values() if len(group) > 1)


def _same(group: Iterable[Pattern]) -> Iterator[Near]:
    """What a model would read, letter by letter."""
    seen: dict[str, str] = {}
    for one in group:
        text = collapse(render_pattern(one.tier, "", one.fields) or "").casefold()
        if text and (first := seen.setdefault(text, one.id)) != one.id:
            yield _pair(first, one.id, 1.0, same=True)


def _alike(group: Iterable[Pattern], embedder: Embedder | None) -> Iterator[Near]:
    """Each text asks for the others, as the thoughts of a run would."""
    bank = [Pattern(id=one.id, tier="e2", exemplars=texts) for one in group if (texts := _lessons(one))]
    with LocalStore(patterns=bank, embedder=embedder) as store:
        for one in bank:
            for text in one.exemplars:
                yield from (_pair(one.id, other, near) for other, near in _found(store, text) if other != one.id)


def _lessons(pattern: Pattern) -> tuple[str, ...]:
    """What it is found by; of a standing rule the rule."""
    rule = pattern.fields.get("instruction")
    return exemplars(pattern) or ((rule,) if isinstance(rule, str) and rule.strip() else ())


def _found(store: LocalStore, text: str) -> Iterator[tuple[str, float]]:
    asked = Retrieve(tier="e2", texts=(text,), top_k=5, similarity=NEAR, org_id=BANK, failure_type=None, model="")
    yield from ((trace.pattern.id, trace.similarity) for trace in store.search(asked))
