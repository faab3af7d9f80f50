"""The measure: were interventions needed, and do troubles get one, in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

AHEAD, NEEDLESS = 4, 1
"""An intervention is needless if at most one of the next four steps is dead."""
LASTS, OF, ENDS = 4, 6, 3
"""A trouble begins at a dead step from which on four of six are dead, and ends before three others in a row."""
ENOUGH = 10
"""Judged interventions of a source from which on it counts in the mean of sources."""
COLUMNS: Mapping[str, str] = {
    "needless": "share of the interventions after which at most one of the next four steps was dead, mean of the "
    "sources with ten or more (all sources together in brackets)",
    "early": "share of the troubles (four of six steps dead) with an intervention at one of their first four steps",
    "ever": "share of the troubles with an intervention at any of their steps",
    "delay": "dead steps of a trouble until its first intervention, the median of all troubles",
    "in 5": "share of the troubles with an intervention by their fifth dead step",
    "per 100": "interventions in 100 steps",
    "failing, successful": "share of the runs with an intervention, mean of the sources",
    "n, troubles": "judged interventions, and troubles",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The counts of one source under one rule. `delays` has an entry for each trouble, infinite without a word."""

    judged: int
    needless: int
    told: int
    steps: int
    early: int
    ever: int
    delays: Sequence[float]
    failing: float
    successful: float


def troubles(dead: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the first and the last dead step of each lasting trouble of a run."""
    found, at = [], 0
    while at + OF <= len(dead):
        if not dead[at] or sum(dead[at : at + OF]) < LASTS:
            at += 1
            continue
        end, others, here = at, 0, at
        while here < len(dead) and others < ENDS:
            end, others = (here, 0) if dead[here] else (end, others + 1)
            here += 1
        found.append((at, end))
        at = end + 1
    return found


def judge(dead: Sequence[Sequence[bool]], told: Sequence[Sequence[int]], failed: Sequence[bool | None]) -> Judged:
    """Judge the interventions of a source's runs by the runs' dead steps. `failed` is None for an unknown outcome."""
    judged = needless = early = ever = 0
    delays: list[float] = []
    for of_run, said in zip(dead, told, strict=True):
        for at in said:
            if at + AHEAD < len(of_run):
                judged += 1
                needless += sum(of_run[at + 1 : at + 1 + AHEAD]) <= NEEDLESS
        for first, last in troubles(of_run):
            first_told = next((at for at in sorted(said) if first <= at <= last), None)
            ever += first_told is not None
            early += first_told is not None and first_told < first + AHEAD
            delays.append(math.inf if first_told is None else sum(of_run[first : first_told + 1]))
    return Judged(
        judged=judged,
        needless=needless,
        told=sum(map(len, told)),
        steps=sum(map(len, dead)),
        early=early,
        ever=ever,
        delays=delays,
        failing=_share(told, failed, True),
        successful=_share(told, failed, False),
    )


def _share(told: Sequence[Sequence[int]], failed: Sequence[bool | None], wanted: bool) -> float:
    found = [bool(said) for said, bad in zip(told, failed, strict=True) if bad is wanted]
    return mean(found) if found else math.nan


def row(sources: Sequence[Judged]) -> dict[str, str]:
    """Return the figures of several sources together, by column."""
    many = [one.needless / one.judged for one in sources if one.judged >= ENOUGH]
    judged, found = sum(one.judged for one in sources), [delay for one in sources for delay in one.delays]
    number = len(found)
    shares = [[value for value in values if not math.isnan(value)] for values in
              ([one.failing for one in sources], [one.successful for one in sources])]  # fmt: skip
    return {
        "needless": f"{_mean(many)} ({_ratio(sum(one.needless for one in sources), judged)})",
        "early": _ratio(sum(one.early for one in sources), number),
        "ever": _ratio(sum(one.ever for one in sources), number),
        "delay": f"{median(found):g}" if found else "-",
        "in 5": _ratio(sum(delay <= 5 for delay in found), number),
        "per 100": f"{100 * sum(one.told for one in sources) / max(1, sum(one.steps for one in sources)):.2f}",
        "failing, successful": ", ".join(map(_mean, shares)),
        "n, troubles": f"{judged}, {number}",
    }


def _ratio(over: int, under: int) -> str:
    return f"{over / under:.3f}" if under else "-"


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values):.3f}" if values else "-"
