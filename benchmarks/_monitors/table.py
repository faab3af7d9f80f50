"""Prints figures as JSON lines, aligned text, or Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import TypeAlias

import numpy as np

from reasonblocks.types import FSMState
from reasonblocks_workbench.calibration._columns import COLUMNS
from reasonblocks_workbench.calibration.compare import Lift
from reasonblocks_workbench.calibration.statistics import Draws, Interval, Tables, interval, mean_of, odds_ratio

from .measure import Figures
from .states import LONG, SHOWN, StatesOf

__all__ = ["Cell", "Points", "Table", "difference_table", "json_lines", "markdown", "tables", "text"]

Cell: TypeAlias = "str | int | float | Interval | None"
MACRO = "macro"
ALL = "mean"
LARGE = 100
"""Numbers from here on are shown without decimals."""
ALL_LONG = f"mean, {LONG}+ steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(Interval):
    """A difference of two shares: in text it is shown in percentage points, with its sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with the same keys; the first key names the row. `about` is what the reader must know."""

    name: str
    about: str
    rows: Sequence[Mapping[str, Cell]]


def tables(figures: Figures, measured: str) -> list[Table]:
    """Everything that is known of one configuration; `measured` says which."""
    core = [name for name, one in figures.sources.items() if not one.oracle_stop]
    every = [
        Table(
            name="columns",
            about=f"{measured} 95 % intervals by tasks; {MACRO} is the mean over {', '.join(core) or 'no source'}.",
            rows=list(_column_rows(figures)),
        ),
        Table(
            name="lift",
            about="Odds ratio of failure after the first injection, against runs of the source that go on as long and "
            "had none (Mantel-Haenszel). `lift` by tasks; `low`, `high` take every run for itself.",
            rows=list(_lift_rows(figures)),
        ),
        Table(
            name="pool",
            about="All core runs in one heap, and one threshold for all core sources.",
            rows=list(_pool_rows(figures)),
        ),
        Table(
            name="states",
            about="Share of steps in each state; share of failing / successful runs of 8 and more steps that reach it; "
            "odds ratio of failure with length held, where FAST holds more of the run than of its bin's median run, "
            "and where SLOW was reached. Means are over the sources that do not stop at success, and those among them "
            f"whose median run has {LONG} steps and more; their odds are pooled.",
            rows=list(_state_rows(figures.states)),
        ),
        Table(
            name="cost",
            about="Medians over all steps, in microseconds; length of the trace state at the end of runs, in bytes.",
            rows=[asdict(figures.cost)] if figures.cost else [],
        ),
    ]
    return [table for table in every if table.rows]


def difference_table(paired: Mapping[str, Draws], one: str, other: str) -> Table:
    """Paired differences of the macro columns."""
    return Table(
        name="difference",
        about=f"{one} minus {other}, in the same redraws; for `lift_ratio` one divided by the other.",
        rows=[{"column": name, "difference": interval(draws)} for name, draws in paired.items()],
    )


def _column_rows(figures: Figures) -> Iterator[dict[str, Cell]]:
    for name, runs in figures.sources.items():
        counts = {"runs": len(runs.failing), "failing": int(runs.failing.sum())}
        yield {"source": name, **counts, **_cells(figures.columns[name])}
    if figures.macro:
        yield {"source": MACRO, "runs": None, "failing": None, **_cells(figures.macro)}


def _cells(columns: Mapping[str, Draws]) -> dict[str, Cell]:
    return {name: interval(columns[name]) if name in columns else None for name in COLUMNS}


def _lift_rows(figures: Figures) -> Iterator[dict[str, Cell]]:
    for name, found in figures.lifts.items():
        yield {"source": name, **_lift_cells(found)}
    if figures.core_lift:
        yield {"source": MACRO, **_lift_cells(figures.core_lift)}


def _lift_cells(found: Lift) -> dict[str, Cell]:
    low, high = found.bounds
    counts: dict[str, Cell] = {"fired": found.fired, "failed": found.failing, "expected": found.expected}
    return {"lift": interval(found.draws), "low": low, "high": high, **counts}


def _pool_rows(figures: Figures) -> Iterator[dict[str, Cell]]:
    if figures.pooled_full is not None:
        best = figures.one_threshold
        yield {
            "pooled": "core",
            "full": figures.pooled_full,
            "half": figures.pooled_half,
            "threshold": best.threshold if best else None,
            "recall": best.recall if best else None,
            "false_alarms": best.flagged if best else None,
        }


def _state_rows(every: Sequence[StatesOf]) -> Iterator[dict[str, Cell]]:
    for one in every:
        counts: dict[str, Cell] = {"runs": one.runs, "long_runs": one.long_runs, "median_steps": one.median_steps}
        yield {"source": one.source.name, **counts, **_state_cells([one])}
    told = [one for one in every if not one.source.oracle_stop]
    for name, parts in ((ALL, told), (ALL_LONG, [one for one in told if one.median_steps >= LONG])):
        if parts:
            yield {"source": name, **_state_cells(parts)}


def _state_cells(parts: Sequence[StatesOf]) -> dict[str, Cell]:
    """Means over the sources; the odds pooled."""
    shares: dict[str, Cell] = {state.value: mean(one.shares[state] for one in parts) for state in SHOWN}
    reach: dict[str, Cell] = {}
    for state in (FSMState.FAST, FSMState.SLOW, FSMState.SKIP):
        reach[f"{state.value}_failing"] = interval(mean_of([one.reach_failing[state] for one in parts]))
        reach[f"{state.value}_passing"] = interval(mean_of([one.reach_passing[state] for one in parts]))
    odds = {"FAST_odds": _odds([one.fast for one in parts]), "SLOW_odds": _odds([one.slow for one in parts])}
    return {**shares, **reach, **odds}


def _odds(parts: Sequence[Tables | None]) -> Cell:
    told = [part for part in parts if part is not None]
    return interval(odds_ratio(Tables.joined(told))) if told else None


def json_lines(table: Table) -> Iterator[str]:
    """One object a row; an interval is a list: point, low, high. What cannot be told is null."""
    for row in table.rows:
        yield json.dumps({"table": table.name, **{key: _json(cell) for key, cell in row.items()}})


def _json(cell: Cell) -> object:
    if isinstance(cell, Interval):
        return [_json(part) for part in (cell.point, cell.low, cell.high)]
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


def text(table: Table) -> Iterator[str]:
    """Aligned columns under their names."""
    yield f"\n{table.name}: {table.about}"
    yield from _aligned(_grid(table))


def _aligned(grid: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*grid)]
    for line in grid:
        first, *rest = (cell.ljust(width) for cell, width in zip(line, widths))
        yield "  ".join([first, *rest]).rstrip()


def markdown(table: Table) -> Iterator[str]:
    """A heading, what the reader must know, and a table."""
    head, *body = _grid(table)
    yield from (f"## {table.name.capitalize()}", "", table.about, "", _row(head), _row(["---"] * len(head)))
    yield from map(_row, body)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _grid(table: Table) -> list[list[str]]:
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    return [names, *([_shown(row.get(name)) for name in names] for row in table.rows)]


def _shown(cell: Cell) -> str:
    if isinstance(cell, Points) and not np.isnan(cell.point):
        return f"{100 * cell.point:+.1f} [{100 * cell.low:+.1f}, {100 * cell.high:+.1f}]"
    if isinstance(cell, Interval):
        return "-" if np.isnan(cell.point) else f"{cell.point:.3f} [{cell.low:.2f}, {cell.high:.2f}]"
    if isinstance(cell, float):
        return "-" if np.isnan(cell) else f"{cell:.3f}" if abs(cell) < LARGE else f"{cell:.0f}"
    return "-" if cell is None else str(cell)
