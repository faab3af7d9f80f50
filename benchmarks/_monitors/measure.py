"""All figures of one configuration over all sources, and how two configurations differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from reasonblocks_workbench.calibration._columns import COLUMNS, Judged, Scored, columns, scored
from reasonblocks_workbench.calibration.compare import Lift, first_firings, lift
from reasonblocks_workbench.calibration.statistics import FALSE_ALARMS, Draws, Flags, Tables, Values, auroc, mean_of

from .hindsight import Hindsight, hindsight, overall
from .sources import Source, failed
from .states import StatesOf, states_of
from .trail import Trail

__all__ = ["Cost", "Figures", "OneThreshold", "core_lift", "difference", "measure", "scored_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneThreshold:
    """The best threshold that is the same for all core sources, at 10 % of successes flagged in their mean."""

    threshold: float
    recall: float
    flagged: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Medians over all steps, in microseconds; of the trace state at the end of a run, median and most bytes."""

    steps: int
    monitors_us: float
    features_us: float
    beyond_features_us: float
    state_bytes: float
    longest_state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One configuration. Figures by source name; `macro` is the mean over the core sources that have the column.

    `needed` is of every source: whether a word was needed has nothing to do with outcomes.
    """

    needed: tuple[Hindsight, ...]
    sources: Mapping[str, Scored]
    columns: Mapping[str, Mapping[str, Draws]]
    macro: Mapping[str, Draws]
    lifts: Mapping[str, Lift]
    core_lift: Lift | None
    pooled_full: float | None
    pooled_half: float | None
    one_threshold: OneThreshold | None
    states: tuple[StatesOf, ...]
    cost: Cost | None


def measure(
    sources: Sequence[Source],
    stale: Sequence[Sequence[Sequence[bool]]],
    trails: Sequence[Sequence[Trail]],
    boot: int,
) -> Figures:
    """From the stale steps and the trails of every run of every source, in order.

    Sources of one outcome have no figures of how failures are told from successes.
    """
    runs = {one.name: scored_source(one, told, boot) for one, told in zip(sources, trails) if one.measurable}
    core = [one for one in runs.values() if not one.oracle_stop]
    figures = {name: columns(one) for name, one in runs.items()}
    firings = {name: tables for name, one in runs.items() if (tables := first_firings(one))}
    return Figures(
        needed=tuple(hindsight(*one, boot) for one in zip(sources, stale, trails, strict=True)),
        sources=runs,
        columns=figures,
        macro=_macro([figures[one.name] for one in core]),
        lifts={name: found for name, tables in firings.items() if (found := lift(tables))},
        core_lift=_core_lift([firings[one.name] for one in core if one.name in firings]),
        pooled_full=_pooled(core, lambda one: one.whole),
        pooled_half=_pooled(core, lambda one: one.after(one.halves)),
        one_threshold=_one_threshold(core) if core else None,
        states=tuple(states_of(one, told, boot) for one, told in zip(sources, trails) if told and told[0].states),
        cost=_cost([trail for told in trails for trail in told]),
    )


def scored_source(source: Source, trails: Sequence[Trail], boot: int) -> Scored:
    """The runs of a source by the trails of all of them."""
    runs = [
        Judged(task_key=run.task_key, failed=failed(run), scores=told.scores, fires=told.fires)
        for run, told in zip(source.runs, trails)
    ]
    return scored(source.name, runs, boot, oracle_stop=source.oracle_stop)


def difference(one: Figures, other: Figures) -> dict[str, Draws]:
    """One minus the other in every figure over all sources, in the same redraws; and the ratio of their lifts."""
    ours, theirs = ({**overall(figures.needed), **figures.macro} for figures in (one, other))
    paired = {name: ours[name] - theirs[name] for name in ours if name in theirs and name != "stale"}
    if one.core_lift and other.core_lift:
        paired["lift_ratio"] = one.core_lift.draws / other.core_lift.draws
    return paired


def _macro(figures: Sequence[Mapping[str, Draws]]) -> dict[str, Draws]:
    have = {name: [one[name] for one in figures if name in one] for name in COLUMNS}
    return {name: mean_of(draws) for name, draws in have.items() if draws}


def core_lift(sources: Sequence[Source], trails: Sequence[Sequence[Trail]], boot: int) -> Lift | None:
    """Return the odds of failure over the core sources alone, which takes a fraction of the time of `measure`."""
    core = [(one, told) for one, told in zip(sources, trails, strict=True) if one.core]
    tables = [first_firings(scored_source(one, told, boot)) for one, told in core]
    return _core_lift([found for found in tables if found])


def _core_lift(tables: Sequence[Tables]) -> Lift | None:
    return lift(Tables.joined(tables)) if tables else None


def _pooled(core: Sequence[Scored], score: Callable[[Scored], Values]) -> float | None:
    """The AUROC over all runs of the core sources in one heap: what differs between agents counts, too."""
    if not core:
        return None
    failing = np.concatenate([one.failing for one in core])
    scores = np.concatenate([score(one) for one in core])
    return float(auroc(failing, scores, np.ones((1, len(failing))))[0])


def _one_threshold(core: Sequence[Scored]) -> OneThreshold | None:
    thresholds = np.unique(np.concatenate([one.whole for one in core]))
    flagged = mean_of([_at_or_above(one, ~one.failing, thresholds) for one in core])
    caught = mean_of([_at_or_above(one, one.failing, thresholds) for one in core])
    allowed = np.flatnonzero(flagged <= FALSE_ALARMS)
    if not len(allowed):
        return None
    best = allowed[np.argmax(caught[allowed])]
    return OneThreshold(threshold=float(thresholds[best]), recall=float(caught[best]), flagged=float(flagged[best]))


def _at_or_above(runs: Scored, among: Flags, thresholds: Values) -> Values:
    """The share of the runs `among` whose largest score reaches each threshold."""
    scores = np.sort(runs.whole[among])
    return np.asarray(1 - np.searchsorted(scores, thresholds) / len(scores))


def _cost(trails: Sequence[Trail]) -> Cost | None:
    monitors = [taken for trail in trails for taken in trail.monitors_us]
    features = [taken for trail in trails for taken in trail.features_us]
    sizes = [trail.state_bytes for trail in trails if trail.state_bytes is not None]
    if not monitors:
        return None
    return Cost(
        steps=len(monitors),
        monitors_us=median(monitors),
        features_us=median(features),
        beyond_features_us=median(whole - part for whole, part in zip(monitors, features)),
        state_bytes=median(sizes),
        longest_state_bytes=max(sizes),
    )
