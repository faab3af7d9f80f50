"""Decides whether an agent should be steered, from the estimates at the points of its runs, and says so in words.

`steer`: the interval of the advantage lies above zero, random exchanges of arm and `off` seldom reach it, and the
failure rate of the runs that are spoken into is above the break-even rate, where both are known. `observe`: the
interval lies below zero, and exchanges seldom reach it: do not steer this agent here. `undecided`: neither.
Each verdict is at the 5 % level by itself: of many arms, one may pass by chance.
"""

from __future__ import annotations

from _statistics import Draws
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, isclose, isfinite
from typing import Any, Literal, TypeAlias

from .rows import Phase, Row
from .statistics import (
    BOOT,
    MIN_POINTS,
    Effect,
    Interval,
    Sample,
    base_failure,
    break_even,
    changed,
    effect,
    further,
    interval,
    macro,
    samples,
    share_interval,
    sign_flip_p,
)

__all__ = ["ALL", "Decision", "Verdict", "as_text", "verdicts"]

Decision: TypeAlias = Literal["steer", "observe", "undecided"]
ALL = "all"
"""The scope of the verdict over all families."""
LEVEL = 0.05
LEAST_CHANGED = 6
"""Points that have to change before random exchanges reach the level: five give as much with p = 2 / 2 ** 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one arm in one family, or over all: then the advantage is the mean over families.

    `break_even` and `failure` are rates between 0 and 1, None where they are unknown. `p` is that of random exchanges.
    `further_points` and `further_tasks` would settle an undecided verdict with a chance of 80 %, if the effect is as
    seen; they are None for other verdicts, and where nothing is known of the number.
    """

    model: str
    through: str
    phase: Phase
    arm: str
    scope: str
    decision: Decision
    reason: str
    points: int
    advantage: Interval
    recovery: Interval
    disruption: Interval
    chance_recovery: Interval
    chance_disruption: Interval
    break_even: Interval | None
    failure: Interval | None
    p: float
    further_points: int | None
    further_tasks: int | None
    harmed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of this verdict; what is unknown is null."""
        return {name: _json(value) for name, value in asdict(self).items()}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return [_json(value[name]) for name in ("point", "low", "high")]
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not isfinite(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """An arm of a model, and the share of tasks that have a point; a whole run's start is one in every task."""

    model: str
    through: str
    arm: str
    whole: bool
    reach: float


def verdicts(rows: Sequence[Row], boot: int = BOOT) -> Iterator[Verdict]:
    """Yield the verdict on each arm of each model: over all families first, then in each family.

    Branches are judged where there are any, and whole runs otherwise.
    """
    branches = samples(rows, "branch", boot)
    for key, sample in {**samples(rows, "whole", boot), **branches}.items():
        whole = key not in branches
        reach = 1.0 if whole else _reach(rows, key[0])
        for arm in sample.arms:
            yield from _of_arm(sample, _Case(model=key[0], through=key[1], arm=arm, whole=whole, reach=reach))


def _reach(rows: Sequence[Row], model: str) -> float:
    """Return the share of shadow runs that have a point; 1 if there is none."""
    shadows = [row for row in rows if row.phase == "shadow" and row.model == model and row.error is None]
    reached = sum(row.point is not None for row in shadows)
    return reached / len(shadows) if reached else 1.0


def _of_arm(sample: Sample, case: _Case) -> Iterator[Verdict]:
    both = sample.beside(case.arm)
    if not both.points:
        return
    inside = [_verdict(one, case, name, [name]) for name, one in both.families.items()]
    enough = [one.scope for one in inside if one.points >= MIN_POINTS]
    harmed = tuple([one.scope for one in inside if one.decision == "observe"])
    yield replace(_verdict(both, case, ALL, enough), harmed=harmed)
    yield from inside


def _verdict(sample: Sample, case: _Case, scope: str, families: Sequence[str]) -> Verdict:
    """Return the verdict on the sample's points; over all, on the mean over `families`."""
    found = effect(sample, case.arm)
    turned = found.flips
    draws = macro(sample, case.arm, _advantage) if scope == ALL else None
    advantage = found.advantage if draws is None else draws
    failed = 1 - found.off if case.whole else base_failure(sample)
    limit, p = break_even(turned), sign_flip_p(sample, case.arm, families)
    decision, reason = _decided(found.points, bool(families), interval(advantage), p, failed, limit)
    more = _more(found.points, changed(sample, case.arm), advantage) if decision == "undecided" else None
    return Verdict(
        model=case.model, through=case.through, phase="whole" if case.whole else "branch", arm=case.arm, scope=scope,
        decision=decision, reason=reason, points=found.points, advantage=interval(advantage), p=p,
        recovery=share_interval(turned.recovery, turned.lost_points), chance_recovery=interval(turned.chance_recovery),
        disruption=share_interval(turned.disruption, turned.won_points),
        chance_disruption=interval(turned.chance_disruption),
        break_even=_known(limit), failure=None if failed is None else _known(failed),
        further_points=more, further_tasks=ceil(more / case.reach) if more else None,
    )  # fmt: skip


def _more(points: int, turned: int, advantage: Draws) -> int | None:
    """Return how many further points are needed if the effect is as seen; None without one, or if none are.

    They are at least those that a family lacks, and those in which enough points change, if as many change as now.
    """
    if not turned or isclose(advantage[0], 0.0, abs_tol=1e-9):
        return None
    enough = ceil(LEAST_CHANGED * points / turned) - points
    return max(further(points, advantage) or 0, enough, MIN_POINTS - points, 0) or None


def _advantage(found: Effect) -> Draws:
    return found.advantage


def _known(draws: Draws) -> Interval | None:
    return interval(draws) if isfinite(draws[0]) else None


def _decided(
    points: int, enough: bool, advantage: Interval, p: float, failed: Draws | None, limit: Draws
) -> tuple[Decision, str]:
    """Return the decision and its reason, as a clause."""
    if points < MIN_POINTS or not enough:
        return "undecided", f"a family needs at least {MIN_POINTS} points"
    if not (advantage.low > 0 or advantage.high < 0):
        return "undecided", "the interval of the advantage contains zero"
    if p > LEVEL:
        return "undecided", f"too few points changed: random exchanges of the two give as much with p = {p:.2f}"
    if advantage.high < 0:
        return "observe", "the interval of the advantage lies below zero"
    if failed is not None and failed[0] <= limit[0]:
        return "undecided", "the failure rate is not above the break-even rate"
    return "steer", "the interval of the advantage lies above zero"


SENTENCES: Mapping[Decision, str] = {
    "steer": "Steer this agent here",
    "observe": "Do not steer this agent here: observe it only",
    "undecided": "No difference is shown yet",
}


def as_text(found: Verdict) -> Iterator[str]:
    """Yield the verdict in sentences, one a line."""
    where = "all families" if found.scope == ALL else found.scope
    start = "branch points" if found.phase == "branch" else "tasks"
    yield f"{found.model} through {found.through}, {found.arm}, {where}: {SENTENCES[found.decision]}."
    yield (
        f"  Success changes by {_in_points(found.advantage)}"
        f"{', the mean over families,' if found.scope == ALL else ''} at {found.points} {start}; {found.reason}."
    )
    yield (
        f"  It wins {_percent(found.recovery)} of the runs that are lost without steering; "
        f"by chance alone a second try wins {_percent(found.chance_recovery)}."
    )
    yield (
        f"  It loses {_percent(found.disruption)} of the runs that are won without steering; "
        f"by chance alone a second try loses {_percent(found.chance_disruption)}."
    )
    if found.break_even:
        known = f"; here {_percent(found.failure)} do" if found.failure else ""
        yield f"  Steering pays where more than {_percent(found.break_even)} of the runs fail{known}."
    if found.harmed:
        yield f"  It does harm in: {', '.join(found.harmed)}."
    if found.further_points:
        yield (
            f"  If the effect is as seen, about {_count(found.further_tasks or 0, 'further tasks')} "
            f"({_count(found.further_points, start)}) would settle it, with a chance of 80 %."
        )
    elif found.decision == "undecided":
        seen = "" if found.advantage.point else ", as no effect is seen"
        yield f"  How many further tasks would settle it is not known yet{seen}."


def _count(number: int, things: str) -> str:
    return f"{number:,} {things if number != 1 else things.removesuffix('s')}"


def _percent(given: Interval) -> str:
    if not isfinite(given.point):
        return "an unknown share"
    return f"{given.point:.0%}" + (f" [{given.low:.0%}, {given.high:.0%}]" if isfinite(given.low) else "")


def _in_points(given: Interval) -> str:
    return f"{100 * given.point:+.1f} percentage points [{100 * given.low:+.1f}, {100 * given.high:+.1f}]"
