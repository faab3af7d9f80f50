"""Adds operators' notes to the runs that can take them."""

from __future__ import annotations

import time

from reasonblocks.render.sanitise import sanitise
from reasonblocks.util.text import whole

from .errors import ApiError
from .server import Server
from .values import NoteRow, RunRow

MAX_CHARS = 2_000
"""The most characters of a note."""
EXPIRES_SECONDS = 900
MAX_EXPIRES_SECONDS = 3_600


def why_deaf(run: RunRow) -> str:
    """Return the reason why a run takes no notes, or ""."""
    if run.finished is not None:
        return "the run has finished"
    if run.mode == "observe":
        return "the run is only observed, so its agent is told nothing"
    if not run.takes_notes:
        return "the run's client does not ask for notes"
    return ""


def add_note(
    server: Server, org_id: str, key_id: str, run_id: str, text: str, expires_s: float = EXPIRES_SECONDS
) -> NoteRow:
    """Add a note to a run. It expires after `expires_s` seconds unless a call has contained it.

    Raises `ApiError`: 404 for an unknown run, 409 for a run that takes no notes, 422 for a text that is too long or
    has nothing to show, and 429 for too many notes.
    """
    run = server.storage.runs.get(org_id, run_id)
    if run is None:
        raise ApiError(404, f"there is no run {run_id!r}")
    if reason := why_deaf(run):
        raise ApiError(409, reason)
    text = whole(text).replace("\x00", "")
    if len(text) > MAX_CHARS:
        raise ApiError(422, f"text: {len(text):,} characters, but at most {MAX_CHARS:,} are allowed")
    if not sanitise(text):
        raise ApiError(422, "text: contains nothing that can be shown to the agent")
    if not 0 < expires_s <= MAX_EXPIRES_SECONDS:
        raise ApiError(422, f"expires_s: must be above 0 and at most {MAX_EXPIRES_SECONDS:,}")
    now = time.time()
    row = server.storage.notes.add(org_id, run_id, text, key_id=key_id, now=now, expires=now + expires_s)
    server.live.note_added(row)
    return row
