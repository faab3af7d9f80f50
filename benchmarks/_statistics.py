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
Flags: TypeAlias = npt.NDArray[np.bool_]
FALSE_ALARMS = 0.10
"""The share of successful runs that a threshold may flag (MONITORS section 5)."""
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure and the bounds that contain it in 95 % of the bootstrap samples; NaN if it is undefined."""

    point: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """2x2 tables of failures and successes among exposed and other runs: one column per table, one row per draw."""

    exposed_failing: Draws
    exposed_passing: Draws
    other_failing: Draws
    other_passing: Draws

    @property
    def total(self) -> Draws:
        return self.exposed_failing + self.exposed_passing + self.other_failing + self.other_passing

    @staticmethod
    def joined(parts: Sequence[Tables]) -> Tables:
        names = ("exposed_failing", "exposed_passing", "other_failing", "other_passing")
        return Tables(**{name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in names})


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


def auroc(failing: Flags, scores: Values, weights: Draws) -> Draws:
    """Return the chance that a failing run scores above a successful one; a tie counts one half."""
    bad, good = _by_score(failing, scores, weights)
    good_below = np.cumsum(good, axis=1) - good
    won = (bad * (good_below + good / 2)).sum(axis=1)
    return ratio(won, bad.sum(axis=1) * good.sum(axis=1))


def recall(failing: Flags, scores: Values, weights: Draws) -> Draws:
    """Return the largest share of failing runs that a threshold catches with at most 10 % false alarms."""
    bad, good = _by_score(failing, scores, weights)
    caught = ratio(_from_the_top(bad), bad.sum(axis=1, keepdims=True))
    flagged = ratio(_from_the_top(good), good.sum(axis=1, keepdims=True))
    return np.asarray(np.where(flagged <= FALSE_ALARMS + _ROUNDING, caught, 0.0).max(axis=1))


def stratified_auroc(failing: Flags, scores: Values, strata: npt.NDArray[np.int64], weights: Draws) -> Draws:
    """Return the AUROC over the pairs whose two runs are in one stratum."""
    won, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for stratum in np.unique(strata):
        here = strata == stratum
        bad, w = failing[here], weights[:, here]
        if bad.all() or not bad.any():
            continue
        possible = w[:, bad].sum(axis=1) * w[:, ~bad].sum(axis=1)
        won += np.nan_to_num(auroc(bad, scores[here], w)) * possible
        pairs += possible
    return ratio(won, pairs)


def share(flags: Flags, among: Flags, weights: Draws) -> Draws:
    """Return the share of the runs `among` that are flagged."""
    return ratio(weights[:, flags & among].sum(axis=1), weights[:, among].sum(axis=1))


def odds_ratio(tables: Tables) -> Draws:
    """Return the odds ratio of failure of the exposed, pooled over the tables (Mantel and Haenszel 1959)."""
    for_, against = _pooled_terms(tables)
    return ratio(for_.sum(axis=1), against.sum(axis=1))


def wald_bounds(tables: Tables) -> tuple[float, float]:
    """Return 95 % bounds of row 0's pooled odds ratio for independent runs (Robins, Breslow and Greenland)."""
    for_, against = (part[0] for part in _pooled_terms(tables))
    r, s = for_.sum(), against.sum()
    if not (r > 0 and s > 0):
        return math.nan, math.nan
    p = np.divide(tables.exposed_failing[0] + tables.other_passing[0], tables.total[0])
    q = 1 - p
    variance = (p * for_).sum() / (2 * r * r)
    variance += (p * against + q * for_).sum() / (2 * r * s) + (q * against).sum() / (2 * s * s)
    half = 1.96 * math.sqrt(variance)
    middle = math.log(r / s)
    return math.exp(middle - half), math.exp(middle + half)


def mean_of(figures: Iterable[Draws]) -> Draws:
    """Return the mean of the figures that exist in each draw."""
    rows = np.vstack(list(figures))
    known = ~np.isnan(rows)
    return ratio(np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def _pooled_terms(tables: Tables) -> tuple[Draws, Draws]:
    for_ = ratio(tables.exposed_failing * tables.other_passing, tables.total)
    against = ratio(tables.exposed_passing * tables.other_failing, tables.total)
    return np.nan_to_num(for_), np.nan_to_num(against)


def _by_score(failing: Flags, scores: Values, weights: Draws) -> tuple[Draws, Draws]:
    """Return the weight of failing and of successful runs at each distinct score, the lowest first."""
    levels, level_of = np.unique(scores, return_inverse=True)
    order = np.argsort(level_of, kind="stable")
    starts = np.searchsorted(level_of[order], np.arange(len(levels)))
    ordered, bad = weights[:, order], failing[order]
    return np.add.reduceat(ordered * bad, starts, axis=1), np.add.reduceat(ordered * ~bad, starts, axis=1)


def _from_the_top(weights: Draws) -> Draws:
    return np.cumsum(weights[:, ::-1], axis=1)


def ratio(over: Draws, under: Draws) -> Draws:
    """Divide, with NaN for a denominator of 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(under > 0, over / under, np.nan))
