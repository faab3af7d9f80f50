"""Describes stored runs as lines of a list."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from reasonblocks.types.outcomes import kind_of
from reasonblocks_workbench.report import RunLine, text
from reasonblocks_workbench.report.line import spark_of, ticks_of
from reasonblocks_workbench.report.page import HARDEST

from ..storage import Storage
from ..summary import summary_of
from ..values import Body, RunRow
from ._paths import run_href
from ._words import status

MOST_NARROW = 1_000
"""The most steps that a list reads of an unfinished run. For a longer run, it shows the number of its events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in the list: its line, the id of its row in the page, and its times."""

    line: RunLine
    place: str
    started: float
    is_live: bool


def lines_of(storage: Storage, org_id: str, rows: Sequence[RunRow], now: float) -> list[Listed]:
    """Return the runs of a list. Reads the steps of unfinished runs."""
    steps = storage.runs.narrow(org_id, [row.run_id for row in rows if row.summary is None])
    return [
        line_with_summary(row, row.summary or summary_of(steps.get(row.run_id, ()), row.outcome), now) for row in rows
    ]


def line_with_summary(row: RunRow, summary: Body, now: float) -> Listed:
    """Return the line of a run with its summary."""
    word = status(row, now)
    return Listed(line=_line(row, summary, word), place=_place(row.run_id), started=row.started, is_live=word == "live")


def _line(row: RunRow, summary: Body, word: str) -> RunLine:
    unheard = row.mode == "observe"
    told = sum(summary["told"].values()) + sum(summary["withheld"].values())
    ended = row.seen if row.finished is None else row.finished
    return RunLine(
        href=run_href(row.run_id),
        run_id=text.preview(row.run_id, 80),
        title=text.preview(row.task, 110) or text.preview(row.run_id, 80) or "run",
        agent=text.preview(row.agent_name, 60),
        states=tuple(summary["states"]),
        hardest=_known((row.state or "") if row.finished is None else summary["hardest"]),
        outcome=(row.outcome or "")[:200],
        outcome_kind=_kind(row),
        doubtful=bool(summary["doubts"]),
        unheard=unheard,
        told=told,
        kinds=tuple(summary["kinds"]),
        failures=tuple(summary["failures"]),
        steps=summary["steps"] if row.steps < MOST_NARROW else row.steps,
        tokens=row.tokens,
        cost_usd=row.cost_usd,
        seconds=max(0.0, ended - row.started),
        started=row.started,
        peak=summary["peak"],
        spark=spark_of(summary["points"]),
        ticks=ticks_of(summary["ticks"], summary["last"]),
        status=word,
    )


def _known(state: str) -> str:
    return state if state in HARDEST or not state else "?"


def _kind(row: RunRow) -> str:
    return "open" if row.finished is None else kind_of(row.outcome)


def _place(run_id: str) -> str:
    """Return the id of a run's row, which contains no character of the run's id."""
    return "run-" + hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
