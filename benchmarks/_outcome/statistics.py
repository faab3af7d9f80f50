"""Estimates how an arm changes the outcome against `off`, from runs that start at equal states.

A *point* is such a state: the state before a shadow run's first text, from which the branches start, or the start of a
task, from which whole runs start. At a point every arm has several samples. Intervals are 95 % intervals of a
bootstrap that draws the tasks of each family with replacement; all arms are drawn with the same tasks. A figure is an
array with one value a draw, of which the first is that of the points as they are; `interval` reduces it.

Recovery, disruption and the break-even failure rate are those of arXiv 2602.03338.
"""

from __future__ import annotations

from _statistics import Draws, Interval, Values, interval, mean_of, ratio, redraws
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb, isfinite, nan

import numpy as np

from .rows import Phase, Row

__all__ = [
    "MIN_POINTS", "OFF", "Effect", "Flips", "Interval", "Point", "Sample", "base_failure", "break_even", "changed",
    "effect",
    "figure", "further", "healthy", "interval", "macro", "mcnemar", "mean_of", "samples", "share_interval",
    "sign_flip_p",
]  # fmt: skip

OFF = "off"
"""The arm without steering, which every other arm is compared with."""
BOOT = 2_000
MIN_POINTS = 5
"""Points that a family needs to count in a mean over families."""
POWER_ERRORS = 1.96 + 0.84
"""Standard errors between zero and an effect whose 95 % interval excludes zero with a chance of 80 %."""
FLIP_BLOCKS, FLIPS_A_BLOCK = 10, 1_000
_ROUNDING = 1e-12

Measure = Callable[[Row], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A state and the runs that started there: by arm, then by the number of the sample.

    `shadow` is the unsteered run in which a branch point was found; a whole run's start may have one, too.
    """

    family: str
    seed: int
    runs: Mapping[str, Mapping[int, Row]]
    shadow: Row | None = None
    kind: str | None = None
    monitor: str | None = None
    winnable: bool | None = None

    def mean(self, arm: str, measure: Measure) -> float:
        """Return the mean of the measure over the arm's samples."""
        values = [measure(row) for row in self.runs[arm].values()]
        return sum(values) / len(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Points of one model, and the weights of the bootstrap: a row a draw, a column a point."""

    points: tuple[Point, ...]
    weights: Draws

    def where(self, keep: Callable[[Point], bool]) -> Sample:
        """Return the points that are to be kept, with the same draws."""
        chosen = [place for place, point in enumerate(self.points) if keep(point)]
        return Sample(points=tuple([self.points[place] for place in chosen]), weights=self.weights[:, chosen])

    def family(self, name: str) -> Sample:
        """Return the points of the family."""
        return self.where(lambda point: point.family == name)

    def beside(self, arm: str) -> Sample:
        """Return the points at which both the arm and `off` have a run."""
        return self.where(lambda point: bool(point.runs.get(arm)) and bool(point.runs.get(OFF)))

    @property
    def families(self) -> dict[str, Sample]:
        """The points by family, in the order of their names."""
        return {name: self.family(name) for name in sorted({point.family for point in self.points})}

    @property
    def arms(self) -> list[str]:
        """The arms other than `off`, in the order of their names."""
        return sorted({arm for point in self.points for arm in point.runs} - {OFF})

    def over(self, values: Iterable[float]) -> Draws:
        """Return the mean of one value a point; points with NaN do not count."""
        given = np.array([*values], dtype=np.float64)
        known = ~np.isnan(given)
        return ratio(self.weights @ np.where(known, given, 0.0), self.weights @ known.astype(np.float64))

    def total(self, values: Iterable[float]) -> Draws:
        """Return the sum of one value a point."""
        return np.asarray(self.weights @ np.array([*values], dtype=np.float64))


def samples(rows: Iterable[Row], phase: Phase, boot: int = BOOT) -> dict[tuple[str, str], Sample]:
    """Return the points of the phase's runs, by model and what the runs went through; runs with an error do not count.

    The draws are equal for equal points, whatever else there is.
    """
    given = [row for row in rows if row.error is None]
    shadows = {(row.model, row.family, row.seed): row for row in given if row.phase == "shadow"}
    grouped: dict[tuple[str, str], dict[tuple[str, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in given:
        if row.phase == phase:
            grouped[row.model, row.through][row.family, row.seed].append(row)
    found = {}
    for (model, through), by_task in sorted(grouped.items()):
        points = [_point(by_task[task], shadows.get((model, *task))) for task in sorted(by_task)]
        found[model, through] = Sample(points=tuple(points), weights=_weights(points, boot))
    return found


def _point(rows: Sequence[Row], shadow: Row | None) -> Point:
    runs: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        runs[row.arm][row.sample] = row
    told = [*([shadow] if shadow else []), *rows]
    return Point(
        family=rows[0].family,
        seed=rows[0].seed,
        runs=dict(runs),
        shadow=shadow,
        kind=next((row.kind for row in told if row.kind is not None), None),
        monitor=next((row.monitor for row in told if row.monitor is not None), None),
        winnable=next((row.winnable for row in told if row.winnable is not None), None),
    )


def _weights(points: Sequence[Point], boot: int) -> Draws:
    """Return the draws of tasks, each family's by itself; `points` are in the order of their families."""
    seeds: dict[str, list[str]] = defaultdict(list)
    for point in points:
        seeds[point.family].append(str(point.seed))
    return np.hstack([redraws(of_family, boot, family) for family, of_family in seeds.items()])


def _won(row: Row) -> float:
    return float(row.won)


def _gave_up(row: Row) -> float:
    return float(row.ended and not row.won)


def _prompt(row: Row) -> float:
    return float(row.prompt)


def _evaluated(row: Row) -> float:
    return nan if row.evaluated is None else float(row.evaluated)


def _steps(row: Row) -> float:
    """Return the steps from the point on; a whole run's are all its steps."""
    return float(row.steps - (row.point or 0 if row.phase == "branch" else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """How often the arm turned outcomes over. Sample k of the arm is paired with sample k of `off` at the point.

    `recovery` (r) is the share of pairs whose `off` run was lost in which the arm's was won; `disruption` (d) the share
    of pairs whose `off` run was won in which the arm's was lost. Two unsteered samples differ by chance, too:
    `chance_recovery` (r0) and `chance_disruption` (d0) are the same figures of sample k' of `off`, in place of the
    arm's, over all k' other than k; NaN where `off` has one sample a point. What the arm recovers beyond chance is
    r - r0. `lost` and `won` count the pairs that r and d are shares of, and `lost_points` and `won_points` the points
    with such a pair; `recovered` and `disrupted` count those that turned.
    """

    lost: int
    lost_points: int
    recovered: int
    won: int
    won_points: int
    disrupted: int
    recovery: Draws
    disruption: Draws
    chance_recovery: Draws
    chance_disruption: Draws


def _flips(sample: Sample, arm: str) -> Flips:
    steered = [_turned(_same_numbers(point.runs[OFF], point.runs[arm])) for point in sample.points]
    by_chance = [_turned(_other_numbers(point.runs[OFF])) for point in sample.points]
    lost, recovered, won, disrupted = (sample.total(counts) for counts in _columns(steered))
    lost0, recovered0, won0, disrupted0 = (sample.total(counts) for counts in _columns(by_chance))
    return Flips(
        lost=int(lost[0]), recovered=int(recovered[0]), won=int(won[0]), disrupted=int(disrupted[0]),
        lost_points=sum(counts[0] > 0 for counts in steered), won_points=sum(counts[2] > 0 for counts in steered),
        recovery=ratio(recovered, lost), disruption=ratio(disrupted, won),
        chance_recovery=ratio(recovered0, lost0), chance_disruption=ratio(disrupted0, won0),
    )  # fmt: skip


def _columns(counted: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, ...]]:
    return list(zip(*counted, strict=True)) or [(), (), (), ()]


def _same_numbers(one: Mapping[int, Row], other: Mapping[int, Row]) -> Iterator[tuple[bool, bool]]:
    return ((one[number].won, other[number].won) for number in one if number in other)


def _other_numbers(runs: Mapping[int, Row]) -> Iterator[tuple[bool, bool]]:
    return ((runs[one].won, runs[other].won) for one in runs for other in runs if one != other)


def _turned(pairs: Iterable[tuple[bool, bool]]) -> tuple[int, int, int, int]:
    """Return the pairs whose first run was lost, the recovered among them, those whose first was won, the disrupted."""
    made = [*pairs]
    lost = [second for first, second in made if not first]
    won = [second for first, second in made if first]
    return len(lost), sum(lost), len(won), len(won) - sum(won)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An arm beside `off` at the points where both have runs; each point counts once, whatever its samples.

    `off` and `won` are the shares of won runs, `advantage` the arm's minus that of `off`. Giving up is the share of
    runs that ended themselves and were lost: `off_gave_up`, `gave_up`, and their difference `giving_up`. `prompt` and
    `evaluated` are ratios of the mean tokens a run, the arm's by that of `off`; `evaluated_a_call` is that of the
    evaluated prompt tokens by the model calls after the point. NaN where the provider does not count them.
    """

    arm: str
    points: int
    off: Draws
    won: Draws
    advantage: Draws
    off_gave_up: Draws
    gave_up: Draws
    giving_up: Draws
    flips: Flips
    prompt: Draws
    evaluated: Draws
    evaluated_a_call: Draws


def effect(sample: Sample, arm: str) -> Effect:
    """Return what the arm changed over all points of the sample."""
    both = sample.beside(arm)
    off, won = figure(both, OFF, _won), figure(both, arm, _won)
    off_gave_up, gave_up = figure(both, OFF, _gave_up), figure(both, arm, _gave_up)
    evaluated = ratio(figure(both, arm, _evaluated), figure(both, OFF, _evaluated))
    return Effect(
        arm=arm, points=len(both.points), off=off, won=won, advantage=won - off, off_gave_up=off_gave_up,
        gave_up=gave_up, giving_up=gave_up - off_gave_up, flips=_flips(both, arm),
        prompt=ratio(figure(both, arm, _prompt), figure(both, OFF, _prompt)), evaluated=evaluated,
        evaluated_a_call=ratio(evaluated, ratio(figure(both, arm, _steps), figure(both, OFF, _steps))),
    )  # fmt: skip


def figure(sample: Sample, arm: str, measure: Measure) -> Draws:
    """Return the mean over the points of the measure's mean over the arm's samples."""
    return sample.over([point.mean(arm, measure) for point in sample.points])


def macro(sample: Sample, arm: str, of: Callable[[Effect], Draws], least: int = MIN_POINTS) -> Draws | None:
    """Return the mean of a figure over the families with at least so many points; None if there is no such family."""
    effects = [effect(family, arm) for family in sample.families.values()]
    enough = [of(one) for one in effects if one.points >= least]
    return mean_of(enough) if enough else None


def share_interval(share: Draws, count: int) -> Interval:
    """Return the 95 % interval of a share of the pairs of `count` points.

    A share of 0 or 1 is the same in every draw of the bootstrap, which says nothing of the next point: then the other
    end is that of the exact binomial interval for so many independent points (Clopper and Pearson 1934).
    """
    found = interval(share)
    if not count or found.low != found.high or found.point not in (0.0, 1.0):
        return found
    reach = 1 - 0.025 ** (1 / count)
    return replace(found, high=reach) if found.point == 0.0 else replace(found, low=1 - reach)


def break_even(flips: Flips) -> Draws:
    """Return the failure rate d / (r + d), above which the arm wins more runs than it loses (arXiv 2602.03338).

    It is NaN where the arm turned no outcome over.
    """
    return ratio(flips.disruption, flips.recovery + flips.disruption)


def base_failure(sample: Sample) -> Draws | None:
    """Return the share of shadow runs that were lost among those that reached a point: the runs that are spoken into.

    None if there is no shadow run.
    """
    known = sample.where(lambda point: point.shadow is not None and point.shadow.point is not None)
    return known.over([float(not point.shadow.won) for point in known.points if point.shadow]) if known.points else None


def healthy(rows: Sequence[Row], boot: int = BOOT) -> dict[tuple[str, str], Sample]:
    """Return the whole runs of the tasks whose shadow run would never have been told anything, as `samples` does.

    Tasks are chosen by the shadow run alone: choosing steered runs that were told nothing would choose those that went
    well, and would favour the arm. The runs with the shadow run's number are left out where there are others: they
    share its sampling, so that those of `off` were chosen, too.
    """
    calm = {
        (row.model, row.family, row.seed): row.sample
        for row in rows
        if row.phase == "shadow" and row.point is None and row.error is None
    }
    whole = [row for row in rows if row.phase == "whole" and (row.model, row.family, row.seed) in calm]
    fresh = [row for row in whole if row.sample != calm[row.model, row.family, row.seed]]
    return samples(fresh or whole, "whole", boot)


def mcnemar(recovered: int, disrupted: int) -> float:
    """Return the two-sided p of McNemar's test, exact: only the pairs count whose two runs ended differently."""
    turned = recovered + disrupted
    tail = sum(comb(turned, count) for count in range(min(recovered, disrupted) + 1))
    return min(1.0, 2 * tail / (1 << turned))


def changed(sample: Sample, arm: str) -> int:
    """Return the number of points at which the arm won more or less often than `off`."""
    return sum(point.mean(arm, _won) != point.mean(OFF, _won) for point in sample.points)


def sign_flip_p(sample: Sample, arm: str, families: Collection[str]) -> float:
    """Return the two-sided p of the mean over the families under random exchanges of arm and `off` at each point.

    The bootstrap's interval is too narrow where few points changed: four won points among many unchanged ones exclude
    zero, while their p is .125. The exchanges are seeded.
    """
    terms: list[float] = []
    for family in families:
        both = sample.family(family).beside(arm)
        terms += [(point.mean(arm, _won) - point.mean(OFF, _won)) / len(both.points) for point in both.points]
    changed: Values = np.array([term for term in terms if term], dtype=np.float64)
    if not len(changed):
        return 1.0
    random = np.random.default_rng(len(changed))
    least = abs(float(changed.sum())) - _ROUNDING
    reached = 0
    for _ in range(FLIP_BLOCKS):
        signs = random.integers(0, 2, (FLIPS_A_BLOCK, len(changed))) * 2 - 1
        reached += int((np.abs(signs @ changed) >= least).sum())
    return (1 + reached) / (1 + FLIP_BLOCKS * FLIPS_A_BLOCK)


def further(points: int, advantage: Draws) -> int | None:
    """Return how many more points make the interval exclude zero with a chance of 80 %, if the effect is as seen.

    The standard error is that of the bootstrap, and shrinks with the root of the number of points. None if no effect,
    or no spread, is seen: then nothing is known of the number.
    """
    drawn = advantage[1:][~np.isnan(advantage[1:])]
    error = float(drawn.std()) if len(drawn) else 0.0
    seen = float(advantage[0])
    if not isfinite(seen) or abs(seen) < _ROUNDING or error == 0:
        return None
    return max(0, ceil(points * (POWER_ERRORS * error / seen) ** 2) - points)
