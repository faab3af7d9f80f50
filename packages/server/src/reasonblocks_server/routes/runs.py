"""Lists, returns and deletes runs, and returns counts of them."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from ..auth import Caller
from ..bodies import NoteBody, RunBody, RunDetail
from ..errors import ApiError
from ..server import Used
from ..values import Principal, RunFilter
from ._common import Chosen, RunId, Since, problems, run_of

router = APIRouter(tags=["runs"])
Reader = Annotated[Principal, Caller("read")]
Admin = Annotated[Principal, Caller("admin")]
MAX_RUNS, MAX_STEPS = 200, 500
MAX_CURSOR = 2_000
MAX_INDEX = 2**53
USUAL_SECONDS = 7 * 86_400.0
"""The time that health counts cover by default, as on the dashboard."""


class RunList(BaseModel):
    """Runs, the newest first. `next_cursor` is null at their end.

    With filters, a page before the last one may have fewer runs than `limit`, or none.
    """

    runs: list[RunBody]
    next_cursor: str | None


class RunPage(BaseModel):
    """A run with some of its step events, in order, and its notes. `next_after` is null after the last step."""

    run: RunDetail
    steps: list[dict[str, Any]]
    notes: list[NoteBody]
    next_after: int | None


class HealthSummary(BaseModel):
    """Counts of the runs that started since a time: at most the newest 100,000.

    `since` is the time from which runs are counted, later than the requested one if there are more runs.
    `monitors` has the runs in which each fired; `recovered`, by failure type, has the texts after which the run
    recovered, and those that were judged. These, `faults` and `dropped` are of `summarised` runs: the newest 10,000
    finished ones at most.
    """

    since: float
    runs: int
    live: int
    by_outcome: dict[str, int]
    by_state: dict[str, int]
    summarised: int
    monitors: dict[str, int]
    injections: int
    recovered: dict[str, Annotated[list[int], Field(min_length=2, max_length=2)]]
    faults: int
    dropped: int


@router.get("/monitor/runs", responses=problems())
def list_runs(
    caller: Reader,
    server: Used,
    limit: Annotated[int, Query(ge=1, le=MAX_RUNS)] = 50,
    cursor: Annotated[str | None, Query(max_length=MAX_CURSOR)] = None,
    agent: Chosen = "",
    state: Chosen = "",
    outcome: Literal["", "success", "failure", "stopped", "unknown", "live"] = "",
    failure_type: Chosen = "",
    experiment_id: Chosen = "",
    arm: Chosen = "",
    q: Chosen = "",
    since: Since = None,
) -> RunList:
    """List runs. `cursor` is the `next_cursor` of the previous page. `q` is a part of a task, agent name or id."""
    chosen = RunFilter(
        agent=agent,
        state=state,
        outcome=outcome,
        failure_type=failure_type,
        experiment_id=experiment_id,
        arm=arm,
        q=q,
        since=since,
        project_id=caller.project_id,
    )
    try:
        rows, after = server.storage.runs.list(caller.org_id, chosen, limit=limit, cursor=cursor or None)
    except ValueError as exc:
        raise ApiError(422, f"cursor: {exc}") from exc
    return RunList(runs=[RunBody.model_validate(row) for row in rows], next_cursor=after)


@router.get("/monitor/runs/{run_id:path}", responses=problems(404))
def show_run(
    run_id: RunId,
    caller: Reader,
    server: Used,
    after: Annotated[int, Query(ge=-1, le=MAX_INDEX)] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_STEPS)] = MAX_STEPS,
) -> RunPage:
    """Return a run, its steps after `after`, and its notes."""
    row = run_of(server, caller, run_id)
    runs = server.storage.runs
    steps, has_more = runs.page(caller.org_id, run_id, after=after, limit=limit)
    detail = RunDetail(
        **RunBody.model_validate(row).model_dump(),
        start=dict(row.body) or None,
        finish=runs.finish_body(caller.org_id, run_id),
    )
    notes = server.storage.notes.list(caller.org_id, run_id)
    return RunPage(
        run=detail,
        steps=steps,
        notes=[NoteBody.model_validate(note) for note in notes],
        next_after=steps[-1]["step_index"] if has_more else None,
    )


@router.delete("/monitor/runs/{run_id:path}", status_code=204, responses=problems(404))
def delete_run(run_id: RunId, caller: Admin, server: Used) -> Response:
    """Delete a run with its steps and notes."""
    run_of(server, caller, run_id)
    if not server.storage.runs.delete(caller.org_id, run_id):
        raise ApiError(404, f"there is no run {run_id!r}")
    server.audit(caller, "run.delete", run_id)
    return Response(status_code=204)


@router.get("/monitor/health-summary", responses=problems())
def health_summary(caller: Reader, server: Used, since: Since = None) -> HealthSummary:
    """Return counts of the runs that started since a time, by default 7 days ago. 0 stands for all runs."""
    begin = time.time() - USUAL_SECONDS if since is None else since
    found = server.storage.runs.health(caller.org_id, since=begin, project_id=caller.project_id)
    return HealthSummary.model_validate(found)
