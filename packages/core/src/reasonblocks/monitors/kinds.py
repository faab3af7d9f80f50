"""Names the kinds of findings, to which texts and lessons are tied."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "contradiction": ("claim", "red", "value", "assumed"),
        "loop": (
            "repeat", "unmoved", "retry", "cycle", "error", "failing", "redone", "reworded", "waiting", "unreadable",
            "same_result",
        ),
        "unverified": ("done", "nothing", "many"),
        "churn": ("churn", "stale"),
        "sprawl": ("sprawl", "barren"),
        "drift": ("drift", "away"),
    }
)  # fmt: skip
"""The kinds of findings, by failure type, in the order of the monitors' table. No two failure types share a kind."""
TYPES: Mapping[str, str] = MappingProxyType({kind: name for name, kinds in KINDS.items() for kind in kinds})
"""The failure type of each kind."""
