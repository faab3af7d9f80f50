"""Stores the events of runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from reasonblocks.types.outcomes import outcome_of
from reasonblocks.wire import EventsRequest, EventsResponse, WireRefused

from ..auth import Caller
from ..errors import ApiError
from ..server import Server, Used
from ..values import Body, Ingested, Principal
from ._common import RunId, problems

router = APIRouter(tags=["telemetry"])
Sender = Annotated[Principal, Caller("ingest")]
MAX_EVENTS = 1_000
"""The most events in a batch. The clients of this project send at most 64, and halve a batch after a 413."""
MAX_INDEX = 2**53


class EventGiven(BaseModel):
    """A single event. A client may leave out its time. Unknown fields are stored."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    timestamp: float | None = Field(default=None, allow_inf_nan=False)
    metadata: dict[str, Any] | None = None


class StartGiven(EventGiven):
    """POST /monitor/runs: the start of a run."""

    run_id: str = Field(min_length=1)
    agent_name: str | None = None
    task: str | None = None
    model: str | None = None
    framework: str | None = None
    codebase_id: str | None = None
    project_id: str | None = None
    task_profile: str | None = None


class StepGiven(EventGiven):
    """POST /monitor/runs/{run_id}/steps: call `step_index`, with the step before it."""

    step_index: int = Field(ge=0, le=MAX_INDEX)
    thought: str | None = None
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None
    is_error: bool | None = None
    tokens: int | None = Field(default=None, ge=0, le=MAX_INDEX)
    input_tokens: int | None = Field(default=None, ge=0, le=MAX_INDEX)
    output_tokens: int | None = Field(default=None, ge=0, le=MAX_INDEX)
    cache_read_tokens: int | None = Field(default=None, ge=0, le=MAX_INDEX)
    step_model: str | None = None
    injections: list[str] | None = None
    injection_sources: list[str] | None = None
    intervention_texts: list[str] | None = None
    monitors_fired: list[str] | None = None
    failure_type: str | None = None
    scores: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None
    composite: float | None = Field(default=None, ge=0, le=1)


class FinishGiven(EventGiven):
    """POST /monitor/runs/{run_id}/finish.

    The outcome is "success", "failure: ExcType", "stopped: reason" or "unknown"; any other text is the reason of a
    failure.
    """

    outcome: Annotated[str, AfterValidator(outcome_of)]


class Started(BaseModel):
    """The id of the run."""

    run_id: str


class Scored(BaseModel):
    """The scores of the step's own event."""

    scores: dict[str, float]
    total_score: float
    fired: list[str]


class Finished(BaseModel):
    """The outcome as it is stored: "failure: " and the reason, if only a reason was given."""

    run_id: str
    outcome: str


@router.post("/monitor/runs", responses=problems(400))
def start_run(given: StartGiven, caller: Sender, server: Used) -> Started:
    """Store the start of a run."""
    body = _event("run_start", given)
    if given.timestamp is None:
        known = server.storage.runs.get(caller.org_id, given.run_id)
        if known is not None:  # a repeated event, not a new run with the same id
            body["timestamp"] = known.started
    _store_one(server, caller, {"framework": "", **body})
    return Started(run_id=given.run_id)


@router.post("/monitor/runs/{run_id:path}/steps", responses=problems(400))
def add_step(run_id: RunId, given: StepGiven, caller: Sender, server: Used) -> Scored:
    """Store a step: call `step_index`, with the action and the result before it.

    So call 0 has none, and the last action of a run belongs to a last step with `{"metadata": {"final": true}}`.
    """
    _store_one(server, caller, {**_event("step", given), "run_id": run_id})
    return Scored(scores=given.scores or {}, total_score=given.composite or 0.0, fired=given.monitors_fired or [])


@router.post("/monitor/runs/{run_id:path}/finish", responses=problems(400))
def finish_run(run_id: RunId, given: FinishGiven, caller: Sender, server: Used) -> Finished:
    """Store the end of a run. A later end replaces a success."""
    _store_one(server, caller, {**_event("run_finish", given), "run_id": run_id})
    return Finished(run_id=run_id, outcome=given.outcome)


@router.post("/monitor/events", responses=problems(400))
def add_events(given: EventsRequest, caller: Sender, server: Used) -> EventsResponse:
    """Store a batch of events. Repeated events change nothing. The answer lists the refused events.

    Each event has `event` ("run_start", "step" or "run_finish"), `run_id`, `timestamp` in seconds since the epoch, and
    the fields of `POST /monitor/runs`, `.../steps` or `.../finish`, which store one event.
    """
    if len(given.events) > MAX_EVENTS:
        raise ApiError(413, f"events: {len(given.events):,} events, but at most {MAX_EVENTS:,} are allowed")
    stored = _store(server, caller, given.events)
    refused = [WireRefused(index=index, detail=detail) for index, detail in stored.refused]
    return EventsResponse(accepted=stored.accepted, repeated=stored.repeated, refused=refused)


def _event(kind: str, given: EventGiven) -> Body:
    """Return the event of a single request. Older clients send null for unknown values."""
    return {"timestamp": time.time(), **given.model_dump(exclude_none=True), "event": kind}


def _store_one(server: Server, caller: Principal, event: Body) -> None:
    stored = _store(server, caller, [event])
    if stored.refused:
        raise ApiError(422, stored.refused[0][1])


def _store(server: Server, caller: Principal, events: Sequence[Mapping[str, Any]]) -> Ingested:
    stored = server.storage.runs.ingest(caller.org_id, events, now=time.time(), project_id=caller.project_id)
    runs = {run_id for event in events if isinstance(run_id := event.get("run_id"), str)}
    refused = {at for at, _ in stored.refused}
    for at, event in enumerate(events):
        if at not in refused:
            _forget_told(server, caller.org_id, event)
    server.live.events_stored(caller.org_id, runs)
    server.summarising.stored(caller.org_id, stored.unsummarised)
    server.counting.stored(caller.org_id, stored.steps, stored.finished)
    return stored


def _forget_told(server: Server, org_id: str, event: Mapping[str, Any]) -> None:
    """Drop the notes that a step reports as told. The storage has recorded them already."""
    metadata, run_id, step = event.get("metadata"), event.get("run_id"), event.get("step_index")
    ids = metadata.get("note_ids") if isinstance(metadata, Mapping) else None
    if isinstance(ids, list) and isinstance(run_id, str):
        told = [note_id for note_id in ids if isinstance(note_id, str)]
        server.live.told(org_id, run_id, told, step if isinstance(step, int) else None)
