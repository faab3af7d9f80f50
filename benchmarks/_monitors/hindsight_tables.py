"""Tables of how needed interventions were: by source, beside other configurations, and by monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reasonblocks._monitors.builtin import MONITORS
from reasonblocks.calibration._columns import MIN_STEPS
from reasonblocks.calibration._statistics import Draws, interval

from .hindsight import MEANINGS, MIN_INTERVENTIONS, MIN_STEPS_AFTER, Hindsight, overall, was_needed
from .measure import Figures
from .sources import Source, failed
from .table import Cell, Table
from .trail import Intervention, Trail

__all__ = ["compared_table", "monitors_table", "needed_table"]

ALL = "all"
COUNTS = ("interventions", "troubles")
LESSONS = "(lessons)"
"""The row of the texts that no monitor wrote."""
OFTEN = 0.01
"""The share of a source's failing runs from which on a monitor counts as used there."""


def needed_table(found: Sequence[Hindsight]) -> Table:
    """Return the figures of each source, and of all."""
    return Table(
        name="needed",
        about="Was a word needed? By what the unsteered run did next: see --columns. 95 % intervals by tasks. "
        f"In `{ALL}`, `next`, `base` and `needless` are means over the sources with at least {MIN_INTERVENTIONS} "
        "interventions, `stale` and the shares of runs means over all sources, `early` and `per_100` pooled.",
        rows=list(_needed_rows(found)),
    )


def _needed_rows(found: Sequence[Hindsight]) -> Iterator[dict[str, Cell]]:
    for one in found:
        counts: dict[str, Cell] = {"runs": int(one.counts.runs[0]), "steps": int(one.counts.steps[0])}
        yield {"source": one.name, **counts, **_cells(one.figures, [one])}
    if found:
        whole = {name: int(sum(getattr(one.counts, name)[0] for one in found)) for name in ("runs", "steps")}
        yield {"source": ALL, **whole, **_cells(overall(found), found)}


def _cells(figures: Mapping[str, Draws], parts: Sequence[Hindsight]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name in MEANINGS:
        if name in COUNTS:
            cells[name] = int(sum(getattr(one.counts, name)[0] for one in parts))
        else:
            cells[name] = interval(figures[name]) if name in figures else None
    return cells


BESIDE = ("land", "match")
"""Macro columns that are shown beside the figures of what was needed."""


def compared_table(by_name: Mapping[str, Figures]) -> Table:
    """Return the row `all` of several configurations, with what they say of the odds of failure."""
    return Table(
        name="compared",
        about=f"The row `{ALL}` of each configuration, and its odds of failure: `lift`, `land` and `match` are those "
        "over the core sources.",
        rows=list(_compared_rows(by_name)),
    )


def _compared_rows(by_name: Mapping[str, Figures]) -> Iterator[dict[str, Cell]]:
    for name, figures in by_name.items():
        found, lift = figures.needed, figures.core_lift
        odds: dict[str, Cell] = {"lift": interval(lift.draws) if lift else None}
        odds |= {column: interval(figures.macro[column]) if column in figures.macro else None for column in BESIDE}
        yield {"configuration": name, **_cells(overall(found), found), **odds}


def monitors_table(
    sources: Sequence[Source], stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]
) -> Table:
    """Return what each monitor contributes. `stale` and `trails` have an entry a source, of an entry a run."""
    return Table(
        name="monitors",
        about="Texts of each monitor, and the share of them that was needless; in how many sources it is over its own "
        f"threshold (`fires_in`), or says something (`says_in`), in at least {OFTEN:.0%} of the failing runs of "
        f"{MIN_STEPS} and more steps; and for each source the share of those runs in which it is over its threshold.",
        rows=list(_monitor_rows(sources, stale, trails)),
    )


def _monitor_rows(
    sources: Sequence[Source], stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]
) -> Iterator[dict[str, Cell]]:
    said, needless = Counter[str](), Counter[str]()
    for flags, told in ((flags, told) for of, to in zip(stale, trails, strict=True) for flags, told in zip(of, to)):
        for one in told.interventions:
            if one.step + MIN_STEPS_AFTER < len(flags):
                said[_row_of(one)] += 1
                needless[_row_of(one)] += not was_needed(flags, one.step)
    failing = {one.name: list(_failing(one, told)) for one, told in zip(sources, trails, strict=True)}
    failing = {name: runs for name, runs in failing.items() if runs}
    for name in (*(monitor.name for monitor in MONITORS), LESSONS):
        fires = {source: _share(_fires(run, name) for run in runs) for source, runs in failing.items()}
        says = [_share(_says(run, name) for run in runs) for runs in failing.values()]
        yield {
            "monitor": name,
            "interventions": said[name],
            "needless": needless[name] / said[name] if said[name] else None,
            "fires_in": sum(share >= OFTEN for share in fires.values()),
            "says_in": sum(share >= OFTEN for share in says),
            **fires,
        }


def _fires(run: Trail, monitor: str) -> bool:
    return any(monitor in fired for fired in run.fired)


def _says(run: Trail, monitor: str) -> bool:
    return any(_row_of(one) == monitor for one in run.interventions)


def _row_of(one: Intervention) -> str:
    return one.monitor or LESSONS


def _failing(source: Source, trails: Sequence[Trail]) -> Iterator[Trail]:
    for run, trail in zip(source.runs, trails, strict=True):
        if failed(run) and len(run.steps) >= MIN_STEPS:
            yield trail


def _share(flags: Iterable[bool]) -> float:
    every = list(flags)
    return sum(every) / len(every)
