"""Compares the two arms of an experiment: the steered runs and the observed ones.

A run is a success only if its outcome is "success"; a run that failed, was marked as failed or was stopped is not.
Doubts have no influence, because the monitors raise them and steering must not judge itself. The outcome of a live or
abandoned run is unknown. If a run of the experiment starts another one, the steps and tokens of the second run are
added to the first, and its outcome is ignored.

Each unit, such as a user or a repository, counts once, with the mean of its runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import erfc, fsum, isfinite, sqrt
from statistics import NormalDist
from typing import Literal, TypeAlias

from reasonblocks.types.outcomes import ABANDONED, UNKNOWN, kind_of

from .values import Body, RunRow

Verdict: TypeAlias = Literal["better", "worse", "no difference shown", "not enough data", "assignment broken"]
ON, OFF = "on", "off"
ARMS = (ON, OFF)
MIN_UNITS = 30
"""The number of units with a known outcome that each arm needs for a verdict."""
BROKEN_BELOW = 0.001
"""The p-value of the units' ratio below which the assignment is broken: one of a thousand correct ones is below it."""
Z = NormalDist().inv_cdf(0.975)
"""The normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with the limits of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One arm. `known` is the number of units with a known outcome; the means are over these units.

    `tokens` is the mean of the units whose tokens are known, or None.
    """

    name: str
    runs: int
    units: int
    known: int
    unknown_runs: int
    success: Interval | None
    steps: float | None
    tokens: float | None
    tokens_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The comparison of an experiment's arms. Differences are "on" minus "off".

    `on_fraction` is None if the runs record none or several. `p` is the probability that a correct assignment differs
    from the expected ratio at least as much, or None if no fraction is known. `in_both_arms` is the number of units
    with runs in both arms, which neither arm's means include. `left_out` is the number of runs without an arm, and
    `newest_only` is True if older runs were not read. `broken` has the reasons for "assignment broken".
    """

    experiment_id: str
    verdict: Verdict
    on: Arm
    off: Arm
    difference: Interval | None
    steps: Interval | None
    tokens: Interval | None
    on_fraction: float | None
    expected_on: float | None
    chi_square: float | None
    p: float | None
    in_both_arms: int
    left_out: int
    newest_only: bool
    broken: tuple[str, ...]

    def as_dict(self) -> Body:
        return {**asdict(self), "broken": list(self.broken)}


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, together with the runs that it started."""

    unit: str
    arm: str
    success: bool | None
    steps: int
    tokens: int | None
    fraction: float | None


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit's means over its runs with a known outcome, and the fraction of its first run."""

    arms: frozenset[str]
    fraction: float | None
    success: float | None
    steps: float | None
    tokens: float | None


def report_of(runs: Sequence[RunRow], *, newest_only: bool = False) -> Report:
    """Return the report of one experiment's runs, in any order; `newest_only` if there are older ones."""
    ours = sorted((run for run in runs if run.arm in ARMS), key=_by_start)
    tops = _tops(ours)
    units = _units(tops)
    both = sum(len(unit.arms) > 1 for unit in units)
    single = [unit for unit in units if len(unit.arms) == 1]
    on, off = ([unit for unit in single if arm in unit.arms] for arm in ARMS)
    expected, chi_square, p = sample_ratio([unit.fraction for unit in on], [unit.fraction for unit in off])
    fractions = {run.fraction for run in tops}
    broken = tuple(_broken(p, both, ours))
    difference = _success_difference(on, off)
    return Report(
        experiment_id=next((run.experiment_id or "" for run in runs), ""),
        verdict=_verdict(broken, on, off, difference),
        on=_arm(ON, tops, on),
        off=_arm(OFF, tops, off),
        difference=difference,
        steps=mean_difference(_known(on, _steps), _known(off, _steps)),
        tokens=mean_difference(_known(on, _tokens), _known(off, _tokens)),
        on_fraction=next(iter(fractions)) if len(fractions) == 1 else None,
        expected_on=expected,
        chi_square=chi_square,
        p=p,
        in_both_arms=both,
        left_out=len(runs) - len(ours),
        newest_only=newest_only,
        broken=broken,
    )


def wilson(share: float, count: int) -> Interval:
    """Return the 95 % score interval of a share of `count` units (Wilson 1927).

    The share may be a mean of values in [0, 1]: their variance is at most that of successes and failures, so that the
    interval is wide enough.
    """
    middle = (share * count + Z * Z / 2) / (count + Z * Z)
    half = Z * sqrt(share * (1 - share) * count + Z * Z / 4) / (count + Z * Z)
    return Interval(value=share, low=min(share, max(0.0, middle - half)), high=max(share, min(1.0, middle + half)))


def newcombe(first: Interval, second: Interval) -> Interval:
    """Return the 95 % interval of the difference of two independent shares, given their Wilson intervals.

    Source: Newcombe, "Interval estimation for the difference between independent proportions: comparison of eleven
    methods", Statistics in Medicine 17 (1998), method 10.
    """
    value = first.value - second.value
    below = sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    above = sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return Interval(value=value, low=max(-1.0, value - below), high=min(1.0, value + above))


def mean_difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return the difference of two means with its normal 95 % interval, None for fewer than `MIN_UNITS` values."""
    if min(len(first), len(second)) < MIN_UNITS:
        return None
    value = _mean(first) - _mean(second)
    half = Z * sqrt(_variance(first) / len(first) + _variance(second) / len(second))
    return Interval(value=value, low=value - half, high=value + half)


def sample_ratio(
    on: Sequence[float | None], off: Sequence[float | None]
) -> tuple[float | None, float | None, float | None]:
    """Return the expected number of units that are on, the chi-square statistic (1 degree of freedom), and its p-value.

    The arguments are the fractions at which the units of each arm were assigned. With one fraction for all units, this
    is Pearson's test. All three values are None if a fraction is missing.
    """
    fractions = [fraction for fraction in (*on, *off) if fraction is not None]
    if not fractions or len(fractions) < len(on) + len(off):
        return None, None, None
    expected, variance = fsum(fractions), fsum(share * (1 - share) for share in fractions)
    distance = abs(len(on) - expected)
    if variance == 0.0:
        return expected, None, 1.0 if distance < 0.5 else 0.0
    chi_square = distance**2 / variance
    return expected, chi_square, erfc(sqrt(chi_square / 2))


def _tops(runs: Sequence[RunRow]) -> list[_Run]:
    """Return the outermost runs, each with the steps and tokens of the runs that it started."""
    by_id = {run.run_id: run for run in runs}
    tops: dict[str, str] = {}
    within: dict[str, list[RunRow]] = defaultdict(list)
    for run in runs:
        within[_top_of(run, by_id, tops)].append(run)
    return [_run(by_id[top], inner) for top, inner in within.items()]


def _top_of(run: RunRow, by_id: Mapping[str, RunRow], tops: dict[str, str]) -> str:
    """Return the id of the outermost run, or of the earliest of several runs that name each other as parents.

    `tops` has the answers so far: each run is passed once, however long the chains are.
    """
    path: dict[str, RunRow] = {}
    at: RunRow | None = run
    while at is not None and at.run_id not in tops and at.run_id not in path:
        path[at.run_id] = at
        at = by_id.get(at.parent_run_id or "")
    if at is None:
        top = [*path][-1]
    elif at.run_id in tops:
        top = tops[at.run_id]
    else:
        names = [*path]
        top = min([path[name] for name in names[names.index(at.run_id) :]], key=_by_start).run_id
    tops.update(dict.fromkeys(path, top))
    return top


def _by_start(run: RunRow) -> tuple[float, str]:
    return run.started, run.run_id


def _run(top: RunRow, inner: Sequence[RunRow]) -> _Run:
    tokens = [run.tokens for run in inner if run.tokens is not None]
    return _Run(
        unit=top.unit_id or top.run_id,
        arm=top.arm or "",
        success=_success(top.outcome),
        steps=sum(run.steps for run in inner),
        tokens=sum(tokens) if tokens else None,
        fraction=_fraction(top),
    )


def _success(outcome: str | None) -> bool | None:
    """Return True or False for a known outcome, None for an unknown one."""
    kind = UNKNOWN if outcome == ABANDONED else kind_of(outcome)
    return None if kind == UNKNOWN else kind == "success"


def _fraction(run: RunRow) -> float | None:
    """Return the fraction that the run's first event records, or None if there is no valid one."""
    metadata = run.body.get("metadata")
    given = metadata.get("on_fraction") if isinstance(metadata, Mapping) else None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not isfinite(given) or not 0 <= given <= 1:
        return None
    return float(given)


def _units(runs: Sequence[_Run]) -> list[_Unit]:
    by_unit: dict[str, list[_Run]] = defaultdict(list)
    for run in runs:
        by_unit[run.unit].append(run)
    return [_unit(of_unit) for of_unit in by_unit.values()]


def _unit(runs: Sequence[_Run]) -> _Unit:
    known = [run for run in runs if run.success is not None]
    tokens = [float(run.tokens) for run in known if run.tokens is not None]
    return _Unit(
        arms=frozenset(run.arm for run in runs),
        fraction=runs[0].fraction,
        success=_mean([float(run.success or 0) for run in known]) if known else None,
        steps=_mean([float(run.steps) for run in known]) if known else None,
        tokens=_mean(tokens) if tokens else None,
    )


def _broken(p: float | None, in_both: int, runs: Iterable[RunRow]) -> Iterable[str]:
    if p is not None and p < BROKEN_BELOW:
        yield "the numbers of units differ from the fraction by more than chance"
    if in_both:
        yield f"units with runs in both arms: {in_both:,}"
    wrong = Counter((run.arm, run.mode) for run in runs)
    if wrong[ON, "observe"] or wrong[OFF, "steer"]:
        yield "runs have another mode than their arm: on is steered, off is observed"


def _verdict(broken: Sequence[str], on: Sequence[_Unit], off: Sequence[_Unit], found: Interval | None) -> Verdict:
    if broken:
        return "assignment broken"
    if found is None or min(len(_known(on, _share)), len(_known(off, _share))) < MIN_UNITS:
        return "not enough data"
    if found.low > 0:
        return "better"
    return "worse" if found.high < 0 else "no difference shown"


def _arm(name: str, runs: Sequence[_Run], units: Sequence[_Unit]) -> Arm:
    own = [run for run in runs if run.arm == name]
    shares, steps, tokens = (_known(units, value) for value in (_share, _steps, _tokens))
    return Arm(
        name=name,
        runs=len(own),
        units=len(units),
        known=len(shares),
        unknown_runs=sum(run.success is None for run in own),
        success=wilson(_mean(shares), len(shares)) if shares else None,
        steps=_mean(steps) if steps else None,
        tokens=_mean(tokens) if tokens else None,
        tokens_units=len(tokens),
    )


def _success_difference(on: Sequence[_Unit], off: Sequence[_Unit]) -> Interval | None:
    first, second = _known(on, _share), _known(off, _share)
    if not first or not second:
        return None
    return newcombe(wilson(_mean(first), len(first)), wilson(_mean(second), len(second)))


def _known(units: Sequence[_Unit], value: Callable[[_Unit], float | None]) -> list[float]:
    return [found for unit in units if (found := value(unit)) is not None]


def _share(unit: _Unit) -> float | None:
    return unit.success


def _steps(unit: _Unit) -> float | None:
    return unit.steps


def _tokens(unit: _Unit) -> float | None:
    return unit.tokens


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
