"""Adds, lists and withdraws operators' notes to live runs."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from ..auth import Caller
from ..bodies import NoteBody
from ..errors import ApiError
from ..notes import EXPIRES_SECONDS, MAX_CHARS, MAX_EXPIRES_SECONDS, add_note
from ..server import Used
from ..values import NoteState, Principal
from ._common import Given, RunId, problems, run_of

router = APIRouter(tags=["notes"])
Operator = Annotated[Principal, Caller("steer")]
Reader = Annotated[Principal, Caller("read")]


class NoteGiven(Given):
    """The text for the agent, and the seconds after which the note expires."""

    text: str = Field(min_length=1, max_length=MAX_CHARS)
    expires_s: int = Field(default=EXPIRES_SECONDS, ge=1, le=MAX_EXPIRES_SECONDS)


class NoteAdded(BaseModel):
    """A new note."""

    note_id: str
    state: NoteState


class NoteList(BaseModel):
    """The notes of a run, the oldest first."""

    notes: list[NoteBody]


@router.post("/runs/{run_id:path}/notes", status_code=201, responses=problems(400, 404, 409))
def post_note(run_id: RunId, given: NoteGiven, caller: Operator, server: Used) -> NoteAdded:
    """Queue a note. The run's next call contains it."""
    run_of(server, caller, run_id)
    row = add_note(server, caller.org_id, caller.key_id, run_id, given.text, given.expires_s)
    server.audit(caller, "note.add", f"{run_id} {row.note_id}")
    return NoteAdded(note_id=row.note_id, state=row.state)


@router.get("/runs/{run_id:path}/notes", responses=problems(404))
def list_notes(run_id: RunId, caller: Reader, server: Used) -> NoteList:
    """List the notes of a run."""
    run_of(server, caller, run_id)
    rows = server.storage.notes.list(caller.org_id, run_id)
    return NoteList(notes=[NoteBody.model_validate(row) for row in rows])


@router.delete("/runs/{run_id:path}/notes/{note_id}", status_code=204, responses=problems(404, 409))
def withdraw_note(
    run_id: RunId, note_id: Annotated[str, Path(max_length=64)], caller: Operator, server: Used
) -> Response:
    """Withdraw a note that no call has contained yet."""
    run_of(server, caller, run_id)
    row = server.storage.notes.withdraw(caller.org_id, run_id, note_id, time.time())
    if row is None:
        raise ApiError(404, f"the run has no note {note_id!r}")
    if row.state != "withdrawn":
        raise ApiError(409, f"the note is {row.state}")
    server.live.note_withdrawn(row)
    server.audit(caller, "note.withdraw", f"{run_id} {note_id}")
    return Response(status_code=204)
