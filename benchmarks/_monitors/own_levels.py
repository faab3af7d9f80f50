"""Measures agents' own levels: each run is judged by what is usual in other runs of its agent, outcomes unseen."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from reasonblocks.engine.own_level import AgentProfile, judged
from reasonblocks.monitors.builtin import Calibration
from reasonblocks_workbench.calibration import shipped
from reasonblocks_workbench.calibration.statistics import interval
from reasonblocks_workbench.traces import RecordedRun

from .configurations import in_library
from .hindsight import hindsight, overall
from .measure import core_lift
from .sources import Source
from .table import Cell, Table
from .trail import Trail
from .trail import judged as trails_of

__all__ = ["levels", "own_level_table"]

DRAWS = ((20, 1), (20, 2), (20, 3), (50, 1), (50, 2), (50, 3), (None, 1))
"""Numbers of runs that a level is taken from, 20 at least, and of the draw. None: all of the tasks' other half."""
FIGURES = ("said_failing", "said_passing", "needless", "times", "early", "per_100")


def own_level_table(
    sources: Sequence[Source],
    stale: Sequence[Sequence[Sequence[bool]]],
    shipped_trails: Sequence[Sequence[Trail]],
    boot: int,
    workers: int,
) -> Table:
    """Return the figures by the shipped thresholds, and by the levels from so many runs, in several draws."""

    def row(runs: str, draw: int | None, trails: Sequence[Sequence[Trail]]) -> dict[str, Cell]:
        found = overall([hindsight(*one, boot) for one in zip(sources, stale, trails, strict=True)])
        lift = core_lift(sources, trails, boot)
        cells: dict[str, Cell] = {name: interval(found[name]) for name in FIGURES if name in found}
        return {"runs": runs, "draw": draw, "lift": interval(lift.draws) if lift else None, **cells}

    def rows() -> Iterator[dict[str, Cell]]:
        yield row("shipped", None, shipped_trails)
        for size, draw in DRAWS:
            each = zip(sources, shipped_trails, strict=True)
            trails = [_by_own_level(source, seen, size, draw, workers) for source, seen in each]
            yield row("all" if size is None else str(size), draw, trails)

    return Table(
        name="own level",
        about="Each half of a source's tasks by the level of so many runs of the other half, whose outcomes are not "
        "looked at. With fewer than 20 runs, the shipped thresholds hold. Each draw has other halves and other runs.",
        rows=list(rows()),
    )


def _by_own_level(source: Source, seen: Sequence[Trail], size: int | None, draw: int, workers: int) -> list[Trail]:
    """Return the trails of a source's runs."""
    found: dict[int, Trail] = {}
    for held, calibration in levels(source, seen, size, draw):
        runs: list[RecordedRun] = [source.runs[place] for place in held]
        found |= zip(held, trails_of(in_library(calibration), runs, workers), strict=True)
    return [found[place] for place in range(len(source.runs))]


def levels(
    source: Source, seen: Sequence[Trail], size: int | None, draw: int
) -> Iterator[tuple[Sequence[int], Calibration]]:
    """Yield the places of runs, and the calibration with the level of so many runs of other tasks; all are held once.

    A level is of one agent with one task profile, as in the library.
    """
    order = random.Random(f"{draw} {source.name}")
    tasks = sorted(set(source.tasks))
    first = frozenset(order.sample(tasks, len(tasks) // 2))
    for kind in sorted({run.task_profile or "" for run in source.runs}):
        halves = [_places(source, kind, first, inside=inside) for inside in (True, False)]
        for held, others in (halves, halves[::-1]):
            drawn = others if size is None or len(others) <= size else order.sample(others, size)
            profile = AgentProfile(runs=tuple(seen[place].summary for place in drawn if seen[place].summary))
            yield held, judged(shipped(), profile)


def _places(source: Source, kind: str, tasks: frozenset[str], *, inside: bool) -> list[int]:
    every = enumerate(source.runs)
    return [n for n, run in every if (run.task_profile or "") == kind and (run.task_key in tasks) is inside]
