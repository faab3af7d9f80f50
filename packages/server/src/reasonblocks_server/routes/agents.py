"""Stores the summaries of agents' finished runs for a team, from which the patience of each agent is learned."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from reasonblocks.monitors.patience import RUNGS
from reasonblocks.monitors.profile import MOST, summary_in

from ..auth import Caller
from ..errors import ApiError
from ..server import Used
from ..values import Principal
from ._common import NO_NUL, Given, Id, check_whole_org, problems

router = APIRouter(tags=["agents"])
Reader = Annotated[Principal, Caller("read")]
Client = Annotated[Principal, Caller("evaluate")]
Sender = Annotated[Principal, Caller("ingest")]
Admin = Annotated[Principal, Caller("admin")]
AgentName = Annotated[str, Query(min_length=1, max_length=200, pattern=NO_NUL)]
TaskProfile = Annotated[str, Query(max_length=200, pattern=NO_NUL)]
Project = Annotated[str, Query(max_length=200, pattern=NO_NUL)]


class Agent(BaseModel):
    """An agent of the whole org (`project_id` is ""), or of a project, with its summaries' number and newest time."""

    project_id: str
    agent_name: str
    task_profile: str
    runs: int
    newest: float


class Agents(BaseModel):
    """The agents of an org."""

    agents: list[Agent]


class Summary(BaseModel):
    """A finished run: how often each rung of the patience was reached, how often for nothing, and if it checked."""

    reached: list[int]
    needless: list[int]
    checks: bool


class Summaries(BaseModel):
    """The summaries of an agent's newest finished runs, the newest last."""

    summaries: list[Summary]


class SummaryGiven(Given):
    """The summary of a finished run."""

    agent_name: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    task_profile: str = Field(default="coding", max_length=200, pattern=NO_NUL)
    run_id: Id
    summary: dict[str, Any]


class Stored(BaseModel):
    """The confirmation that a summary is stored."""

    stored: Literal[True] = True


@router.get("/monitor/agents", responses=problems())
def list_agents(caller: Reader, server: Used) -> Agents:
    """List the agents that have summaries of runs."""
    check_whole_org(caller)
    rows = server.storage.agents.list(caller.org_id)
    found = [
        Agent(project_id=project, agent_name=name, task_profile=task, runs=runs, newest=newest)
        for project, name, task, runs, newest in rows
    ]
    return Agents(agents=found)


@router.get("/monitor/agents/profile", responses=problems())
def read_profile(
    caller: Client,
    server: Used,
    agent_name: AgentName,
    task_profile: TaskProfile = "coding",
    but: Annotated[str, Query(max_length=512, pattern=NO_NUL)] = "",
) -> Summaries:
    """Return the summaries of an agent's newest finished runs, without that of the run `but`.

    A key of a project reads and adds those of its project alone, and other keys those of the whole org.
    """
    project = caller.project_id or ""
    found = server.storage.agents.read(caller.org_id, agent_name, task_profile, but, project_id=project)
    summaries = [summary for given in found if (summary := summary_in(given)) is not None]
    return Summaries(summaries=[Summary.model_validate(summary) for summary in summaries])


@router.post("/monitor/agents/profile", responses=problems(400))
def add_summary(given: SummaryGiven, caller: Sender, server: Used) -> Stored:
    """Add or replace the summary of a run."""
    summary = summary_in(given.summary)
    if summary is None:
        rule = f"reached and needless must have {len(RUNGS)} counts from 0 to {MOST}, and checks a boolean"
        raise ApiError(422, f"summary: {rule}")
    server.storage.agents.add(
        caller.org_id, given.agent_name, given.task_profile, given.run_id, dict(summary), time.time(),
        project_id=caller.project_id or "",
    )  # fmt: skip
    return Stored()


@router.delete("/monitor/agents/profile", status_code=204, responses=problems(404))
def delete_profile(
    caller: Admin, server: Used, agent_name: AgentName, task_profile: TaskProfile = "coding", project_id: Project = ""
) -> Response:
    """Delete the summaries of an agent's runs."""
    check_whole_org(caller)
    if not server.storage.agents.delete(caller.org_id, agent_name, task_profile, project_id=project_id):
        raise ApiError(404, f"there is no agent {agent_name!r} with the task profile {task_profile!r}")
    server.audit(caller, "agent.delete", f"{agent_name} {task_profile}")
    return Response(status_code=204)
