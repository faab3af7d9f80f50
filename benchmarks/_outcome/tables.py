"""Makes the tables of an experiment from its rows."""

from __future__ import annotations

from _statistics import Draws
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean

import numpy as np

from .rows import Row
from .statistics import (
    BOOT,
    MIN_POINTS,
    Effect,
    Point,
    Sample,
    base_failure,
    break_even,
    effect,
    healthy,
    interval,
    macro,
    mcnemar,
    mean_of,
    samples,
    share_interval,
)
from .table import Cell, Points, Table

__all__ = ["COLUMNS", "placement_of", "tables"]

ALL = "all"
NO_PLACEMENT = "-"
WINNABLE = 0.5
"""The share of a family's points that a reference policy has to win for the family to count in `winnable`."""

COLUMNS: Mapping[str, str] = {
    "points": "states at which both the arm and `off` have runs: before a shadow run's first text, or a task's start",
    "success": f"share of won runs, the arm's minus that of `off`, mean over families with at least {MIN_POINTS} "
    "points, in percentage points",
    "winnable": "in `goals`, `success` over the families in which the reference policy wins from at least half of the "
    "points, or that have no such policy; in `arms`, the share of points from which it wins",
    "families": f"families with at least {MIN_POINTS} points",
    "harmed": "those of them whose interval of the advantage is below zero",
    "r": "recovery: share of won runs of the arm where the `off` run of the same number was lost (arXiv 2602.03338)",
    "r0": "the same of a second run of `off`: recovery by chance",
    "r_beyond": "r - r0, in percentage points",
    "d": "disruption: share of lost runs of the arm where the `off` run of the same number was won",
    "d0": "the same of a second run of `off`: disruption by chance",
    "d_beyond": "d - d0, in percentage points: where runs are seldom won, most won ones are lost the next time by "
    "chance alone",
    "off_lost": "pairs whose `off` run was lost: those that r is a share of",
    "off_won": "pairs whose `off` run was won: those that d is a share of",
    "break_even": "d / (r + d), the failure rate above which the arm wins more runs than it loses",
    "failure": "the failure rate: share of shadow runs with a point that were lost",
    "gave_up": "share of runs that the agent ended itself and lost, the arm's minus that of `off`, in percentage "
    "points",
    "prompt": "prompt tokens a run, the arm's mean by that of `off`",
    "evaluated": "the same of the prompt tokens that were not in the provider's cache",
    "evaluated_a_call": "the same by model calls instead of runs: a run that gives up has fewer",
    "healthy_runs": "tasks whose shadow run would never have been told anything, and that have whole runs of both",
    "healthy": "success in these runs, the arm's minus that of `off`, in percentage points",
    "healthy_prompt": "prompt tokens of these runs, the arm's mean by that of `off`",
    "off": "share of won runs of `off`",
    "won": "share of won runs of the arm",
    "advantage": f"their difference, in percentage points, where there are at least {MIN_POINTS} points",
    "only_arm": "pairs of whole runs, of equal task and number, that only the arm won",
    "only_off": "pairs that only `off` won",
    "p": "of McNemar's exact test of these two; it takes the samples of a task for independent",
    "runs": "runs of the arm, without those that broke off with an error",
    "errors": "runs that broke off with an error, which count nowhere else",
    "with_point": "of these, runs that are, or start from, a shadow run that would have been told something",
    "ended": "share of runs that the agent ended itself",
    "steps": "mean number of model calls; a branch counts those of its shadow run before the point, too",
    "no_call": "share of these in which the model made no usable call",
    "told": "mean number of texts that the agent was told",
    "prompt_tokens": "mean prompt tokens of a run, as sent; of a branch only those after the point",
    "completion_tokens": "mean tokens of a run that the model wrote, likewise",
}  # fmt: skip
ABOUT = "95 % intervals by tasks; --columns explains the columns."


def placement_of(arm: str) -> str:
    """Return what follows "@" in the arm's name, as `tail` in `shipped@tail`."""
    return arm.rpartition("@")[2] if "@" in arm else NO_PLACEMENT


def tables(rows: Sequence[Row], *, boot: int = BOOT, placement: Callable[[str], str] = placement_of) -> Iterator[Table]:
    """Yield the tables that the rows suffice for, each for all models and what their runs went through."""
    branches, calm = samples(rows, "branch", boot), healthy(rows, boot)
    every = [
        Table(name="goals", about=f"Each arm against `off`. {ABOUT}", rows=[*_rows(branches, _goal_rows)]),
        Table(
            name="cost",
            about=f"What steering costs at the points, and in runs in good order. {ABOUT}",
            rows=[*_cost_rows(branches, calm)],
        ),
        Table(
            name="arms",
            about=f"At the points of each family; `{ALL}` counts every point once. {ABOUT}",
            rows=[*_rows(branches, _family_rows)],
        ),
        Table(name="kinds", about=f"By what was found first. {ABOUT}", rows=[*_rows(branches, _kind_rows)]),
        Table(name="monitors", about=f"By the monitor that found it. {ABOUT}", rows=[*_rows(branches, _monitor_rows)]),
        Table(
            name="placements",
            about=f"Mean over the arms of each placement; success is the mean over families as in `goals`. {ABOUT}",
            rows=[*_rows(branches, lambda sample: _placement_rows(sample, placement))],
        ),
        Table(
            name="whole",
            about=f"Runs that were steered, or not, from their first call on. {ABOUT}",
            rows=[*_rows(samples(rows, "whole", boot), _whole_rows)],
        ),
        Table(name="runs", about="All runs.", rows=[*_run_rows(rows)]),
    ]
    yield from (table for table in every if table.rows)


Cells = dict[str, Cell]
ByModel = Mapping[tuple[str, str], Sample]


def _rows(by_model: ByModel, of: Callable[[Sample], Iterator[Cells]]) -> Iterator[Cells]:
    for (model, through), sample in by_model.items():
        for cells in of(sample):
            yield {"model": model, "through": through, **cells}


def _points(draws: Draws | None) -> Cell:
    """Return a difference of shares as a cell."""
    if draws is None:
        return None
    found = interval(draws)
    return Points(point=found.point, low=found.low, high=found.high)


def _enough(found: Effect, draws: Draws) -> Cell:
    """Return the cell, or nothing where an interval of so few points would mean nothing."""
    return _points(draws) if found.points >= MIN_POINTS else None


def _advantage(found: Effect) -> Draws:
    return found.advantage


def _giving_up(found: Effect) -> Draws:
    return found.giving_up


def _goal_rows(sample: Sample) -> Iterator[Cells]:
    return ({"arm": arm, **_goal_cells(sample, arm)} for arm in sample.arms)


def _cost_rows(branches: ByModel, calm: ByModel) -> Iterator[Cells]:
    """Yield a row an arm, of the branches and of the whole runs in good order, as far as there are any."""
    found: dict[tuple[str, str, str], Cells] = defaultdict(dict)
    for key, sample in branches.items():
        for arm in sample.arms:
            found[key[0], key[1], arm] |= _cost_cells(effect(sample, arm))
    for key, sample in calm.items():
        for arm in sample.arms:
            of_arm = effect(sample, arm)
            found[key[0], key[1], arm] |= {
                "healthy_runs": of_arm.points,
                "healthy": _points(of_arm.advantage),
                "healthy_prompt": interval(of_arm.prompt),
            }
    for (model, through, arm), cells in found.items():
        yield {"model": model, "through": through, "arm": arm, **cells}


def _goal_cells(sample: Sample, arm: str) -> Cells:
    found = effect(sample, arm)
    enough = [one for one in (effect(family, arm) for family in sample.families.values()) if one.points >= MIN_POINTS]
    turned = found.flips
    return {
        "points": found.points,
        "success": _points(macro(sample, arm, _advantage)),
        "winnable": _points(macro(_where_winnable(sample), arm, _advantage)),
        "families": len(enough),
        "harmed": sum(interval(one.advantage).high < 0 for one in enough),
        "r": share_interval(turned.recovery, turned.lost_points),
        "r0": interval(turned.chance_recovery),
        "r_beyond": _points(turned.recovery - turned.chance_recovery),
        "d": share_interval(turned.disruption, turned.won_points),
        "d0": interval(turned.chance_disruption),
        "d_beyond": _points(turned.disruption - turned.chance_disruption),
        "gave_up": _points(macro(sample, arm, _giving_up)),
    }


def _cost_cells(found: Effect) -> Cells:
    return {
        "prompt": interval(found.prompt),
        "evaluated": interval(found.evaluated),
        "evaluated_a_call": interval(found.evaluated_a_call),
    }


def _winnable_share(points: Sequence[Point]) -> float | None:
    known = [point.winnable for point in points if point.winnable is not None]
    return float(mean(known)) if known else None


def _where_winnable(sample: Sample) -> Sample:
    shares = {name: _winnable_share(family.points) for name, family in sample.families.items()}
    good = {name for name, share in shares.items() if share is None or share >= WINNABLE}
    return sample.where(lambda point: point.family in good)


def _family_rows(sample: Sample) -> Iterator[Cells]:
    for name, family in {**sample.families, ALL: sample}.items():
        for arm in family.arms:
            found, turned = effect(family, arm), effect(family, arm).flips
            lost = base_failure(family.beside(arm))
            yield {
                "family": name,
                "arm": arm,
                "points": found.points,
                "winnable": _winnable_share(family.beside(arm).points),
                **_success_cells(found),
                "r": share_interval(turned.recovery, turned.lost_points),
                "r0": interval(turned.chance_recovery),
                "off_lost": turned.lost,
                "d": share_interval(turned.disruption, turned.won_points),
                "d0": interval(turned.chance_disruption),
                "off_won": turned.won,
                "break_even": interval(break_even(turned)),
                "failure": None if lost is None else interval(lost),
                "gave_up": _points(found.giving_up),
                "evaluated": interval(found.evaluated),
            }


def _success_cells(found: Effect) -> Cells:
    return {
        "off": float(found.off[0]),
        "won": float(found.won[0]),
        "advantage": _enough(found, found.advantage),
    }


def _kind_rows(sample: Sample) -> Iterator[Cells]:
    return _group_rows(sample, "kind", lambda point: point.kind)


def _monitor_rows(sample: Sample) -> Iterator[Cells]:
    return _group_rows(sample, "monitor", lambda point: point.monitor)


def _group_rows(sample: Sample, title: str, group: Callable[[Point], str | None]) -> Iterator[Cells]:
    names = {group(point) for point in sample.points} - {None}
    for name in sorted(filter(None, names)):
        of_group = sample.where(lambda point, name=name: group(point) == name)  # type: ignore[misc]
        for arm in of_group.arms:
            found = effect(of_group, arm)
            gave_up = {"gave_up": _enough(found, found.giving_up)}
            yield {title: name, "arm": arm, "points": found.points, **_success_cells(found), **gave_up}


def _placement_rows(sample: Sample, placement: Callable[[str], str]) -> Iterator[Cells]:
    arms: dict[str, list[str]] = defaultdict(list)
    for arm in sample.arms:
        arms[placement(arm)].append(arm)
    for name, of_placement in arms.items():
        effects = [effect(sample, arm) for arm in of_placement]
        yield {
            "placement": name,
            "arms": ", ".join(of_placement),
            "success": _points(_mean([macro(sample, arm, _advantage) for arm in of_placement])),
            "gave_up": _points(_mean([macro(sample, arm, _giving_up) for arm in of_placement])),
            "evaluated": interval(mean_of([found.evaluated for found in effects])),
            "evaluated_a_call": interval(mean_of([found.evaluated_a_call for found in effects])),
        }


def _mean(figures: Sequence[Draws | None]) -> Draws | None:
    known = [draws for draws in figures if draws is not None]
    return mean_of(known) if known else None


def _whole_rows(sample: Sample) -> Iterator[Cells]:
    for name, family in {**sample.families, ALL: sample}.items():
        for arm in family.arms:
            found = effect(family, arm)
            turned = found.flips
            yield {
                "family": name,
                "arm": arm,
                "points": found.points,
                **_success_cells(found),
                "only_arm": turned.recovered,
                "only_off": turned.disrupted,
                "p": mcnemar(turned.recovered, turned.disrupted),
                "gave_up": _points(found.giving_up),
                "prompt": interval(found.prompt),
                "evaluated": interval(found.evaluated),
            }


def _run_rows(rows: Sequence[Row]) -> Iterator[Cells]:
    grouped: dict[tuple[str, str, str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.model, row.through, row.phase, row.family, row.arm].append(row)
    for (model, through, phase, family, arm), every in sorted(grouped.items()):
        good = [row for row in every if row.error is None]
        yield {
            "model": model, "through": through, "phase": phase, "family": family, "arm": arm,
            "runs": len(good), "errors": len(every) - len(good),
            "with_point": sum(row.point is not None for row in good),
            "won": _mean_of(good, lambda row: row.won), "ended": _mean_of(good, lambda row: row.ended),
            "steps": _mean_of(good, lambda row: row.steps), "no_call": _mean_of(good, _without_call),
            "told": _mean_of(good, lambda row: len(row.told)),
            "prompt_tokens": _mean_of(good, lambda row: row.prompt),
            "completion_tokens": _mean_of(good, lambda row: row.completion),
        }  # fmt: skip


def _without_call(row: Row) -> float:
    return sum(not made.name for made in row.calls) / len(row.calls) if row.calls else 0.0


def _mean_of(rows: Sequence[Row], measure: Callable[[Row], float]) -> float:
    return float(np.mean([measure(row) for row in rows])) if rows else float("nan")
