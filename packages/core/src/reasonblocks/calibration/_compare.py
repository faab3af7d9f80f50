"""What a calibration is worth to runs that it was not fitted to: by folds of tasks, beside the one it started from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._monitors.builtin import Calibration
from ..exceptions import ConfigError
from ._columns import Judged, Observed, Scored, by_source, columns, scored
from ._fit import MIN_OF_EACH, composites, fitted, opens
from ._statistics import Draws, Flags, Interval, Tables, interval, mean_of, odds_ratio, wald_bounds

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


FIGURES: Mapping[str, str] = {
    "land": "early warning, at equal length (AUROC)",
    "match": "whole runs of about equal length (AUROC)",
    "full": "whole runs; knows their length (AUROC)",
    "r10": "failing runs caught at 10 % false alarms",
    "lift": "odds of failure after the first alarm",
    "own_failing": "failing runs with an alarm",
    "own_passing": "successful runs with an alarm",
}
FOLDS = 5
BOOT = 400
"""Bootstrap samples of tasks."""


def compared(
    runs: Sequence[Observed], prior: Calibration, *, false_alarms: float, folds: int = FOLDS
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """The figures of each run's calibration by the other folds, and of the prior; those that can be told."""
    return _figures(runs, _by_folds(runs, prior, false_alarms, folds)), _figures(runs, [prior] * len(runs))


def _by_folds(runs: Sequence[Observed], prior: Calibration, false_alarms: float, folds: int) -> list[Calibration]:
    """For each run, what was fitted without its fold of the tasks."""
    fold_of = {task: number % folds for number, task in enumerate(sorted({run.task_key for run in runs}))}
    made = [
        _without([run for run in runs if fold_of[run.task_key] != fold], prior, false_alarms) for fold in range(folds)
    ]
    return [made[fold_of[run.task_key]] for run in runs]


def _without(rest: Sequence[Observed], prior: Calibration, false_alarms: float) -> Calibration:
    """The prior, where the rest has too few of one outcome."""
    try:
        return fitted(rest, prior, false_alarms)
    except ConfigError:
        return prior


def _figures(runs: Sequence[Observed], made: Sequence[Calibration]) -> dict[str, Interval]:
    """The mean over the sources that have enough of both outcomes; one `lift` for all of them.

    Sources that stop at success are left to themselves: with others beside them they do not count.
    """
    both = [one for one in _scored(runs, made) if _both(one)]
    told = [one for one in both if not one.oracle_stop] or both
    by_name = [columns(one) for one in told]
    found = {name: mean_of(draws) for name in FIGURES if (draws := [one[name] for one in by_name if name in one])}
    over = _lift([one for one in told if not one.oracle_stop])
    if over is not None:
        found["lift"] = over
    return {name: interval(found[name]) for name in FIGURES if name in found}


def _scored(runs: Sequence[Observed], made: Sequence[Calibration]) -> list[Scored]:
    by_run = {id(run): one for run, one in zip(runs, made, strict=True)}
    return [
        scored(
            name,
            [_judged(run, by_run[id(run)]) for run in group],
            BOOT,
            oracle_stop=any(run.stopped_at_success for run in group),
        )
        for name, group in by_source(runs).items()
    ]


def _judged(run: Observed, made: Calibration) -> Judged:
    return Judged(task_key=run.task_key, failed=run.failed, scores=composites(run, made), fires=opens(run, made))


def _both(runs: Scored) -> bool:
    return min(int(runs.failing.sum()), int((~runs.failing).sum())) >= MIN_OF_EACH


def _lift(sources: Sequence[Scored]) -> Draws | None:
    tables = [found for one in sources if (found := first_firings(one))]
    over = lift(Tables.joined(tables)) if tables else None
    return over.draws if over else None
