"""A pattern as stored: the fields that a search needs, and the pattern itself as JSON that is parsed on demand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from ...exceptions import StoreError
from ...patterns import exemplars, pattern_json, pattern_of
from ...types import Pattern, Tier
from ...util.json import compact

Stats: TypeAlias = "Mapping[str, Mapping[str, int]]"
"""Counts by pattern id."""
Bytes: TypeAlias = "bytes | memoryview"
Block: TypeAlias = "tuple[Tier, str | None, bool]"
"""Tier, org or None, and whether the pattern is signal-only: rows with equal keys are searched together."""


class Row:
    """One pattern. `body` is its JSON; `vectors` holds its exemplars' float32 rows, or None if not embedded yet."""

    __slots__ = ("_pattern", "body", "failure_type", "gate", "id", "off", "org_id", "signal", "tier", "vectors")

    def __init__(
        self,
        name: str,
        tier: Tier,
        org_id: str | None,
        failure_type: str | None,
        gate: float | None,
        signal: bool,
        off: bool,
        text: str | None,
        vectors: Bytes | None,
        pattern: Pattern | None = None,
    ) -> None:
        self.id, self.tier, self.org_id, self.failure_type = name, tier, org_id, failure_type
        self.gate, self.signal, self.off = gate, bool(signal), bool(off)
        self.body, self.vectors, self._pattern = text, vectors, pattern

    @property
    def block(self) -> Block:
        return self.tier, self.org_id, self.signal

    @property
    def pattern(self) -> Pattern:
        """Return the pattern without the store's counts."""
        if self._pattern is None:
            try:
                self._pattern = pattern_of(json.loads(self.body or ""))
            except ValueError as exc:  # not JSON, or not a pattern
                raise StoreError(
                    f"row {self.id!r}", f"is damaged ({exc}): remove the pattern, or add it again"
                ) from exc
        return self._pattern

    @property
    def texts(self) -> tuple[str, ...]:
        return exemplars(self.pattern) if self.searched else ()

    @property
    def searched(self) -> bool:
        """Return True if the pattern is found by its vectors."""
        return not self.off and self.tier != "e3"

    def told(self, stats: Stats) -> Pattern:
        """Return the pattern with these counts."""
        counted = stats.get(self.id)
        return self.pattern if not counted else replace(self.pattern, stats=counted)


def row_of(pattern: Pattern, vectors: Bytes | None = None) -> Row:
    kept = (pattern.id, pattern.tier, pattern.org_id, pattern.failure_type, pattern.gate_threshold)
    return Row(*kept, pattern.requires_signal, pattern.off, None, vectors, pattern)


def body(pattern: Pattern) -> str:
    """Return a pattern's JSON without its counts, which are stored separately."""
    return compact(pattern_json(replace(pattern, stats={})))
