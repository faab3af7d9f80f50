"""Decides whether a run can be told an operator's note, and adds it."""

from __future__ import annotations

import time

from reasonblocks._render import sanitise
from reasonblocks._text import whole

from ._errors import ApiError
from ._server import Server
from ._values import NoteRow, RunRow

MAX_CHARS = 2_000
"""Characters of a note (SERVER.md section 6)."""
EXPIRES_SECONDS = 900
MAX_EXPIRES_SECONDS = 3_600


def why_deaf(run: RunRow) -> str:
    """Return the reason why a run cannot be told a note; "" if it can."""
    if run.finished is not None:
        return "the run has finished"
    if run.mode == "observe":
        return "the run is only observed, so that its agent is told nothing"
    if not run.takes_notes:
        return "the run's client does not ask for notes"
    return ""


def add_note(
    server: Server, org_id: str, key_id: str, run_id: str, text: str, expires_s: float = EXPIRES_SECONDS
) -> NoteRow:
    """Add a note to a run, for the key that wrote it; it expires unless the agent is told in time.

    Raises `ApiError`: 404 for an unknown run, 409 for one that cannot be told, 422 for a text that is too long or of
    which nothing can be shown, and 429 for too many notes.
    """
    run = server.storage.runs.get(org_id, run_id)
    if run is None:
        raise ApiError(404, f"there is no run {run_id!r}")
    if reason := why_deaf(run):
        raise ApiError(409, reason)
    text = whole(text).replace("\x00", "")
    if len(text) > MAX_CHARS:
        raise ApiError(422, f"text: {len(text):,} characters, at most {MAX_CHARS:,} are allowed")
    if not sanitise(text):
        raise ApiError(422, "text: contains nothing that the agent could be shown")
    if not 0 < expires_s <= MAX_EXPIRES_SECONDS:
        raise ApiError(422, f"expires_s: must be above 0 and at most {MAX_EXPIRES_SECONDS:,}")
    now = time.time()
    row = server.storage.notes.add(org_id, run_id, text, key_id=key_id, now=now, expires=now + expires_s)
    server.live.note_added(row)
    return row
