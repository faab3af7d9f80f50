"""Fits a calibration to finished runs: the weight of each kind of evidence, and the thresholds of the monitors.

Runs are only compared within one source and at the same number of steps, so that neither a run's length nor a source's
failure rate can pass for evidence. Failures and successes have equal weight there, and so have all sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reasonblocks.engine.scoring import LEVEL_STEPS
from reasonblocks.exceptions import ConfigError, ExtraMissing
from reasonblocks.monitors.builtin import BY_NAME, WEIGHTS, Calibration, IndicatorWeight
from reasonblocks.monitors.calibration import SHIPPED_LEVEL, shipped
from reasonblocks.monitors.indicators import DEEPEST, INDICATORS
from reasonblocks.monitors.suite import by_indicators
from reasonblocks.types import Level
from reasonblocks.util.json import evolve

from ..extras import EXTRAS
from ._columns import Observed, by_source
from ._lasting import fit_lasting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FALSE_ALARMS = 0.085
"""The share of successful runs in which something may fire, averaged over the sources."""
THRESHOLDS = tuple([round(0.6 + 0.05 * step, 2) for step in range(9)])
"""Every monitor scores a clear case at .6 or above."""
COMPOSITES = tuple([round(0.15 + 0.005 * step, 3) for step in range(100)])


def with_thresholds(made: Calibration, runs: Sequence[Observed], false_alarms: float) -> Calibration:
    """Add the lowest thresholds that `false_alarms` allows: first the monitors', then the composite's."""
    worst = {
        id(run): {name: max([found[name] for found in run.findings], default=0.0) for name in BY_NAME} for run in runs
    }
    fires = _monitor_thresholds(runs, worst, false_alarms)
    heights = {id(run): _sustained_composite(run, made) for run in runs}

    def together(composite: float) -> float:
        return _false_alarms(runs, lambda run: heights[id(run)] >= composite or _any_fires(worst[id(run)], fires))

    composite = next((threshold for threshold in COMPOSITES if together(threshold) <= false_alarms), COMPOSITES[-1])
    return evolve(made, fires=fires, composite=composite)


def _monitor_thresholds(
    runs: Sequence[Observed], worst: Mapping[int, Mapping[str, float]], false_alarms: float
) -> Mapping[str, float]:
    """Raise the threshold of the monitor that fires most, step by step, until all together fire rarely enough."""
    fires = dict.fromkeys(BY_NAME, THRESHOLDS[0])

    def alone(name: str) -> float:
        return _false_alarms(runs, lambda run: worst[id(run)][name] >= fires[name])

    while _false_alarms(runs, lambda run: _any_fires(worst[id(run)], fires)) > false_alarms:
        low = [name for name in BY_NAME if fires[name] < THRESHOLDS[-1]]
        if not low:
            break
        loudest = max(low, key=alone)
        fires[loudest] = THRESHOLDS[THRESHOLDS.index(fires[loudest]) + 1]
    return fires


def _any_fires(worst: Mapping[str, float], fires: Mapping[str, float]) -> bool:
    return any(worst[name] >= threshold for name, threshold in fires.items())


def _false_alarms(runs: Sequence[Observed], flagged: Callable[[Observed], bool]) -> float:
    """Return the share of flagged successful runs, averaged over the sources.

    Runs that were stopped at their success count only if there are no others: until then they went badly.
    """
    successes = [run for run in runs if not run.failed]
    counted = [run for run in successes if not run.stopped_at_success] or successes
    shares = [sum(map(flagged, group)) / len(group) for group in by_source(counted).values()]
    return math.fsum(shares) / len(shares)


def _sustained_composite(run: Observed, made: Calibration) -> float:
    """Return the highest composite that two consecutive steps reached."""
    found = composites(run, made)
    return max(map(min, found, found[1:]), default=0.0)


MIN_RUNS = 30
"""Finished runs that a fit needs."""
MIN_OF_EACH = 5
"""Successes and failures that a fit needs, in all and at each landmark that it uses."""
LANDMARKS = (2, 3, 5, 8, 12, 20, 30, 40, 60, 80)
"""Numbers of steps after which the runs that still go on are compared."""
COMPOSITE_PER_LOG_ODDS = 1 / 40
"""The composite that one unit of log odds adds: strong evidence of one kind about fills its monitor's share."""
PER_DOUBLING = math.log(2)
"""Log odds of failure that each doubling of the steps adds, up to 20 steps. It is set, not fitted: runs are compared at
equal length, where depth does not vary."""
HABITS = ("thought_length", "call_length", "result_length")
"""Evidence that is only comparable within one agent."""
PENALTY_INVERSE = 0.3
"""The inverse penalty of a fit without a prior (scikit-learn's C, per standard deviation)."""
OWN_PENALTY_INVERSE = 0.0003
"""The inverse penalty of what an agent's runs add to the prior: it takes some hundred runs to move it much."""
NO_SPREAD = 1e-6
MAX_ITERATIONS = 50
SMALL_STEP = 1e-9
"""A change of log odds below which the iteration stops."""
PRIOR_SCALE = 3.0
"""Factor by which the prior may be scaled as a whole more freely than changed in one weight."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """One row for each run and landmark: centred evidence, outcome and weight."""

    x: Numbers
    failed: NDArray[np.bool_]
    weight: Numbers


def fit(
    runs: Sequence[Observed],
    prior: Calibration | None = None,
    *,
    false_alarms: float = FALSE_ALARMS,
    unlabelled: Sequence[Observed] = (),
) -> Calibration:
    """Fit a calibration to one agent's runs around `prior`, or without a prior one for unknown agents.

    `false_alarms` is the share of successful runs in which something may fire. With a prior, runs without an outcome
    (`unlabelled`) count for the level of difficulty. Raises `ConfigError` for too few runs or too few of one outcome,
    and `ExtraMissing` without scikit-learn.
    """
    check(runs, false_alarms)
    need_scikit_learn()
    made = fitted(runs, prior, false_alarms)
    return evolve(made, level=_level([*runs, *unlabelled])) if unlabelled and prior is not None else made


def fit_unlabelled(runs: Sequence[Observed], prior: Calibration, *, false_alarms: float = FALSE_ALARMS) -> Calibration:
    """Fit the level and the thresholds to one agent's runs without outcomes; the evidence is the prior's.

    `false_alarms` is the share of all runs in which something may fire. Raises `ConfigError` for too few runs.
    """
    _check_number(runs, false_alarms, "runs")
    return without_outcomes(runs, prior, false_alarms)


def without_outcomes(runs: Sequence[Observed], prior: Calibration, false_alarms: float) -> Calibration:
    """Fit the level and the thresholds to any number of runs, but at least one."""
    return with_thresholds(evolve(prior, level=_level(runs), own_level=False), runs, false_alarms)


def fitted(runs: Sequence[Observed], prior: Calibration | None, false_alarms: float) -> Calibration:
    """Fit to any number of runs. Raises `ConfigError` for too few of one outcome."""
    _check_outcomes(runs)
    names = [name for name in INDICATORS if name != "depth" and (prior is not None or name not in HABITS)]
    centres = _centres(runs, [*names, "depth"])
    rows = _rows(runs, names)
    odds = _from_nothing(rows) if prior is None else _around(rows, _odds_of(prior, names))
    weights = {name: round(float(value) * COMPOSITE_PER_LOG_ODDS, 5) for name, value in zip(names, odds, strict=True)}
    weights["depth"] = round(PER_DOUBLING * math.log2(DEEPEST) * COMPOSITE_PER_LOG_ODDS, 5)
    made = Calibration(
        level=SHIPPED_LEVEL if prior is None else _level(runs),
        fires={},
        composite=1.0,
        persistence=fit_lasting(runs, shipped().persistence) if prior is None else prior.persistence,
        evidence={
            name: IndicatorWeight(weight=weights[name], centre=round(centres[name], 3))
            for name in INDICATORS
            if weights.get(name)
        },
    )
    return with_thresholds(made, runs, false_alarms)


def check(runs: Sequence[Observed], false_alarms: float = FALSE_ALARMS) -> None:
    """Raise `ConfigError` if these runs are too few for a fit, or `false_alarms` is out of range."""
    _check_number(runs, false_alarms, "finished runs with outcomes")
    _check_outcomes(runs)


def _check_number(runs: Sequence[Observed], false_alarms: float, what: str) -> None:
    if len(runs) < MIN_RUNS:
        raise ConfigError("runs", len(runs), f"at least {MIN_RUNS} {what} are needed")
    if not 0 < false_alarms < 1:
        raise ConfigError("false_alarms", false_alarms, "must be a number between 0 and 1")


def _check_outcomes(runs: Sequence[Observed]) -> None:
    if not _has_both(runs):
        counts = f"{sum(run.failed for run in runs)} failed of {len(runs)}"
        raise ConfigError("runs", counts, f"at least {MIN_OF_EACH} failures and {MIN_OF_EACH} successes are needed")


def _has_both(runs: Sequence[Observed]) -> bool:
    failed = sum(run.failed for run in runs)
    return min(failed, len(runs) - failed) >= MIN_OF_EACH


def need_scikit_learn() -> None:
    """Raise `ExtraMissing` if scikit-learn is not installed."""
    try:
        import sklearn.linear_model  # noqa: F401  # and with it numpy
    except ImportError as error:
        raise ExtraMissing("calibrating", "scikit-learn", "calibrate", EXTRAS["calibrate"]) from error


def _centres(runs: Sequence[Observed], names: Sequence[str]) -> dict[str, float]:
    """Return each evidence's mean over the steps of a run, the runs of a source, and the sources with both outcomes."""
    groups = list(by_source(runs).values())

    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values)

    return {
        name: mean(
            [
                mean([mean([step[name] for step in run.evidence]) for run in group if run.evidence] or [0.0])
                for group in [group for group in groups if _has_both(group)] or groups
            ]
        )
        for name in names
    }


def _rows(runs: Sequence[Observed], names: Sequence[str]) -> _Rows:
    import numpy as np

    x, failed, weight = [np.zeros((0, len(names)))], [np.zeros(0, bool)], [np.zeros(0)]
    for group in by_source(runs).values():
        for landmark in LANDMARKS:
            alive = [run for run in group if len(run.evidence) > landmark]
            y = np.array([run.failed for run in alive], bool)
            if min(y.sum(), len(y) - y.sum()) < MIN_OF_EACH:
                continue
            values = np.array([[run.evidence[landmark - 1][name] for name in names] for run in alive])
            share = np.where(y, 0.5 / y.sum(), 0.5 / (len(y) - y.sum()))
            x.append(values - share @ values)
            failed.append(y)
            weight.append(share)
    total = np.concatenate(weight)
    return _Rows(np.concatenate(x), np.concatenate(failed), total * len(total) / max(total.sum(), 1e-9))


def _from_nothing(rows: _Rows) -> Numbers:
    """Fit log odds for each unit of evidence, without a prior; evidence with negative odds is dropped."""
    import numpy as np

    used = np.ones(rows.x.shape[1], bool)
    while True:
        odds = np.zeros(len(used))
        odds[used] = _regression(rows, rows.x[:, used])
        if (odds >= 0).all():
            return odds
        used &= odds > 0


def _around(rows: _Rows, prior: Numbers) -> Numbers:
    """Return the prior's log odds, scaled and adjusted as far as the rows support it; unchanged without rows."""
    import numpy as np

    if not rows.x.size:
        return prior
    offset, spreads = rows.x @ prior, _spreads(rows.x)
    scale = PRIOR_SCALE / float(_spreads(offset))
    added = _added(rows, np.column_stack([offset * scale, rows.x / spreads]), offset)
    adjusted: Numbers = prior * (1 + added[0] * scale) + added[1:] / spreads
    return adjusted


def _added(rows: _Rows, x: Numbers, offset: Numbers) -> Numbers:
    """Return what the rows add to the `offset` of log odds: a penalised logistic regression, by Newton's method."""
    import numpy as np

    odds, penalty = np.zeros(x.shape[1]), 1 / OWN_PENALTY_INVERSE
    for _ in range(MAX_ITERATIONS):
        chance = 1 / (1 + np.exp(-(offset + x @ odds)))
        gradient = x.T @ (rows.weight * (chance - rows.failed)) + penalty * odds
        hessian = (x.T * (rows.weight * chance * (1 - chance))) @ x + penalty * np.eye(len(odds))
        step: Numbers = np.linalg.solve(hessian, gradient)
        odds = odds - step
        if np.abs(step).max() < SMALL_STEP:
            break
    return odds


def _regression(rows: _Rows, x: Numbers) -> Numbers:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    if not x.size:
        return np.zeros(x.shape[1])
    spreads = _spreads(x)
    model: Any = LogisticRegression(C=PENALTY_INVERSE, fit_intercept=False, max_iter=1_000)
    model.fit(x / spreads, rows.failed, sample_weight=rows.weight)
    odds: Numbers = model.coef_[0] / spreads
    return odds


def _spreads(x: Numbers) -> Numbers:
    """Return each column's standard deviation; 1 for one that is constant but for rounding."""
    import numpy as np

    spread = x.std(axis=0)
    spreads: Numbers = np.where(spread > NO_SPREAD, spread, 1.0)
    return spreads


def _odds_of(prior: Calibration, names: Sequence[str]) -> Numbers:
    import numpy as np

    found = [prior.evidence[name].weight / COMPOSITE_PER_LOG_ODDS if name in prior.evidence else 0.0 for name in names]
    return np.array(found)


def _level(runs: Sequence[Observed]) -> Level:
    """Return the mean over the runs' first steps, which also set a run's own level, with the shipped spread."""
    first = [calm for run in runs for calm in run.calm[:LEVEL_STEPS]]
    return Level(mean=round(math.fsum(first) / len(first), 4), spread=SHIPPED_LEVEL.spread)


def composites(run: Observed, made: Calibration) -> list[float]:
    """Return the composite after each step, with the default weights."""
    found = []
    for gathered, findings in zip(run.evidence, run.findings, strict=True):
        usual = by_indicators(gathered, made)
        parts = [WEIGHTS["coding"][name] * max(usual[name], findings[name]) for name in BY_NAME]
        found.append(min(1.0, math.fsum(parts)))
    return found


def opens(run: Observed, made: Calibration) -> list[bool]:
    """Return, for each step, whether the gate would open by the composite or by a monitor.

    Cooldown, cap and the text of the injection are ignored.
    """
    together = composites(run, made)
    before = [0.0, *together]
    return [
        min(last, now) >= made.composite or any(findings[name] >= made.fires[name] for name in BY_NAME)
        for last, now, findings in zip(before, together, run.findings, strict=False)
    ]
