"""Stores whole finished runs, as input for `reasonblocks learn`."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from reasonblocks.wire import WireStep

from ..auth import Caller
from ..errors import ApiError
from ..server import Used
from ..values import Principal
from ._common import Given, Id, check_whole_org, problems

router = APIRouter(tags=["traces"])
Sender = Annotated[Principal, Caller("ingest")]
Reader = Annotated[Principal, Caller("read")]
MAX_STEPS = 10_000
MAX_LISTED = 50


class TraceGiven(Given):
    """POST /traces: a finished run."""

    trace_id: Id
    outcome: str = Field(max_length=2_000)
    task: str = ""
    steps: list[WireStep] = Field(max_length=MAX_STEPS)


class TraceStored(BaseModel):
    """The id of a stored trace."""

    trace_id: str


class TraceList(BaseModel):
    """Traces by id, each in the form that `reasonblocks learn` reads as a line. `next_after` is null at their end."""

    traces: list[dict[str, Any]]
    next_after: str | None


@router.post("/traces", status_code=202, responses=problems(400, 409))
def add_trace(given: TraceGiven, caller: Sender, server: Used) -> TraceStored:
    """Store a finished run. The server itself does not learn from it."""
    body = {"run_id": given.trace_id, **given.model_dump(exclude_none=True)}
    if not server.storage.traces.add(caller.org_id, given.trace_id, body, time.time(), project_id=caller.project_id):
        raise ApiError(409, "trace_id: the trace belongs to another project")
    return TraceStored(trace_id=given.trace_id)


@router.get("/traces", responses=problems())
def list_traces(
    caller: Reader,
    server: Used,
    after: Annotated[str, Query(max_length=512)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = MAX_LISTED,
) -> TraceList:
    """List the stored traces after the one with the id `after`."""
    check_whole_org(caller)
    found = server.storage.traces.list(caller.org_id, limit, after or None)
    last = str(found[-1]["trace_id"]) if len(found) == limit else None
    return TraceList(traces=found, next_after=last)
