"""What a calibration is worth to runs that it was not fitted to: by folds of tasks, beside the one it started from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..exceptions import ConfigError
from ..monitors.calibration import Calibration
from ._columns import Judged, Scored, columns, scored
from ._fit import FEWEST_OF_EACH, fitted
from ._gate import composites, opens
from ._lift import first_firings, lift
from ._observe import Observed, by_source
from ._statistics import Draws, Interval, Tables, interval, mean_of

__all__ = ["FIGURES", "FOLDS", "compared"]

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
    return min(int(runs.failing.sum()), int((~runs.failing).sum())) >= FEWEST_OF_EACH


def _lift(sources: Sequence[Scored]) -> Draws | None:
    tables = [found for one in sources if (found := first_firings(one))]
    over = lift(Tables.joined(tables)) if tables else None
    return over.draws if over else None
