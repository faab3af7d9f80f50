"""The table of the built-in monitors, in the order in which they are reported, and their weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..exceptions import ConfigError


class BuiltIn(NamedTuple):
    """One monitor, and the type of failure that it finds."""

    name: str
    failure_type: str


MONITORS = (
    BuiltIn("claim_contradiction", "contradiction"),
    BuiltIn("semantic_loop", "loop"),
    BuiltIn("verification_skip", "unverified"),
    BuiltIn("cyclic_compression", "churn"),
    BuiltIn("late_sprawl", "sprawl"),
    BuiltIn("silent_topic_drift", "drift"),
)
BY_NAME: Mapping[str, BuiltIn] = {row.name: row for row in MONITORS}


WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "coding": {
        "claim_contradiction": 0.30,
        "semantic_loop": 0.25,
        "verification_skip": 0.15,
        "cyclic_compression": 0.10,
        "late_sprawl": 0.10,
        "silent_topic_drift": 0.10,
    },
    "pr_review": {
        "claim_contradiction": 0.20,
        "semantic_loop": 0.30,
        "verification_skip": 0.10,
        "cyclic_compression": 0.15,
        "late_sprawl": 0.15,
        "silent_topic_drift": 0.10,
    },
    "qa": {
        "claim_contradiction": 0.40,
        "semantic_loop": 0.15,
        "verification_skip": 0.05,
        "cyclic_compression": 0.05,
        "late_sprawl": 0.10,
        "silent_topic_drift": 0.25,
    },
}
"""The weights of each task profile; they sum to 1 (MONITORS section 1)."""


def resolve_weights(
    profile: str, given: Mapping[str, float] | None = None, custom: Iterable[str] = ()
) -> dict[str, float]:
    """Return the profile's weights, replaced by the given ones and clamped to [0, 1]; a `custom` monitor defaults to 0.

    Raises `ConfigError` for an unknown profile or monitor, and for a weight that is not a number.
    """
    if profile not in WEIGHTS:
        raise ConfigError.unknown("task_profile", profile, WEIGHTS)
    weights = {**dict.fromkeys(custom, 0.0), **WEIGHTS[profile]}
    for name, weight in (given or {}).items():
        if name not in weights:
            raise ConfigError.unknown("weights", name, weights)
        weights[name] = _clamped(name, weight)
    return weights


def _clamped(name: str, weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or math.isnan(weight):
        raise ConfigError(f"weights[{name!r}]", weight, "a number is needed, 0 to 1")
    return min(1.0, max(0.0, float(weight)))
