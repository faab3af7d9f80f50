"""Changes one run by a form: adds and withdraws notes, and deletes the run."""

from __future__ import annotations

from starlette.responses import Response

from .._errors import ApiError
from .._notes import EXPIRES_SECONDS, add_note
from ._pages import back
from ._paths import HOME, run_href
from ._run import run_of, show
from ._visit import Refusal, Visit


def tell(visit: Visit, run_id: str) -> Response:
    """Queue a note for the agent of a run; a note that is not taken is shown again, with the reason."""
    run_of(visit, run_id)
    draft, expires = visit.form.get("text", ""), visit.form.get("expires", "")
    seconds = float(expires) if expires.isdecimal() else EXPIRES_SECONDS
    try:
        note = add_note(visit.server, visit.org, visit.key.key_id, run_id, draft, seconds)
    except ApiError as error:
        return show(visit, run_id, problem=f"The note was not sent: {error.detail}.", draft=draft, code=error.status)
    visit.audit("note.add", f"{run_id} {note.note_id}")
    return back(run_href(run_id), "note-queued")


def withdraw(visit: Visit, run_id: str, note_id: str) -> Response:
    """Withdraw a note that waits."""
    run_of(visit, run_id)
    row = visit.server.storage.notes.withdraw(visit.org, run_id, note_id, visit.now)
    if row is None:
        raise Refusal(404, "No such note", "The run has no such note.")
    if row.state != "withdrawn":
        return back(run_href(run_id), "note-late")
    visit.server.live.note_withdrawn(row)
    visit.audit("note.withdraw", f"{run_id} {note_id}")
    return back(run_href(run_id), "note-withdrawn")


def delete(visit: Visit, run_id: str) -> Response:
    """Delete a run."""
    run_of(visit, run_id)
    visit.server.storage.runs.delete(visit.org, run_id)
    visit.audit("run.delete", run_id)
    return back(HOME, "run-deleted")
