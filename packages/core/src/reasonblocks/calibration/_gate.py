"""What a calibration makes of what was observed: the composite after each step, and whether the gate opens."""

from __future__ import annotations

import math

from ..monitors.builtin import BY_NAME
from ..monitors.calibration import Calibration
from ..monitors.suite import WEIGHTS, by_evidence
from ._observe import Observed

__all__ = ["composites", "opens"]


def composites(run: Observed, made: Calibration) -> list[float]:
    """After each step, with the default weights."""
    found = []
    for gathered, findings in zip(run.evidence, run.findings, strict=True):
        usual = by_evidence(gathered, made)
        parts = [WEIGHTS["coding"][name] * max(usual[name], findings[name]) for name in BY_NAME]
        found.append(min(1.0, math.fsum(parts)))
    return found


def opens(run: Observed, made: Calibration) -> list[bool]:
    """By either path, for the first time: cooldown, cap and words are not asked."""
    together = composites(run, made)
    before = [0.0, *together]
    return [
        min(last, now) >= made.composite or any(findings[name] >= made.fires[name] for name in BY_NAME)
        for last, now, findings in zip(before, together, run.findings, strict=False)
    ]
