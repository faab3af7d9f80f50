"""Whether the states mean something: where agents spend their steps, and how runs end that were in FAST or in SLOW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from reasonblocks.types import FSMState
from reasonblocks_workbench.calibration._columns import length_bins
from reasonblocks_workbench.calibration.statistics import Draws, Flags, Tables, Values, redraws, share

from .sources import Source, failed
from .trail import Trail

__all__ = ["LONG", "SHOWN", "StatesOf", "states_of"]

LONG = 8
"""Steps from which on a run can have been in FAST or SLOW at all: their windows are 6 and 5."""
SHOWN = (FSMState.FAST, FSMState.NORMAL, FSMState.SLOW, FSMState.SKIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesOf:
    """One source. `shares` is of all steps; `reach_*` of the failing and successful runs of 8 steps and more.

    `fast` and `slow` are the tables of the odds ratio of failure, one a length bin of those runs. `fast`: FAST held a
    larger share of the run than of the median run of its bin. `slow`: the run was in SLOW at some step (SKIP is entered
    from SLOW alone).
    """

    source: Source
    runs: int
    long_runs: int
    median_steps: float
    shares: dict[FSMState, float]
    reach_failing: dict[FSMState, Draws]
    reach_passing: dict[FSMState, Draws]
    fast: Tables | None
    slow: Tables | None


def states_of(source: Source, trails: Sequence[Trail], boot: int) -> StatesOf:
    """From all runs of the source, the short ones included in the shares of steps."""
    every = [state for trail in trails for state in trail.states]
    long_ = [place for place, trail in enumerate(trails) if len(trail.states) >= LONG]
    held = [trails[place].states for place in long_]
    failing = np.array([failed(source.runs[place]) for place in long_], dtype=np.bool_)
    weights = redraws([source.runs[place].task_key for place in long_], boot, source.name)
    reached = {state: np.array([state in states for states in held], dtype=np.bool_) for state in SHOWN}
    return StatesOf(
        source=source,
        runs=len(trails),
        long_runs=len(long_),
        median_steps=median(len(trail.states) for trail in trails),
        shares={state: every.count(state) / len(every) for state in SHOWN},
        reach_failing={state: share(reached[state], failing, weights) for state in SHOWN},
        reach_passing={state: share(reached[state], ~failing, weights) for state in SHOWN},
        fast=_by_length(held, _above_the_median_run(held), failing, weights),
        slow=_by_length(held, reached[FSMState.SLOW], failing, weights),
    )


def _bins(held: Sequence[Sequence[FSMState]]) -> Sequence[Flags]:
    """Which runs are in each length bin."""
    if not held:
        return []
    bin_of = length_bins(np.array([len(states) for states in held], dtype=np.int64))
    return [bin_of == one for one in np.unique(bin_of)]


def _above_the_median_run(held: Sequence[Sequence[FSMState]]) -> Flags:
    shares: Values = np.array([states.count(FSMState.FAST) / len(states) for states in held])
    above = np.zeros(len(held), dtype=np.bool_)
    for here in _bins(held):
        above[here] = shares[here] > np.median(shares[here])
    return above


def _by_length(held: Sequence[Sequence[FSMState]], exposed: Flags, failing: Flags, weights: Draws) -> Tables | None:
    bins = _bins(held)
    if not bins:
        return None

    def counted(flags: Flags) -> Draws:
        in_bins: Values = np.array([flags & here for here in bins], dtype=np.float64)
        return np.asarray(weights @ in_bins.T)

    return Tables(
        exposed_failing=counted(exposed & failing),
        exposed_passing=counted(exposed & ~failing),
        other_failing=counted(~exposed & failing),
        other_passing=counted(~exposed & ~failing),
    )
