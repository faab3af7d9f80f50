"""The table of the built-in monitors, in the order in which they are reported; their weights, and a calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..exceptions import ConfigError
from ..types import JSON, Level
from . import claim_contradiction, cyclic_compression, late_sprawl, semantic_loop, silent_topic_drift, verification_skip
from .features import Features
from .finding import Finding
from .persistence import Weights
from .recall import Recall


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One monitor: `observe` a step with its memory, and `say` the text of a finding at a rung, 1 to 3."""

    name: str
    failure_type: str
    observe: Callable[[Features, JSON], Finding]
    say: Callable[[Finding, int, Recall], str]


MONITORS = tuple(
    BuiltIn(name=module.NAME, failure_type=module.FAILURE_TYPE, observe=module.observe, say=module.say)
    for module in (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorWeight:
    """One indicator's `weight` in the composite, for each unit above its `centre`."""

    weight: float
    centre: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The fitted numbers, shipped or an agent's own (`reasonblocks_workbench.calibration` reads, writes and fits them).

    `level` is the normal difficulty. `fires` has each monitor's threshold, and `composite` is the threshold of the
    composite path. `evidence` has the indicators with a weight above 0; the calibration file has the same key.
    `persistence` has the weights of the chance that trouble lasts, and its threshold.
    """

    level: Level
    fires: Mapping[str, float]
    composite: float
    persistence: Weights
    evidence: Mapping[str, IndicatorWeight] = field(default_factory=dict)
    own_level: bool = False
    """True if the agent's own level may replace the thresholds."""
