"""Whether a run into which something is injected is a worse one than its like: the first firing, with length held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._columns import Scored
from ._statistics import Draws, Flags, Tables, interval, odds_ratio, wald_bounds

__all__ = ["Lift", "first_firings", "lift"]

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """The odds ratio of failure after the first firing, and what it rests on.

    `fired` is the number of runs that fired with a step still to come; `failing` the share of them that failed,
    `expected` that share had they failed as the runs beside them. `bounds` are those that take every run for itself.
    """

    draws: Draws
    bounds: tuple[float, float]
    fired: int
    failing: float
    expected: float


def first_firings(runs: Scored) -> Tables | None:
    """A table a step: the runs that fire there for the first time, against those that go on as long and have not yet.

    Runs end at different steps; only those that still have a step to come are compared. None without a firing.
    """
    return _tables(list(_compared(runs)), runs)


def _compared(runs: Scored) -> Iterator[tuple[Flags, Flags]]:
    """Which runs fire first at a step, and which stand beside them; for each step where there are both."""
    first = _first(runs.fires)
    for step in np.unique(first[first < runs.lengths - 1]):
        goes_on = runs.lengths > step + 1
        fire, beside = goes_on & (first == step), goes_on & (first > step)
        if beside.any():
            yield fire, beside


def _first(fires: Sequence[Flags]) -> npt.NDArray[np.int64]:
    return np.array([int(np.flatnonzero(flags)[0]) if flags.any() else NEVER for flags in fires], dtype=np.int64)


def _tables(compared: Sequence[tuple[Flags, Flags]], runs: Scored) -> Tables | None:
    if not compared:
        return None
    fire, beside = (np.array(flags, dtype=np.float64).T for flags in zip(*compared, strict=True))
    bad = runs.failing[:, None]
    return Tables(
        exposed_failing=runs.weights @ (fire * bad),
        exposed_passing=runs.weights @ (fire * ~bad),
        other_failing=runs.weights @ (beside * bad),
        other_passing=runs.weights @ (beside * ~bad),
    )


def lift(tables: Tables) -> Lift | None:
    """Pooled over steps, and sources if the tables are of several. None where one side is empty."""
    draws = odds_ratio(tables)
    if not (interval(draws).point > 0):
        return None
    fired = tables.exposed_failing[0] + tables.exposed_passing[0]
    rate_beside = tables.other_failing[0] / (tables.other_failing[0] + tables.other_passing[0])
    return Lift(
        draws=draws,
        bounds=wald_bounds(tables),
        fired=int(fired.sum()),
        failing=float(tables.exposed_failing[0].sum() / fired.sum()),
        expected=float((fired * rate_beside).sum() / fired.sum()),
    )
