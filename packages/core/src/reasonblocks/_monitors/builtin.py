"""The table of the built-in monitors, in the order in which they are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..exceptions import ConfigError
from ..types import JSON, Level
from . import claim_contradiction, cyclic_compression, late_sprawl, semantic_loop, silent_topic_drift, verification_skip
from .features import Features
from .finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One row of the table."""

    name: str
    failure_type: str
    observe: Callable[[Features, JSON], Finding]
    say: Callable[[Finding, int], str]


MONITORS = tuple(
    BuiltIn(name=one.NAME, failure_type=one.FAILURE_TYPE, observe=one.observe, say=one.say)
    for one in (
        claim_contradiction,
        semantic_loop,
        verification_skip,
        cyclic_compression,
        late_sprawl,
        silent_topic_drift,
    )
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
"""Each profile sums to 1 (MONITORS section 1)."""


def resolve_weights(
    profile: str, given: Mapping[str, float] | None = None, custom: Iterable[str] = ()
) -> dict[str, float]:
    """The profile's weights with the given ones over them, each in [0, 1]; a `custom` monitor has 0 unless given.

    Raises `ConfigError` for an unknown profile or monitor, and for a weight that is not a number.
    """
    if profile not in WEIGHTS:
        raise ConfigError.unknown("task_profile", profile, WEIGHTS)
    weights = {**dict.fromkeys(custom, 0.0), **WEIGHTS[profile]}
    for name, weight in (given or {}).items():
        if name not in weights:
            raise ConfigError.unknown("weights", name, weights)
        weights[name] = _in_bounds(name, weight)
    return weights


def _in_bounds(name: str, weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or math.isnan(weight):
        raise ConfigError(f"weights[{name!r}]", weight, "a number is needed, 0 to 1")
    return min(1.0, max(0.0, float(weight)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One evidence: what it adds to the composite for each unit that it lies above its centre."""

    weight: float
    centre: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The fitted numbers, shipped or an agent's own (`reasonblocks.calibration` reads, writes and fits them).

    `level` is what is normal for the difficulty. `fires` has each monitor's threshold, `composite` that of the second
    path. `evidence` has those that weigh anything.
    """

    level: Level
    fires: Mapping[str, float]
    composite: float
    evidence: Mapping[str, Weighed] = field(default_factory=dict)
