"""Shows the list of runs, with its filters and its pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from reasonblocks.types.outcomes import KNOWN, UNKNOWN
from reasonblocks_workbench.report.view import Fact

from ..values import RunFilter
from ._counts import DAY, facts_of
from ._lines import lines_of
from ._pages import render
from ._paths import HOME, with_query
from ._visit import Visit

PAGE = 50
"""Runs on a page of the list."""
STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")
OUTCOMES = ("live", *KNOWN, UNKNOWN)
NAMES = ("agent", "state", "outcome", "failure", "experiment", "arm", "q")
"""The names of the filters in an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter of the list."""

    name: str
    label: str
    values: Sequence[str]
    chosen: str


def runs(visit: Visit) -> Response:
    """Show the newest runs that fit the filters, and links to older ones."""
    chosen = {name: visit.asked(name).strip()[:300] for name in NAMES}
    cursor = visit.asked("cursor")
    wanted = RunFilter(
        agent=chosen["agent"],
        state=chosen["state"],
        outcome=chosen["outcome"],
        failure_type=chosen["failure"],
        experiment_id=chosen["experiment"],
        arm=chosen["arm"],
        q=chosen["q"],
        project_id=visit.key.project_id,
    )
    try:
        rows, older = visit.server.storage.runs.list(visit.org, wanted, limit=PAGE, cursor=cursor or None)
    except ValueError:  # a cursor of another version, or an invented one
        rows, older = visit.server.storage.runs.list(visit.org, wanted, limit=PAGE, cursor=None)
        cursor = ""
    filtered = any(chosen.values())
    lines = lines_of(visit.server.storage, visit.org, rows, visit.now)
    return render(
        visit,
        "list.html",
        "Runs",
        any=bool(rows) or filtered or bool(cursor),
        lines=lines,
        facts=_facts(visit),
        filters=_filters(visit, chosen),
        chosen=chosen,
        filtered=filtered,
        newest=with_query(HOME, chosen) if cursor else "",
        older=with_query(HOME, {**chosen, "cursor": older}) if older else "",
        url=str(visit.request.base_url).rstrip("/"),
    )


def _facts(visit: Visit) -> list[Fact]:
    """Return the headline figures: the live runs, and the runs of the last day."""
    counts = visit.server.storage.runs.health(visit.org, since=visit.now - DAY, project_id=visit.key.project_id)
    _, *others = facts_of(counts)
    return [Fact("Live", f"{counts['live']:,}"), Fact("Last 24 hours", f"{counts['runs']:,}", "runs"), *others]


def _filters(visit: Visit, chosen: dict[str, str]) -> list[Filter]:
    choices = visit.server.storage.runs.choices(visit.org, visit.key.project_id)
    rows = (
        ("agent", "agent", choices.get("agents", ())),
        ("state", "state", STATES),
        ("outcome", "outcome", OUTCOMES),
        ("failure", "failure type", choices.get("failure_types", ())),
        ("experiment", "experiment", choices.get("experiments", ())),
        ("arm", "arm", ("on", "off") if choices.get("experiments") else ()),
    )
    return [
        Filter(name=name, label=label, values=_with(values, chosen[name]), chosen=chosen[name])
        for name, label, values in rows
        if values or chosen[name]
    ]


def _with(values: Sequence[str], chosen: str) -> Sequence[str]:
    return values if not chosen or chosen in values else (*values, chosen)
