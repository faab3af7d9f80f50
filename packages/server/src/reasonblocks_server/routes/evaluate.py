"""Answers the requests that an agent waits for: evaluations, searches for lessons, and scores."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from reasonblocks.engine import gates
from reasonblocks.exceptions import StoreError, Unavailable
from reasonblocks.monitors.kinds import TYPES
from reasonblocks.patterns import fits
from reasonblocks.render.guidance import gives_way, steered_text
from reasonblocks.types import Note
from reasonblocks.wire import (
    EvaluateRequest,
    EvaluateResponse,
    RetrieveRequest,
    RetrieveResponse,
    ScoreRequest,
    ScoreResponse,
)

from ..auth import Caller
from ..errors import ApiError
from ..limits import ends_of
from ..server import Server, Used
from ..serving import answer_score
from ..values import Principal
from ._common import problems

router = APIRouter(tags=["steering"])
Evaluating = Annotated[Principal, Caller("evaluate")]


@router.post("/monitors/evaluate", response_model=EvaluateResponse, responses=problems())
async def evaluate(body: EvaluateRequest, request: Request, server: Used, caller: Evaluating) -> Response:
    """Evaluate the newest completed step. The request has the account of the run, or all steps."""
    ends = ends_of(request)
    notes = _notes(server, caller, body)
    size = int(request.headers.get("content-length", "0"))  # that of the unpacked body
    answer = await server.evaluations.answer(body, org=caller.org_id, notes=notes, ends=ends, size=size)
    if _wants_lesson(body, answer):
        answer = await _with_lesson(server, caller, body, answer, ends)
    return Response(answer.model_dump_json(), media_type="application/json")


@router.post("/traces/retrieve", responses=problems())
async def retrieve(body: RetrieveRequest, request: Request, server: Used, caller: Evaluating) -> RetrieveResponse:
    """Return the patterns that match the newest steps."""
    return await server.patterns.search(caller.org_id, body, ends_of(request))


@router.post("/score", responses=problems())
async def score(body: ScoreRequest, caller: Evaluating) -> ScoreResponse:
    """Return the difficulty of a text."""
    return answer_score(body)


def _notes(server: Server, caller: Principal, body: EvaluateRequest) -> tuple[Note, ...]:
    live, project = server.live, caller.project_id
    if not body.notes:
        live.told(caller.org_id, body.run_id, body.notes_told, project_id=project)
        return ()
    server.takers.note(caller.org_id, body.run_id, project)
    return live.waiting(caller.org_id, body.run_id, body.notes_told, project_id=project)


def _wants_lesson(body: EvaluateRequest, answer: EvaluateResponse) -> bool:
    """Return True for a client that searches no lesson for a monitor's text itself: one that sends no injections."""
    return answer.inject and "injected" not in body.model_fields_set and answer.intervention_source == "monitor"


async def _with_lesson(
    server: Server, caller: Principal, body: EvaluateRequest, answer: EvaluateResponse, ends: float | None
) -> EvaluateResponse:
    """Return the answer with a lesson's intervention between the monitor's fact and its hint.

    Without a lesson, and if the store cannot answer, it is the monitor's text.
    """
    text = answer.intervention_text or ""
    try:
        found = await server.patterns.search(caller.org_id, _asked(body, answer), ends)
    except (ApiError, StoreError, Unavailable):
        return answer
    traces = [trace.trace() for trace in found.traces]
    fitting = next((trace for trace in traces if fits(trace.pattern, answer.kind)), None)
    if fitting is None or gives_way(fitting.pattern, answer.hint):
        return answer
    joined = steered_text(answer.fact or gates.first_sentence(text), answer.hint, fitting)
    if joined is None:
        return answer
    changes = {
        "intervention_text": joined,
        "intervention_source": "e2",
        "pattern_id": fitting.pattern.id,
    }
    return answer.model_copy(update=changes)


def _asked(body: EvaluateRequest, answer: EvaluateResponse) -> RetrieveRequest:
    steps = [given.step() for given in body.steps[-gates.TIER_RULES["e2"].steps :]]
    return RetrieveRequest(
        tier="e2",
        texts=[step.scored_text for step in steps],
        top_k=1,
        model=body.model,
        failure_type=TYPES.get(answer.kind or "", answer.failure_type),
        kind=answer.kind,
    )
