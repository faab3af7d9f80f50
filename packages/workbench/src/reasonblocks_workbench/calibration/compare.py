"""Cross-validates a calibration: measures it on folds of tasks that it was not fitted to, and compares the prior."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import Calibration

from ._columns import Judged, Observed, Scored, by_source, columns, scored
from .fitting import MIN_OF_EACH, composites, fitted, opens, without_outcomes
from .statistics import Draws, Flags, Interval, Tables, interval, mean_of, odds_ratio, wald_bounds

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """The odds ratio of failure after the first firing, and the counts behind it.

    `fired` is the number of runs that fired with a step still to come, `failing` the share of them that failed, and
    `expected` the share that would have failed at the rate of the runs they are compared with. `bounds` treat all runs
    as independent.
    """

    draws: Draws
    bounds: tuple[float, float]
    fired: int
    failing: float
    expected: float


def first_firings(runs: Scored) -> Tables | None:
    """Return one table for each step: the runs that first fire there, against those that have not fired so far.

    Only runs with a step still to come are compared. Returns None without a firing.
    """
    return _tables(list(_exposures(runs)), runs)


def _exposures(runs: Scored) -> Iterator[tuple[Flags, Flags]]:
    """Yield, for each step that has both, the runs that first fire there and those that have not fired so far."""
    first = _first_firing(runs.fires)
    for step in np.unique(first[first < runs.lengths - 1]):
        goes_on = runs.lengths > step + 1
        fire, others = goes_on & (first == step), goes_on & (first > step)
        if others.any():
            yield fire, others


def _first_firing(fires: Sequence[Flags]) -> npt.NDArray[np.int64]:
    return np.array([int(np.flatnonzero(flags)[0]) if flags.any() else NEVER for flags in fires], dtype=np.int64)


def _tables(exposures: Sequence[tuple[Flags, Flags]], runs: Scored) -> Tables | None:
    if not exposures:
        return None
    fire, others = (np.array(flags, dtype=np.float64).T for flags in zip(*exposures, strict=True))
    bad = runs.failing[:, None]
    return Tables(
        exposed_failing=runs.weights @ (fire * bad),
        exposed_passing=runs.weights @ (fire * ~bad),
        other_failing=runs.weights @ (others * bad),
        other_passing=runs.weights @ (others * ~bad),
    )


def lift(tables: Tables) -> Lift | None:
    """Return the odds ratio pooled over steps and sources; None if one side is empty."""
    draws = odds_ratio(tables)
    if not (interval(draws).point > 0):
        return None
    fired = tables.exposed_failing[0] + tables.exposed_passing[0]
    rate_of_others = tables.other_failing[0] / (tables.other_failing[0] + tables.other_passing[0])
    return Lift(
        draws=draws,
        bounds=wald_bounds(tables),
        fired=int(fired.sum()),
        failing=float(tables.exposed_failing[0].sum() / fired.sum()),
        expected=float((fired * rate_of_others).sum() / fired.sum()),
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
    """Return the figures of the cross-validated calibration and those of the prior, as far as they can be computed."""
    found = _by_folds(runs, lambda rest: _fitted_or_prior(rest, prior, false_alarms), folds)
    return _figures(runs, found), _figures(runs, [prior] * len(runs))


def flagged(
    runs: Sequence[Observed], prior: Calibration, *, false_alarms: float, folds: int = FOLDS
) -> tuple[float, float]:
    """Return the share of runs with an alarm by the cross-validated calibration, fitted without outcomes, and by the
    prior."""
    found = _by_folds(runs, lambda rest: without_outcomes(rest, prior, false_alarms) if rest else prior, folds)
    return _share_flagged(runs, found), _share_flagged(runs, [prior] * len(runs))


def _share_flagged(runs: Sequence[Observed], calibrations: Sequence[Calibration]) -> float:
    return sum(any(opens(run, made)) for run, made in zip(runs, calibrations, strict=True)) / len(runs)


def _by_folds(
    runs: Sequence[Observed], fitted_to: Callable[[Sequence[Observed]], Calibration], folds: int
) -> list[Calibration]:
    """Return, for each run, the calibration fitted without its fold of the tasks."""
    fold_of = {task: number % folds for number, task in enumerate(sorted({run.task_key for run in runs}))}
    fits = [fitted_to([run for run in runs if fold_of[run.task_key] != fold]) for fold in range(folds)]
    return [fits[fold_of[run.task_key]] for run in runs]


def _fitted_or_prior(rest: Sequence[Observed], prior: Calibration, false_alarms: float) -> Calibration:
    """Fit to the rest, or return the prior if the rest has too few runs of one outcome."""
    try:
        return fitted(rest, prior, false_alarms)
    except ConfigError:
        return prior


def _figures(runs: Sequence[Observed], calibrations: Sequence[Calibration]) -> dict[str, Interval]:
    """Return the mean over the sources that have enough of both outcomes, and one `lift` for all of them.

    Sources whose runs stop at success count only if there is no other source.
    """
    sources = [source for source in _scored(runs, calibrations) if _has_both(source)]
    counted = [source for source in sources if not source.oracle_stop] or sources
    figures = [columns(source) for source in counted]
    found = {
        name: mean_of(draws) for name in FIGURES if (draws := [by_name[name] for by_name in figures if name in by_name])
    }
    pooled = _pooled_lift([source for source in counted if not source.oracle_stop])
    if pooled is not None:
        found["lift"] = pooled
    return {name: interval(found[name]) for name in FIGURES if name in found}


def _scored(runs: Sequence[Observed], calibrations: Sequence[Calibration]) -> list[Scored]:
    by_run = {id(run): calibration for run, calibration in zip(runs, calibrations, strict=True)}
    return [
        scored(
            name,
            [_judged(run, by_run[id(run)]) for run in group],
            BOOT,
            oracle_stop=any(run.stopped_at_success for run in group),
        )
        for name, group in by_source(runs).items()
    ]


def _judged(run: Observed, calibration: Calibration) -> Judged:
    return Judged(
        task_key=run.task_key, failed=run.failed, scores=composites(run, calibration), fires=opens(run, calibration)
    )


def _has_both(runs: Scored) -> bool:
    return min(int(runs.failing.sum()), int((~runs.failing).sum())) >= MIN_OF_EACH


def _pooled_lift(sources: Sequence[Scored]) -> Draws | None:
    tables = [found for source in sources if (found := first_firings(source))]
    pooled = lift(Tables.joined(tables)) if tables else None
    return pooled.draws if pooled else None
