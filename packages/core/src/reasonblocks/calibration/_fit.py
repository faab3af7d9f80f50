"""Fits a calibration to finished runs: how much each evidence weighs, and when a monitor fires.

Runs are compared at the same number of steps within one source only, so neither length nor the share of failures of a
source can pass for evidence. Failures and successes count alike there, and every source counts alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._json import evolve
from .._monitors.builtin import BY_NAME, WEIGHTS, Calibration, IndicatorWeight
from .._monitors.indicators import DEEPEST, INDICATORS
from .._monitors.suite import by_indicators
from .._scoring import LEVEL_STEPS, SHIPPED_LEVEL
from ..exceptions import ConfigError, ExtraMissing
from ..types import Level
from ._columns import Observed, by_source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FALSE_ALARMS = 0.085
"""Share of successful runs, the mean of the sources', in which something may fire."""
THRESHOLDS = tuple([round(0.6 + 0.05 * step, 2) for step in range(9)])
"""Each monitor's scores are laid out so that what is plain lies at .6 and above."""
COMPOSITES = tuple([round(0.15 + 0.005 * step, 3) for step in range(100)])


def with_thresholds(made: Calibration, runs: Sequence[Observed], false_alarms: float) -> Calibration:
    """The same with its thresholds: as low as they may be, those of the monitors first."""
    worst = {
        id(run): {name: max([found[name] for found in run.findings], default=0.0) for name in BY_NAME} for run in runs
    }
    fires = _fires(runs, worst, false_alarms)
    heights = {id(run): _height(run, made) for run in runs}

    def together(composite: float) -> float:
        return _share(runs, lambda run: heights[id(run)] >= composite or _any(worst[id(run)], fires))

    composite = next((one for one in COMPOSITES if together(one) <= false_alarms), COMPOSITES[-1])
    return evolve(made, fires=fires, composite=composite)


def _fires(
    runs: Sequence[Observed], worst: Mapping[int, Mapping[str, float]], false_alarms: float
) -> Mapping[str, float]:
    """The loudest monitor's threshold is raised, step by step, until all together are quiet enough."""
    fires = dict.fromkeys(BY_NAME, THRESHOLDS[0])

    def alone(name: str) -> float:
        return _share(runs, lambda run: worst[id(run)][name] >= fires[name])

    while _share(runs, lambda run: _any(worst[id(run)], fires)) > false_alarms:
        low = [name for name in BY_NAME if fires[name] < THRESHOLDS[-1]]
        if not low:
            break
        loudest = max(low, key=alone)
        fires[loudest] = THRESHOLDS[THRESHOLDS.index(fires[loudest]) + 1]
    return fires


def _any(worst: Mapping[str, float], fires: Mapping[str, float]) -> bool:
    return any(worst[name] >= threshold for name, threshold in fires.items())


def _share(runs: Sequence[Observed], flagged: Callable[[Observed], bool]) -> float:
    """Of the successful runs, the mean of the sources'. A run that was stopped at its success did badly until then."""
    successes = [run for run in runs if not run.failed]
    counted = [run for run in successes if not run.stopped_at_success] or successes
    shares = [sum(map(flagged, group)) / len(group) for group in by_source(counted).values()]
    return math.fsum(shares) / len(shares)


def _height(run: Observed, made: Calibration) -> float:
    """The highest composite that was reached twice in a row."""
    found = composites(run, made)
    return max(map(min, found, found[1:]), default=0.0)


MIN_RUNS = 30
"""Finished runs below which nothing is fitted."""
MIN_OF_EACH = 5
"""Successes, and failures, below which nothing is fitted, nor anything at one number of steps."""
LANDMARKS = (2, 3, 5, 8, 12, 20, 30, 40, 60, 80)
"""Steps after which runs that still go on are compared."""
COMPOSITE_PER_LOG_ODDS = 1 / 40
"""The composite's share of a unit of log odds: strong evidence of one kind just about fills its monitor's room."""
PER_DOUBLING = math.log(2)
"""Log odds of failure that each doubling of the steps adds, up to 20: as if the odds grew with the steps. At equal
length of the run nothing can be fitted here."""
HABITS = ("thought_length", "call_length", "result_length")
"""These say something for one agent alone."""
PENALTY_INVERSE = 0.3
"""Of a fit from nothing (scikit-learn's C, for a standard deviation)."""
OWN_PENALTY_INVERSE = 0.0003
"""Of what an agent's own runs add to the prior: it takes some hundred runs to move it much."""
NO_SPREAD = 1e-6
MAX_ITERATIONS = 50
SMALL_STEP = 1e-9
"""Of log odds: no further change is worth an iteration."""
PRIOR_SCALE = 3.0
"""How much more freely the prior as a whole may be scaled than bent."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """One row a run and landmark: centred evidence, whether the run failed, what the row counts."""

    x: Numbers
    failed: NDArray[np.bool_]
    weight: Numbers


def fit(
    runs: Sequence[Observed], prior: Calibration | None = None, *, false_alarms: float = FALSE_ALARMS
) -> Calibration:
    """One agent's calibration around `prior`, or without one a calibration for agents that nobody knows.

    `false_alarms` is the share of successful runs in which something may fire. Raises `ConfigError` for runs that are
    too few, or all of one outcome, and `ExtraMissing` without scikit-learn.
    """
    check(runs, false_alarms)
    need_scikit_learn()
    return fitted(runs, prior, false_alarms)


def fitted(runs: Sequence[Observed], prior: Calibration | None, false_alarms: float) -> Calibration:
    """The same of any number of runs. Raises `ConfigError` for too few of one outcome."""
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
        evidence={
            name: IndicatorWeight(weight=weights[name], centre=round(centres[name], 3))
            for name in INDICATORS
            if weights.get(name)
        },
    )
    return with_thresholds(made, runs, false_alarms)


def check(runs: Sequence[Observed], false_alarms: float = FALSE_ALARMS) -> None:
    """Raises `ConfigError` for what nothing can be fitted to."""
    if len(runs) < MIN_RUNS:
        raise ConfigError("runs", len(runs), f"at least {MIN_RUNS} finished runs with outcomes are needed")
    _check_outcomes(runs)
    if not 0 < false_alarms < 1:
        raise ConfigError("false_alarms", false_alarms, "must be a number between 0 and 1")


def _check_outcomes(runs: Sequence[Observed]) -> None:
    if not _has_both(runs):
        said = f"{sum(run.failed for run in runs)} failed of {len(runs)}"
        raise ConfigError("runs", said, f"at least {MIN_OF_EACH} failures and {MIN_OF_EACH} successes are needed")


def _has_both(runs: Sequence[Observed]) -> bool:
    failed = sum(run.failed for run in runs)
    return min(failed, len(runs) - failed) >= MIN_OF_EACH


def need_scikit_learn() -> None:
    """Raises `ExtraMissing` where it is not installed."""
    try:
        import sklearn.linear_model  # noqa: F401  # and with it numpy
    except ImportError as error:
        raise ExtraMissing("calibrating", "scikit-learn", "calibrate") from error


def _centres(runs: Sequence[Observed], names: Sequence[str]) -> dict[str, float]:
    """The mean over steps of a run, runs of a source, and the sources that have both outcomes."""
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
    """Log odds for each unit of evidence, none below 0: evidence that speaks for a run is left out."""
    import numpy as np

    used = np.ones(rows.x.shape[1], bool)
    while True:
        odds = np.zeros(len(used))
        odds[used] = _regression(rows, rows.x[:, used])
        if (odds >= 0).all():
            return odds
        used &= odds > 0


def _around(rows: _Rows, prior: Numbers) -> Numbers:
    """The prior's log odds, scaled and bent as far as the rows ask for it; as they are where these ask for nothing."""
    import numpy as np

    if not rows.x.size:
        return prior
    said, sizes = rows.x @ prior, _sizes(rows.x)
    scale = PRIOR_SCALE / float(_sizes(said))
    added = _added(rows, np.column_stack([said * scale, rows.x / sizes]), said)
    bent: Numbers = prior * (1 + added[0] * scale) + added[1:] / sizes
    return bent


def _added(rows: _Rows, x: Numbers, said: Numbers) -> Numbers:
    """What the rows add to the log odds that are said already: a penalised regression with an offset, by Newton."""
    import numpy as np

    odds, penalty = np.zeros(x.shape[1]), 1 / OWN_PENALTY_INVERSE
    for _ in range(MAX_ITERATIONS):
        chance = 1 / (1 + np.exp(-(said + x @ odds)))
        slope = x.T @ (rows.weight * (chance - rows.failed)) + penalty * odds
        bend = (x.T * (rows.weight * chance * (1 - chance))) @ x + penalty * np.eye(len(odds))
        step: Numbers = np.linalg.solve(bend, slope)
        odds = odds - step
        if np.abs(step).max() < SMALL_STEP:
            break
    return odds


def _regression(rows: _Rows, x: Numbers) -> Numbers:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    if not x.size:
        return np.zeros(x.shape[1])
    sizes = _sizes(x)
    model: Any = LogisticRegression(C=PENALTY_INVERSE, fit_intercept=False, max_iter=1_000)
    model.fit(x / sizes, rows.failed, sample_weight=rows.weight)
    odds: Numbers = model.coef_[0] / sizes
    return odds


def _sizes(x: Numbers) -> Numbers:
    """How far each column spreads; 1 for one that does not, but for rounding."""
    import numpy as np

    spread = x.std(axis=0)
    sizes: Numbers = np.where(spread > NO_SPREAD, spread, 1.0)
    return sizes


def _odds_of(prior: Calibration, names: Sequence[str]) -> Numbers:
    import numpy as np

    found = [prior.evidence[name].weight / COMPOSITE_PER_LOG_ODDS if name in prior.evidence else 0.0 for name in names]
    return np.array(found)


def _level(runs: Sequence[Observed]) -> Level:
    """Of one agent: the mean over its runs' first steps, which shape a run's own level; the spread is the scorer's."""
    first = [calm for run in runs for calm in run.calm[:LEVEL_STEPS]]
    return Level(mean=round(math.fsum(first) / len(first), 4), spread=SHIPPED_LEVEL.spread)


def composites(run: Observed, made: Calibration) -> list[float]:
    """After each step, with the default weights."""
    found = []
    for gathered, findings in zip(run.evidence, run.findings, strict=True):
        usual = by_indicators(gathered, made)
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
