"""Counts the runs of an org and their results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, func, select

from reasonblocks.types.outcomes import kind_of

from ..values import Body
from ._tables import runs

MOST_RUNS = 100_000
"""The most runs that are counted: the newest ones."""
MOST_SUMMARIES = 10_000
"""The most finished runs whose summaries are counted: the newest ones."""


def health_of(connection: Connection, chosen: ColumnElement[bool], since: float) -> Body:
    """Return the counts of the chosen runs that started since a time, or since a later one if those are too many.

    Monitors, effects and faults are counted in finished runs only.
    """
    newest = select(runs.c.started).where(chosen, runs.c.started >= since).order_by(runs.c.started.desc())
    since = connection.execute(newest.offset(MOST_RUNS - 1).limit(1)).scalar() or since
    chosen = and_(chosen, runs.c.started >= since)
    outcomes, states, injections = Counter[str](), Counter[str](), 0
    ended = runs.c.finished.is_not(None)
    alike = (ended, runs.c.outcome, runs.c.state)
    query = select(*alike, func.count(), func.sum(runs.c.injections)).where(chosen).group_by(*alike)
    for finished, outcome, state, count, told in connection.execute(query):
        outcomes[kind_of(outcome) if finished else "live"] += count
        injections += int(told)
        if state is not None:
            states[state] += count
    return {
        "since": since,
        "runs": outcomes.total(),
        "live": outcomes.pop("live", 0),
        "by_outcome": dict(outcomes),
        "by_state": dict(sorted(states.items())),
        "injections": injections,
        **_effects(connection, chosen),
    }


def _effects(connection: Connection, chosen: ColumnElement[bool]) -> Body:
    query = select(runs.c.mode, runs.c.summary).where(chosen, runs.c.summary.is_not(None))
    rows = connection.execute(query.order_by(runs.c.started.desc()).limit(MOST_SUMMARIES))
    return _counted((mode, json.loads(text)) for mode, text in rows)  # written here, so of plain numbers


def _counted(summaries: Iterable[tuple[str, Body]]) -> Body:
    """Count the summaries. The agent of an observed run was told nothing, so its recoveries do not count."""
    monitors, judged, recovered, totals = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for mode, summary in summaries:
        totals["summarised"] += 1
        monitors.update(summary["monitors"])
        totals.update({name: summary[name] for name in ("faults", "dropped")})
        if mode != "observe":
            judged.update(summary["judged"])
            recovered.update(summary["recovered"])
    return {
        "summarised": totals["summarised"],
        "monitors": dict(monitors.most_common()),
        "recovered": {name: [recovered[name], count] for name, count in judged.most_common()},
        "faults": totals["faults"],
        "dropped": totals["dropped"],
    }
