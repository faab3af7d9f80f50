"""Describes stored runs as lines of a list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasonblocks.report import RunLine
from reasonblocks.report import _text as text
from reasonblocks.report._line import spark_of, ticks_of
from reasonblocks.report._page import WHO

from .._storage import Storage
from .._summary import summary_of
from .._values import Body, RunRow
from ._paths import run_href
from ._words import status

_KINDS = {"monitor": "monitor", "operator": "operator", "lesson": "lesson"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in the list: its line, the name of its row, and its times."""

    line: RunLine
    place: str
    started: float
    is_live: bool


def lines_of(storage: Storage, org_id: str, rows: Sequence[RunRow], now: float) -> list[Listed]:
    """Return the runs of a list; the steps of those that have not finished are read."""
    steps = storage.runs.narrow(org_id, [row.run_id for row in rows if row.summary is None])
    return [listed(row, row.summary or summary_of(steps.get(row.run_id, ()), row.outcome), now) for row in rows]


def listed(row: RunRow, summary: Body, now: float) -> Listed:
    """Return the line of a run with its summary."""
    word = status(row, now)
    return Listed(line=_line(row, summary, word), place=place_of(row.run_id), started=row.started, is_live=word == "live")


def place_of(run_id: str) -> str:
    """Return the name of a run's row: an id of the page without the run's own characters."""
    return "run-" + hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
