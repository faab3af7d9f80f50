"""Summarises a run in one line of the list of runs, with a drawing of its difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import text
from .page import HARDEST, RunPage

SPARK_WIDTH, SPARK_HEIGHT = 132, 24
MOST_POINTS = 66
"""The most points of the drawing: one for every two pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in a list. Create it with `run_line`; `href` is the address of its page."""

    href: str
    run_id: str
    title: str
    """The task, or the run's id without one."""
    agent: str
    states: tuple[str, ...]
    hardest: str
    outcome: str
    outcome_kind: str
    doubtful: bool
    unheard: bool
    """True if the agent has seen none of the texts."""
    told: int
    """The texts of monitors, lessons and operators."""
    kinds: tuple[str, ...]
    failures: tuple[str, ...]
    steps: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None
    started: float | None
    peak: float | None
    spark: str
    ticks: str
    status: str = ""
    """The word for a run without an outcome, as in `RunPage`."""

    @property
    def in_doubt(self) -> bool:
        return self.doubtful and self.outcome_kind == "success"

    @property
    def hardness(self) -> int:
        """A number that is larger for harder states."""
        return len(HARDEST) - HARDEST.index(self.hardest) if self.hardest in HARDEST else 0


def run_line(page: RunPage, href: str) -> RunLine:
    """Return the line of a run."""
    levels = [row.entry.difficulty for row in page.rows]
    known = [level for level in levels if level is not None]
    last = max(1, len(page.rows) - 1)
    return RunLine(
        href=href,
        run_id=text.preview(page.run_id, 80),
        title=text.preview(page.task, 110) or text.preview(page.run_id, 80) or "run",
        agent=text.preview(page.agent, 60),
        states=page.states,
        hardest=page.states[0] if page.states else "",
        outcome=page.outcome[:200],
        outcome_kind=page.outcome_kind,
        doubtful=bool(page.doubts),
        unheard=page.unheard,
        told=len(page.told),
        kinds=_kinds(page),
        failures=tuple(text.plain(name)[:60] for name in page.failure_types),
        steps=page.steps,
        tokens=page.tokens,
        cost_usd=page.cost_usd,
        seconds=page.seconds,
        started=page.started,
        peak=round(max(known), 3) if known else None,
        spark=spark_of(levels),
        ticks=ticks_of([row.number for row, _ in page.told], last),
    )


def _kinds(page: RunPage) -> tuple[str, ...]:
    found = dict.fromkeys(told.kind for _, told in page.told)
    return (*found, *(("stop",) if page.stopped is not None else ()), *(("doubt",) if page.doubts else ()))


def _y(level: float) -> float:
    return round((1 - min(1.0, max(0.0, level))) * (SPARK_HEIGHT - 8) + 2, 1)


def spark_of(levels: Sequence[float | None]) -> str:
    """Return the path of the difficulty, the highest of each stretch of a long run."""
    each = -(-len(levels) // MOST_POINTS) or 1
    groups = [[one for one in levels[at : at + each] if one is not None] for at in range(0, len(levels), each)]
    step = SPARK_WIDTH / max(1, len(groups) - 1)
    path, pen = [], "M"
    for at, group in enumerate(groups):
        if not group:
            pen = "M"
            continue
        path.append(f"{pen}{at * step:.0f} {_y(max(group)):g}")
        pen = "L"
    return "".join(path) if len(path) > 1 else ""


def ticks_of(calls: Sequence[int], last: int) -> str:
    """Return the path of the marks under the drawing, one for each call before which the agent was told a text."""
    places = dict.fromkeys(round(min(1.0, call / last) * SPARK_WIDTH) for call in calls)
    return "".join(f"M{place} {SPARK_HEIGHT}v-5" for place in list(places)[:MOST_POINTS])
