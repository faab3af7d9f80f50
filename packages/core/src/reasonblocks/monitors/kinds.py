"""Names the kinds of findings, to which texts and lessons are tied."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "contradiction": ("claim", "red"),
        "loop": ("repeat", "retry", "waiting", "error", "reworded", "unmoved", "failing"),
        "unverified": ("done",),
        "churn": ("stale", "same_result"),
    }
)
"""The kinds of findings by failure type, in the order of the monitors' table; no two failure types share a kind.

A monitor that only has a score has none.
"""
TYPES: Mapping[str, str] = MappingProxyType({kind: name for name, kinds in KINDS.items() for kind in kinds})
"""The failure type of each kind."""
