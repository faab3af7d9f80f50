"""Tables of how needed interventions were: by source, beside other configurations, and by monitor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reasonblocks.monitors.builtin import MONITORS
from reasonblocks_workbench.calibration._columns import MIN_STEPS
from reasonblocks_workbench.calibration.statistics import Draws, interval

from .hindsight import EARLY_STEPS, MEANINGS, MIN_INTERVENTIONS, MIN_STEPS_AFTER, Hindsight, overall, was_needed
from .measure import Figures
from .sources import Source, failed
from .staleness import troubles
from .table import Cell, Table
from .trail import Trail

__all__ = ["compared_table", "monitors_table", "needed_table", "troubles_table"]

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


GOALS: Mapping[str, str] = {
    "needless": "<= .25",
    "early": ">= .45",
    "times": ">= 1.8",
    "per_100": "<= 3",
    "said_passing": "<= .20",
    "said_failing": "",
    "lift": ">= 1.2, lower bound > 1.0",
    "land": "",
    "match": "",
}
"""Figures that are compared, and what is wanted of them on agents that had no part in the development."""


def compared_table(by_name: Mapping[str, Figures]) -> Table:
    """Return the figures over all sources of several configurations, side by side."""
    every = {name: _goal_cells(figures) for name, figures in by_name.items()}
    rows = [{"figure": figure, "goal": goal, **{name: every[name][figure] for name in every}}
            for figure, goal in GOALS.items()]  # fmt: skip
    return Table(
        name="compared",
        about=f"The row `{ALL}` of each configuration, and its odds of failure over the core sources. Goals are for "
        "agents that had no part in the development.",
        rows=rows,
    )


def _goal_cells(figures: Figures) -> dict[str, Cell]:
    draws = {**figures.macro, **overall(figures.needed)}
    if figures.core_lift:
        draws["lift"] = figures.core_lift.draws
    return {name: interval(draws[name]) if name in draws else None for name in GOALS}


HELD_BACK = ("duplicate", "cooldown", "cap")
QUIET, EARLY = "quiet", "early"


def troubles_table(
    sources: Sequence[Source], stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]
) -> Table:
    """Return why troubles got no word in time. `stale` and `trails` have an entry a source, of an entry a run."""
    return Table(
        name="troubles",
        about=f"Lasting troubles: the share with an intervention at one of their first {EARLY_STEPS} steps, and of the "
        "others the shares in which a text was held back there by the gate (the first of these reasons), or in which "
        "no monitor had one (`quiet`).",
        rows=[_trouble_row(*one) for one in zip(sources, stale, trails, strict=True)],
    )


def _trouble_row(source: Source, stale: Sequence[Sequence[bool]], trails: Sequence[Trail]) -> dict[str, Cell]:
    long_ = [place for place, run in enumerate(source.runs) if len(run.steps) >= MIN_STEPS]
    met = [_met(trails[place], start) for place in long_ for start in troubles(stale[place])]
    shares = {name: met.count(name) / len(met) if met else None for name in (EARLY, *HELD_BACK, QUIET)}
    return {"source": source.name, "troubles": len(met), **shares}


def _met(trail: Trail, start: int) -> str:
    """Return what became of the trouble that begins at `start`."""
    if any(start <= one.step < start + EARLY_STEPS for one in trail.interventions):
        return EARLY
    gates = trail.gates[start : start + EARLY_STEPS]
    return next((reason for reason in HELD_BACK if reason in gates), QUIET)


def monitors_table(
    sources: Sequence[Source], stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]
) -> Table:
    """Return what each monitor contributes. `stale` and `trails` have an entry a source, of an entry a run."""
    return Table(
        name="monitors",
        about="Texts of each monitor, and the share of them that was needless; how often it crosses its own threshold, "
        "and the share of those steps at which a word would have been needless; in how many sources it is over its "
        f"threshold (`fires_in`), or says something (`says_in`), in at least {OFTEN:.0%} of the failing runs of "
        f"{MIN_STEPS} and more steps; and for each source the share of those runs in which it is over its threshold.",
        rows=list(_monitor_rows(sources, stale, trails)),
    )


def _monitor_rows(
    sources: Sequence[Source], stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]
) -> Iterator[dict[str, Cell]]:
    runs = [(flags, trail) for of, to in zip(stale, trails, strict=True) for flags, trail in zip(of, to, strict=True)]
    failing = {one.name: list(_failing(one, told)) for one, told in zip(sources, trails, strict=True)}
    failing = {name: found for name, found in failing.items() if found}
    for name in (*(monitor.name for monitor in MONITORS), LESSONS):
        says = [_share(bool(_texts_of(name, run)) for run in found) for found in failing.values()]
        fires = {source: _share(any(name in fired for fired in run.fired) for run in found)
                 for source, found in failing.items()}  # fmt: skip
        yield {
            "monitor": name,
            **_judged("interventions", "needless", [(flags, _texts_of(name, trail)) for flags, trail in runs]),
            **_judged("crossings", "idle", [(flags, _crossings_of(name, trail)) for flags, trail in runs]),
            "fires_in": sum(share >= OFTEN for share in fires.values()),
            "says_in": sum(share >= OFTEN for share in says),
            **fires,
        }


def _judged(count: str, share: str, runs: Sequence[tuple[Sequence[bool], Sequence[int]]]) -> dict[str, Cell]:
    """Return the number of the steps that have steps after them, and the share of those where no word was needed."""
    judged = [not was_needed(flags, at) for flags, steps in runs for at in steps if at + MIN_STEPS_AFTER < len(flags)]
    return {count: len(judged), share: _share(judged) if judged else None}


def _texts_of(monitor: str, run: Trail) -> list[int]:
    return [one.step for one in run.interventions if (one.monitor or LESSONS) == monitor]


def _crossings_of(monitor: str, run: Trail) -> list[int]:
    """Return the steps at which the monitor is over its threshold, and was not one step before."""
    before: tuple[tuple[str, ...], ...] = ((), *run.fired)
    return [at for at, (now, old) in enumerate(zip(run.fired, before)) if monitor in now and monitor not in old]


def _failing(source: Source, trails: Sequence[Trail]) -> Iterator[Trail]:
    for run, trail in zip(source.runs, trails, strict=True):
        if failed(run) and len(run.steps) >= MIN_STEPS:
            yield trail


def _share(flags: Iterable[bool]) -> float:
    every = list(flags)
    return sum(every) / len(every)
