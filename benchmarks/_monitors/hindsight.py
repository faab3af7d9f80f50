"""Judges interventions by what the run did next: was a word needed, and did it come early in lasting trouble?

The runs were not steered, so the steps after an intervention are those that the agent took by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from reasonblocks_workbench.calibration._columns import MIN_STEPS
from reasonblocks_workbench.calibration.statistics import Draws, Values, mean_of, ratio, redraws

from .sources import Source, failed
from .staleness import troubles
from .trail import Trail

__all__ = [
    "EARLY_STEPS",
    "MEANINGS",
    "MIN_INTERVENTIONS",
    "MIN_STEPS_AFTER",
    "Hindsight",
    "hindsight",
    "overall",
    "was_needed",
]

MEANINGS: Mapping[str, str] = {
    "stale": "share of stale steps: steps of which nothing new came",
    "interventions": "texts of monitors and lessons (not the standing rules) with at least 3 steps after them",
    "next": "share of stale steps among the 5 after an intervention",
    "base": "the same after steps of equal index with no intervention there or in the 5 steps before",
    "times": "`next` divided by `base`",
    "needless": "share of interventions after which at most 1 of the next 4 steps is stale: the agent recovered",
    "troubles": "stale steps from which on at least 4 of 6 steps are stale, at least 6 steps apart",
    "early": "share of troubles with an intervention at one of their first 3 steps",
    "per_100": "interventions in 100 steps",
    "said": "share of runs with an intervention at any step",
    "said_failing": "the same of failing runs",
    "said_passing": "the same of successful runs",
}
NEXT_STEPS = 5
NEEDED_STEPS, NEEDED_STALE = 4, 2
"""An intervention was needed if so many of the steps after it are stale."""
MIN_STEPS_AFTER = 3
EARLY_STEPS = 3
MIN_INTERVENTIONS = 10
"""Interventions that a source needs at least to count in the means of `next`, `base` and `needless`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Sums over the runs of a source, one value for each draw; `next`, `base` are sums over interventions."""

    runs: Draws
    failing: Draws
    steps: Draws
    stale: Draws
    interventions: Draws
    next: Draws
    needless: Draws
    base: Draws
    with_base: Draws
    troubles: Draws
    early: Draws
    said_failing: Draws
    said_passing: Draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """One source: its counts, and the figures that `MEANINGS` explains."""

    name: str
    counts: _Counts
    figures: Mapping[str, Draws]

    @property
    def interventions(self) -> int:
        return int(self.counts.interventions[0])


def hindsight(source: Source, stale: Sequence[Sequence[bool]], trails: Sequence[Trail], boot: int) -> Hindsight:
    """Return the figures of a source from the stale steps and the trails of all its runs, in order."""
    kept = [place for place, run in enumerate(source.runs) if len(run.steps) >= MIN_STEPS]
    weights = redraws([source.runs[place].task_key for place in kept], boot, source.name)
    judged = [_judged(stale[place], trails[place], failed(source.runs[place])) for place in kept]
    sums = {name: weights @ np.array([getattr(run, name) for run in judged], dtype=np.float64) for name in _SUMMED}
    counts = _Counts(**sums, **_base(judged, weights))
    return Hindsight(name=source.name, counts=counts, figures=_figures(counts))


def overall(sources: Sequence[Hindsight]) -> dict[str, Draws]:
    """Return the figures of all sources together.

    `next`, `base`, `needless` are means over the sources with at least 10 interventions, the shares of runs are means
    over all sources; `early` and `per_100` are pooled.
    """
    if not sources:
        return {}
    pooled = _figures(_Counts(**{
        part.name: np.sum([getattr(one.counts, part.name) for one in sources], axis=0) for part in fields(_Counts)
    }))  # fmt: skip
    enough = [one for one in sources if one.interventions >= MIN_INTERVENTIONS]
    means = {name: mean_of([one.figures[name] for one in enough]) for name in ("next", "base", "needless") if enough}
    shares = ("stale", "said", "said_failing", "said_passing")
    means |= {name: mean_of([one.figures[name] for one in sources]) for name in shares}
    if enough:
        means["times"] = ratio(means["next"], means["base"])
    return {**means, "early": pooled["early"], "per_100": pooled["per_100"]}


def _figures(counts: _Counts) -> dict[str, Draws]:
    next_, base = ratio(counts.next, counts.interventions), ratio(counts.base, counts.with_base)
    return {
        "stale": ratio(counts.stale, counts.steps),
        "next": next_,
        "base": base,
        "times": ratio(next_, base),
        "needless": ratio(counts.needless, counts.interventions),
        "early": ratio(counts.early, counts.troubles),
        "per_100": 100 * ratio(counts.interventions, counts.steps),
        "said": ratio(counts.said_failing + counts.said_passing, counts.runs),
        "said_failing": ratio(counts.said_failing, counts.failing),
        "said_passing": ratio(counts.said_passing, counts.runs - counts.failing),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The sums of one run. `after` and `unsaid` have the share of stale steps ahead, by the step it comes after."""

    runs: int = 1
    failing: bool
    steps: int
    stale: int
    interventions: int
    next: float
    needless: int
    troubles: int
    early: int
    said_failing: bool
    said_passing: bool
    after: Mapping[int, float]
    unsaid: Mapping[int, float]


_SUMMED = [part.name for part in fields(_Counts) if part.name not in ("base", "with_base")]


def _judged(stale: Sequence[bool], trail: Trail, failing: bool) -> _Run:
    spoken = frozenset(one.step for one in trail.interventions)
    ahead = {step: _share(stale[step + 1 :][:NEXT_STEPS]) for step in range(len(stale) - MIN_STEPS_AFTER)}
    after = {step: share for step, share in ahead.items() if step in spoken}
    begins = list(troubles(stale))
    return _Run(
        failing=failing,
        steps=len(stale),
        stale=sum(stale),
        interventions=len(after),
        next=sum(after.values()),
        needless=sum(not was_needed(stale, step) for step in after),
        troubles=len(begins),
        early=sum(not spoken.isdisjoint(range(start, start + EARLY_STEPS)) for start in begins),
        said_failing=bool(spoken) and failing,
        said_passing=bool(spoken) and not failing,
        after=after,
        unsaid={step: share for step, share in ahead.items() if spoken.isdisjoint(range(step - NEXT_STEPS, step + 1))},
    )


def was_needed(stale: Sequence[bool], step: int) -> bool:
    """Return True if trouble went on after the intervention at `step`."""
    return sum(stale[step + 1 :][:NEEDED_STEPS]) >= NEEDED_STALE


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _base(runs: Sequence[_Run], weights: Draws) -> dict[str, Draws]:
    """Return the sum over interventions of the mean share after unsaid steps of equal index, and their number."""
    width = max((len(run.after) + len(run.unsaid) and max((*run.after, *run.unsaid)) + 1 for run in runs), default=0)
    spoken, times, shares = (np.zeros((len(runs), width)) for _ in range(3))
    for row, run in enumerate(runs):
        spoken[row, list(run.after)] = 1.0
        times[row, list(run.unsaid)] = 1.0
        shares[row, list(run.unsaid)] = list(run.unsaid.values())
    usual: Values = ratio(weights @ shares, weights @ times)
    counted = (weights @ spoken) * ~np.isnan(usual)
    return {"base": (counted * np.nan_to_num(usual)).sum(axis=1), "with_base": counted.sum(axis=1)}
