"""Shows the patience of each agent: how often its newest finished runs reached each rung, and how often for nothing."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from reasonblocks.monitors.patience import GOAL, MIN_STRETCHES, RUNGS, share_of
from reasonblocks.monitors.profile import patience_of, summary_in, totals_of

from ._pages import back, render
from ._visit import Refusal, Visit

HOME = "/ui/agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The times that an agent's runs have reached a rung, those that it then got out by itself, and their share."""

    rung: str
    reached: int
    needless: int
    share: float


def agents(visit: Visit) -> Response:
    """Show the agents with kept runs."""
    visit.needs_whole_org()
    rows = visit.server.storage.agents.list(visit.org)
    return render(visit, "agents.html", "Agents", rows=rows, least=MIN_STRETCHES)


def agent(visit: Visit) -> Response:
    """Show the patience of an agent, and the counts from which it is learned."""
    visit.needs_whole_org()
    name, profile, project = visit.asked("name"), visit.asked("profile"), visit.asked("project")
    found = visit.server.storage.agents.read(visit.org, name, profile, "", project_id=project)
    if not found:
        raise Refusal(404, "No such agent", "No finished run of it is kept.")
    runs = [summary for given in found if (summary := summary_in(given)) is not None]
    totals = [
        Reached(rung=rung.name, reached=reached, needless=needless, share=share_of(reached, needless, rung))
        for rung, (reached, needless) in zip(RUNGS, totals_of(runs), strict=True)
    ]
    return render(
        visit,
        "agent.html",
        "Agents",
        name=name,
        profile=profile,
        project=project,
        runs=len(runs),
        rung=patience_of(runs).rung,
        totals=totals,
        is_learned=max(one.reached for one in totals) >= MIN_STRETCHES,
        least=MIN_STRETCHES,
        goal=GOAL,
    )


def delete(visit: Visit) -> Response:
    """Delete the kept runs of an agent."""
    visit.needs_whole_org()
    name, profile, project = (visit.form.get(field, "") for field in ("name", "profile", "project"))
    if not visit.server.storage.agents.delete(visit.org, name, profile, project_id=project):
        raise Refusal(404, "No such agent", "No finished run of it is kept.")
    visit.audit("agent.delete", f"{name} {profile}")
    return back(HOME, "agent-deleted")
