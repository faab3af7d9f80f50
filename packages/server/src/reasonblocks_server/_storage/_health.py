"""Counts the runs of an org and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, func, select

from .._values import Body
from ._clean import read
from ._tables import runs

MOST_SUMMARIES = 20_000
"""The most finished runs whose summaries are counted: the newest ones."""
KINDS = ("success", "failure", "stopped")


def health_of(connection: Connection, chosen: ColumnElement[bool]) -> Body:
    """Return the counts of the chosen runs. Monitors, effects and faults are counted in finished runs only."""
    totals = connection.execute(select(func.count(), func.sum(runs.c.injections)).where(chosen)).one()
    outcomes = _outcomes(connection, chosen)
    return {
        "runs": totals[0],
        "live": outcomes.pop("live", 0),
        "by_outcome": dict(outcomes),
        "by_state": _states(connection, chosen),
        "injections": int(totals[1] or 0),
        **_effects(connection, chosen),
    }


def _outcomes(connection: Connection, chosen: ColumnElement[bool]) -> Counter[str]:
    ended = runs.c.finished.is_not(None)
    query = select(ended, runs.c.outcome, func.count()).where(chosen).group_by(ended, runs.c.outcome)
    found = Counter[str]()
    for finished, outcome, count in connection.execute(query):
        found[_kind(outcome or "") if finished else "live"] += count
    return found


def _kind(outcome: str) -> str:
    return next((kind for kind in KINDS if outcome.startswith(kind)), "other")


def _states(connection: Connection, chosen: ColumnElement[bool]) -> dict[str, int]:
    query = select(runs.c.state, func.count()).where(chosen, runs.c.state.is_not(None)).group_by(runs.c.state)
    return {state: count for state, count in connection.execute(query.order_by(runs.c.state))}  # noqa: C416 - rows


def _effects(connection: Connection, chosen: ColumnElement[bool]) -> Body:
    query = select(runs.c.mode, runs.c.summary).where(chosen, runs.c.summary.is_not(None))
    rows = connection.execute(query.order_by(runs.c.started.desc()).limit(MOST_SUMMARIES))
    return _counted((mode, read(text)) for mode, text in rows)


def _counted(summaries: Iterable[tuple[str, Body]]) -> Body:
    """Count the summaries. The agent of an observed run was told nothing, so its recoveries do not count."""
    monitors, judged, recovered, totals = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for mode, summary in summaries:
        monitors.update(summary["monitors"])
        totals.update({name: summary[name] for name in ("faults", "dropped")})
        if mode != "observe":
            judged.update(summary["judged"])
            recovered.update(summary["recovered"])
    return {
        "monitors": dict(monitors.most_common()),
        "recovered": {name: [recovered[name], count] for name, count in judged.most_common()},
        "faults": totals["faults"],
        "dropped": totals["dropped"],
    }
