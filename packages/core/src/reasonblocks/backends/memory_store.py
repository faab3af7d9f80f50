"""Patterns in this process's memory: an immutable index behind one reference, so readers never lock."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..exceptions import ConfigError
from ..ports import Embedder
from ..requests import Retrieve
from ..types import ETrace, Pattern, Tier
from .embed import HashEmbedder

__all__ = ["MemoryStore"]

TIERS: tuple[Tier, ...] = ("e1", "e2", "e3")


Sparse = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A pattern and its exemplars' vectors, as what is not zero of them."""

    pattern: Pattern
    vectors: tuple[Sparse, ...]


class MemoryStore:
    """Finds patterns by the best of their exemplars; tier e3 is a list in the order of its ids.

    A search sees the patterns of the asked org and, but for tier e1, those of no org. Raises `ConfigError` for a
    pattern that no search could find.
    """

    def __init__(self, patterns: Iterable[Pattern] = (), *, embedder: Embedder | None = None) -> None:
        self.embedder: Embedder = embedder or HashEmbedder()
        self._lock = threading.Lock()
        self._entries: Mapping[str, _Entry] = {}
        self.add(patterns)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add patterns, or replace those of the same id: all of them or, after an error, none."""
        new = {pattern.id: self._entry(_checked(pattern)) for pattern in patterns}
        with self._lock:
            self._entries = {**self._entries, **new}

    def remove(self, pattern_id: str) -> bool:
        """False: there was none of that id."""
        with self._lock:
            left = {key: entry for key, entry in self._entries.items() if key != pattern_id}
            found, self._entries = len(left) < len(self._entries), left
        return found

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Best first, ties by id; a pattern's own `gate_threshold` goes before the asked similarity."""
        entries = [entry for entry in self._entries.values() if _visible(entry.pattern, request)]
        if request.tier == "e3":
            patterns = sorted((entry.pattern for entry in entries), key=lambda pattern: pattern.id)
            return tuple(ETrace(pattern=pattern) for pattern in patterns[: request.top_k])
        if not entries:
            return ()
        query = self.embedder.embed(request.query)
        found = [
            ETrace(pattern=entry.pattern, similarity=self._similarity(query, entry, request.tier)) for entry in entries
        ]
        near = [trace for trace in found if trace.similarity >= _gate(trace.pattern, request.similarity)]
        return tuple(sorted(near, key=lambda trace: (-trace.similarity, trace.pattern.id))[: request.top_k])

    def _similarity(self, query: Sequence[float], entry: _Entry, tier: Tier) -> float:
        cosine = max(math.fsum(query[at] * value for at, value in vector) for vector in entry.vectors)
        return self.embedder.curves.of(tier)(cosine)

    def _entry(self, pattern: Pattern) -> _Entry:
        return _Entry(pattern, tuple(_sparse(self.embedder.embed(text)) for text in _exemplars(pattern)))


def _sparse(vector: Sequence[float]) -> Sparse:
    return tuple((at, float(value)) for at, value in enumerate(vector) if value)


def _checked(pattern: Pattern) -> Pattern:
    if pattern.tier not in TIERS:
        raise ConfigError.unknown(f"pattern {pattern.id!r}: tier", pattern.tier, TIERS)
    if pattern.tier == "e1" and pattern.org_id is None:
        raise ConfigError(f"pattern {pattern.id!r}: org_id", None, "tier e1 belongs to one customer: give its org_id")
    if pattern.tier != "e3" and not _exemplars(pattern):
        raise ConfigError(f"pattern {pattern.id!r}: exemplars", pattern.exemplars, "give at least one text to match")
    return pattern


def _exemplars(pattern: Pattern) -> tuple[str, ...]:
    """What similarity is measured against: the exemplars, else the text that the tier's fields name for it."""
    if pattern.tier == "e3" or pattern.exemplars:
        return pattern.exemplars
    trigger = pattern.fields.get("trigger_state")
    described = trigger.get("trajectory_description") if isinstance(trigger, Mapping) else None
    text = pattern.fields.get("task_context_embedding_text") if pattern.tier == "e1" else described
    return (text,) if isinstance(text, str) and text.strip() else ()


def _visible(pattern: Pattern, request: Retrieve) -> bool:
    if pattern.tier != request.tier:
        return False
    if pattern.org_id != request.org_id and (pattern.org_id is not None or request.tier == "e1"):
        return False
    return request.failure_type is None or pattern.failure_type in (None, request.failure_type)


def _gate(pattern: Pattern, similarity: float) -> float:
    return similarity if pattern.gate_threshold is None else pattern.gate_threshold
