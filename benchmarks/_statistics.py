"""Computes figures from labels and scores, for the runs as they are and for every bootstrap sample at once.

`weights` is a matrix with a row for each draw and a column for each run: how often the draw contains the run. Row 0 is
the runs as they are. Each function returns one value for each draw; `interval` reduces them to a point and 95 % bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[np.float64]
Draws: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure and the bounds that contain it in 95 % of the bootstrap samples; NaN if it is undefined."""

    point: float
    low: float
    high: float


def redraws(tasks: Sequence[str], boot: int, name: str) -> Draws:
    """Return the weights of `boot` bootstrap samples of whole tasks; equal for equal tasks and name, to pair figures.

    Whole tasks are drawn because the runs of one task are not independent.
    """
    known, task_of = np.unique(np.asarray(tasks, dtype=np.str_), return_inverse=True)
    random = np.random.default_rng(int(sha256(name.encode()).hexdigest()[:8], 16))
    drawn = random.integers(0, max(1, len(known)), (boot, len(known)))
    times = [np.bincount(tasks_drawn, minlength=len(known))[task_of] for tasks_drawn in drawn]
    return np.vstack([np.ones(len(task_of)), *times])


def interval(draws: Draws) -> Interval:
    """Return row 0 and the percentiles 2.5 and 97.5 of the other rows, ignoring draws without a value."""
    values = draws[1:][~np.isnan(draws[1:])]
    low, high = np.percentile(values, (2.5, 97.5)) if len(values) else (math.nan, math.nan)
    return Interval(point=float(draws[0]), low=float(low), high=float(high))


def mean_of(figures: Iterable[Draws]) -> Draws:
    """Return the mean of the figures that exist in each draw."""
    rows = np.vstack(list(figures))
    known = ~np.isnan(rows)
    return ratio(np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def ratio(over: Draws, under: Draws) -> Draws:
    """Divide, with NaN for a denominator of 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(under > 0, over / under, np.nan))
