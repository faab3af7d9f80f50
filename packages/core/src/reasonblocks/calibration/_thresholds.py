"""When a monitor fires: as early as a wanted share of false alarms allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    """The same with its thresholds: no monitor alone goes beyond the false alarms."""
    worst = {
        id(run): {name: max([found[name] for found in run.findings], default=0.0) for name in BY_NAME} for run in runs
    }

    def alone(name: str, threshold: float) -> float:
        return _share(runs, lambda run: worst[id(run)][name] >= threshold)

    fires = {
        name: next((one for one in THRESHOLDS if alone(name, one) <= false_alarms), THRESHOLDS[-1]) for name in BY_NAME
    }
    heights = {id(run): _height(run, made) for run in runs}

    def together(composite: float) -> float:
        return _share(
            runs,
            lambda run: (
                heights[id(run)] >= composite
                or any(worst[id(run)][name] >= threshold for name, threshold in fires.items())
            ),
        )

    composite = next((one for one in COMPOSITES if together(one) <= false_alarms), COMPOSITES[-1])
    return replace(made, fires=fires, composite=composite)


def _share(runs: Sequence[Observed], flagged: Callable[[Observed], bool]) -> float:
    """Of the successful runs, the mean of the sources'. A run that was stopped at its success did badly until then."""
    counted = [run for run in runs if not run.stopped_at_success] or runs
    good = [[flagged(run) for run in group if not run.failed] for group in by_source(counted).values()]
    shares = [sum(group) / len(group) for group in good if group]
    return math.fsum(shares) / len(shares)


def _height(run: Observed, made: Calibration) -> float:
    """The highest composite that was reached twice in a row."""
    found = composites(run, made)
    return max(map(min, found, found[1:]), default=0.0)
