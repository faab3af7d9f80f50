"""Prints figures as JSON lines, aligned text, or Markdown."""

from __future__ import annotations

import json
from _statistics import Interval
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

__all__ = ["Cell", "Points", "Table", "json_lines", "markdown", "text"]

Cell: TypeAlias = "str | int | float | Interval | None"
LARGE = 100
"""Numbers from here on are shown without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(Interval):
    """A difference of two shares: in text it is shown in percentage points, with its sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with the same keys; the first key names the row. `about` is what the reader must know."""

    name: str
    about: str
    rows: Sequence[Mapping[str, Cell]]


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
