"""Fits the level of an agent's difficulty to its recorded runs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from reasonblocks.engine.scoring import LEVEL_STEPS, calm_of, parts_of
from reasonblocks.monitors.calibration import SHIPPED_LEVEL
from reasonblocks.types import Level

from ..traces import RecordedRun


def fit_level(runs: Iterable[RecordedRun]) -> Level:
    """Return the mean raw difficulty, without errors, of the runs' first steps, with the shipped spread.

    The first steps also set a live run's own level. Raises `ValueError` if no run has a step.
    """
    calm = [calm_of(parts_of(step)) for run in runs for step in run.steps[:LEVEL_STEPS]]
    if not calm:
        raise ValueError("no run has a step")
    return Level(mean=round(math.fsum(calm) / len(calm), 4), spread=SHIPPED_LEVEL.spread)
