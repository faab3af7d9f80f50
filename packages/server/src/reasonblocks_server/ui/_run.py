"""Shows one run with its notes, child runs and steps; sends notes to its agent, and deletes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from reasonblocks.events import RunFinish, RunStart, StepEvent, event_of
from reasonblocks.util.json import compact
from reasonblocks_workbench.report import Row, RunPage, page_of_log
from reasonblocks_workbench.report.html import run_context
from reasonblocks_workbench.report.view import texts_of
from reasonblocks_workbench.traces import RunLog

from ..bodies import NoteBody, RunBody
from ..errors import ApiError
from ..notes import EXPIRES_SECONDS, add_note, why_deaf
from ..storage import Storage
from ..values import Body, RunRow
from ._lines import lines_of
from ._pages import back, render, text
from ._paths import HOME, run_href, with_query
from ._threads import of_run
from ._visit import Refusal, Visit, whole
from ._words import status

ROWS = 200
"""Steps on a page of the table."""
MOST = 2_000
"""The most steps that the page of a run reads: the newest ones."""
CHILDREN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page of the table's rows, and the addresses of the pages before and after it."""

    rows: Sequence[Row]
    first: int = 0
    last: int = 0
    earlier: str = ""
    later: str = ""
    is_newest: bool = True


def run_of(visit: Visit, run_id: str) -> RunRow:
    """Return a run of the visitor's org. Raises `Refusal` for one that does not exist."""
    row = visit.server.storage.runs.get(visit.org, run_id)
    if row is None or not _may_see(visit, row):
        raise Refusal(404, "No such run", "This server has never received this run, or has deleted it.")
    return row


def _may_see(visit: Visit, row: RunRow) -> bool:
    return visit.key.project_id in (None, row.project_id)


def show(visit: Visit, run_id: str, *, problem: str = "", draft: str = "", code: int = 200) -> Response:
    """Show the page of a run. With `after`, its table has only newer rows, for a page that is open.

    `problem` is the reason why the note `draft` was refused.
    """
    row = run_of(visit, run_id)
    storage = visit.server.storage
    page = page_of(storage, row, visit.now)
    part = _part(page, row, visit.asked("call"), visit.asked("after"))
    children = storage.runs.children(visit.org, run_id, project_id=visit.key.project_id)
    context = run_context(page, rows=part.rows, page_of=_page_of(page, part, row), text_href=_text_href(row))
    deaf = why_deaf(row)
    newest = page.rows[-1] if page.rows else None
    notes = storage.notes.list(visit.org, run_id)
    return render(
        visit,
        "one_run.html",
        "Runs",
        code,
        **context,
        problem=problem,
        draft=draft,
        run=row,
        part_of=part,
        is_live=row.finished is None,
        is_update=bool(visit.asked("after")),
        status=status(row, visit.now),
        newest=newest,
        left_out=max(0, row.steps - len(page.rows)),
        notes=notes,
        key_names={key.key_id: key.name for key in storage.keys.list(visit.org)} if notes else {},
        deaf=deaf,
        threads=of_run(visit, run_id),
        children=lines_of(storage, visit.org, children[:CHILDREN], visit.now),
        more_children=max(0, len(children) - CHILDREN),
        stream=with_query("/ui/stream", {"run": run_id, "after": str(newest.number if newest else 0)}),
    )


def page_of(storage: Storage, row: RunRow, now: float) -> RunPage:
    """Return the page of a stored run."""
    steps = [event_of(body) for body in storage.runs.newest_steps(row.org_id, row.run_id, limit=MOST)]
    start = event_of(row.body) if row.body else None
    body = storage.runs.finish_body(row.org_id, row.run_id)
    finish = event_of(body) if body is not None else None
    log = RunLog(
        run_id=row.run_id,
        start=start if isinstance(start, RunStart) else None,
        steps=tuple(step for step in steps if isinstance(step, StepEvent)),
        finish=finish if isinstance(finish, RunFinish) else None,
        file="",
        line=1,
    )
    return replace(page_of_log(log), status=status(row, now))


def _part(page: RunPage, row: RunRow, call: str, after: str) -> Part:
    """Return the page of rows with `call`, or else the newest rows of a live run and the first of a finished one."""
    rows = page.rows
    if not rows:
        return Part(rows=())
    if (known := whole(after)) is not None:
        newer = [one for one in rows if one.number > known]
        return Part(rows=newer[-ROWS:], first=newer[0].number if newer else 0)
    if (wanted := whole(call)) is not None:
        at = next((at for at, one in enumerate(rows) if one.number >= wanted), len(rows) - 1)
        first = at // ROWS * ROWS
    else:
        first = max(0, len(rows) - ROWS) if row.finished is None else 0
    shown = rows[first : first + ROWS]
    here = run_href(row.run_id)
    return Part(
        rows=shown,
        first=shown[0].number,
        last=shown[-1].number,
        earlier=f"{here}?call={rows[first - 1].number}#steps" if first else "",
        later=f"{here}?call={rows[first + ROWS].number}#steps" if first + ROWS < len(rows) else "",
        is_newest=first + ROWS >= len(rows),
    )


def _page_of(page: RunPage, part: Part, row: RunRow) -> Callable[[int], str]:
    shown = {one.number for one in part.rows}
    here = run_href(row.run_id)
    return lambda number: "" if number in shown else f"{here}?call={number}"


def _text_href(row: RunRow) -> Callable[[Row | None, str], str]:
    return lambda step, name: run_href(row.run_id, "text", "" if step is None else str(step.number), name)


def whole_text(visit: Visit, run_id: str, number: str, name: str) -> Response:
    """Show one text of a run in full, as plain text."""
    row = run_of(visit, run_id)
    if name == "task" and not number:
        given = row.body.get("task")
        return text(given if isinstance(given, str) else row.task)
    if (at := whole(number)) is not None:
        before = max(-1, at - 2)
        bodies = visit.server.storage.runs.steps(row.org_id, row.run_id, after=before, limit=2)
        steps = [event for body in bodies if isinstance(event := event_of(body), StepEvent)]
        page = page_of_log(RunLog(run_id=run_id, start=None, steps=tuple(steps), finish=None, file="", line=1))
        found = page.by_number.get(at)
        for known, content in texts_of(found) if found is not None else ():
            if known == name:
                return text(content)
    raise Refusal(404, "No such text", "The run has no such text.")


def as_json(visit: Visit, run_id: str) -> Response:
    """Return the run with its steps and notes, as the API does."""
    row = run_of(visit, run_id)
    storage = visit.server.storage
    body: Body = {
        "run": RunBody.model_validate(row).model_dump(),
        "steps": storage.runs.newest_steps(row.org_id, row.run_id, limit=MOST),
        "notes": [NoteBody.model_validate(note).model_dump() for note in storage.notes.list(visit.org, run_id)],
    }
    return text(compact(body), "application/json")


def tell(visit: Visit, run_id: str) -> Response:
    """Queue a note for the agent of a run. Show a refused note again, with the reason."""
    run_of(visit, run_id)
    draft, expires = visit.form.get("text", ""), visit.form.get("expires", "")
    seconds = whole(expires) or EXPIRES_SECONDS
    try:
        note = add_note(visit.server, visit.org, visit.key.key_id, run_id, draft, seconds)
    except ApiError as error:
        return show(visit, run_id, problem=f"The note was not sent: {error.detail}.", draft=draft, code=error.status)
    visit.audit("note.add", f"{run_id} {note.note_id}")
    return back(run_href(run_id), "note-queued")


def withdraw(visit: Visit, run_id: str, note_id: str) -> Response:
    """Withdraw a waiting note."""
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
