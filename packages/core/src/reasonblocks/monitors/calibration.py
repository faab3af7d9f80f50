"""What recorded runs say of the monitors' numbers: when one fires, and how much each evidence weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..types import Level

__all__ = ["Calibration", "Weighed"]


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
