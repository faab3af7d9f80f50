"""When a monitor fires: as early as a wanted share of false alarms allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..monitors.builtin import BY_NAME
from ..monitors.calibration import Calibration
from ._gate import composites
from ._observe import Observed, by_source

__all__ = ["FALSE_ALARMS", "with_thresholds"]

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
    return replace(made, fires=fires, composite=composite)


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
