"""Names the kinds of findings, and decides which kinds a lesson fits."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..types import Pattern

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "contradiction": ("claim", "value", "assumed"),
        "loop": (
            "repeat", "unmoved", "retry", "cycle", "error", "failing", "redone", "reworded", "waiting", "same_result",
            "same_error",
        ),
        "unverified": ("done", "many"),
        "churn": ("churn", "stale"),
        "sprawl": ("sprawl",),
        "drift": ("drift",),
    }
)  # fmt: skip
"""The kinds of findings, by failure type, in the order of the monitors' table. No two failure types share a kind."""
TYPES: Mapping[str, str] = MappingProxyType({kind: name for name, kinds in KINDS.items() for kind in kinds})
"""The failure type of each kind."""


def fits(pattern: Pattern, kind: str | None) -> bool:
    """Return True if the pattern may go with a finding of this kind; None is a finding of unknown kind."""
    return not pattern.kinds or kind in pattern.kinds
