"""Shows the usual values of each agent: the measures of its newest finished runs."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles

from starlette.responses import Response

from reasonblocks.engine.own_level import MIN_RUNS, summary_in

from ._pages import back, render
from ._visit import Refusal, Visit

HOME = "/ui/agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure over an agent's runs: the median, the 90th percentile, and the highest value."""

    name: str
    runs: int
    median: float
    tenth: float
    highest: float


def agents(visit: Visit) -> Response:
    """Show the agents with kept runs."""
    visit.needs_whole_org()
    rows = visit.server.storage.agents.list(visit.org)
    return render(visit, "agents.html", "Agents", rows=rows, least=MIN_RUNS)


def agent(visit: Visit) -> Response:
    """Show the measures of an agent."""
    visit.needs_whole_org()
    name, profile = visit.asked("name"), visit.asked("profile")
    found = visit.server.storage.agents.read(visit.org, name, profile, "")
    summaries = [summary for given in found if (summary := summary_in(given)) is not None]
    if not summaries:
        raise Refusal(404, "No such agent", "No finished run of it is kept.")
    names = dict.fromkeys(measure for summary in summaries for measure in summary)
    measures = [_measure(one, [summary[one] for summary in summaries if one in summary]) for one in names]
    return render(
        visit,
        "agent.html",
        "Agents",
        name=name,
        profile=profile,
        runs=len(summaries),
        measures=measures,
        least=MIN_RUNS,
    )


def delete(visit: Visit) -> Response:
    """Delete the usual values of an agent."""
    visit.needs_whole_org()
    name, profile = visit.form.get("name", ""), visit.form.get("profile", "")
    if not visit.server.storage.agents.delete(visit.org, name, profile):
        raise Refusal(404, "No such agent", "No finished run of it is kept.")
    visit.audit("agent.delete", f"{name} {profile}")
    return back(HOME, "agent-deleted")


def _measure(name: str, values: list[float]) -> Measure:
    tenths = quantiles(values, n=10, method="inclusive") if len(values) > 1 else values * 9
    return Measure(name=name, runs=len(values), median=tenths[4], tenth=tenths[8], highest=max(values))
