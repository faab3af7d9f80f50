"""Shows and changes the keys, the audit and the settings of an org."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from .. import keys
from ..errors import ApiError
from ..values import MAX_RETENTION_DAYS, SCOPES, KeyRow, Scope
from ._pages import back, render
from ._visit import Refusal, Visit, whole

KEYS, AUDIT, ORG = "/ui/keys", "/ui/audit", "/ui/org"
PAGE = 100
MAX_NAME = 200
DAY = 86_400.0
LIVES = {"": "never", "1": "1 day", "30": "30 days", "90": "90 days", "365": "1 year"}
"""Days until a new key expires."""
MEANINGS = {
    "ingest": "send runs",
    "evaluate": "evaluate steps, search for patterns, and store, recall and remove findings",
    "read": "read all data and log in to the dashboard",
    "steer": "send notes to live agents",
    "admin": "change patterns, keys and settings, and delete runs",
}


def show_keys(visit: Visit) -> Response:
    """Show the keys of the org, or of the key's project."""
    return _keys(visit)


def make_key(visit: Visit) -> Response:
    """Create a key, and show it once. It expires no later than the key that creates it."""
    name, project = visit.form.get("name", "").strip(), visit.form.get("project", "").strip()
    scopes = [scope for scope in SCOPES if visit.form.get(f"scope-{scope}")]
    if problem := _fault(name, project, scopes):
        return _keys(visit, problem=problem, code=422)
    days, own = visit.form.get("days", ""), visit.key.expires
    ends = [visit.now + int(days) * DAY] if days in LIVES and days else []
    try:
        row, secret = keys.create_key(
            visit.server,
            visit.caller,
            name=name,
            scopes=scopes,
            project_id=project or None,
            expires=min([*ends, *([] if own is None else [own])], default=None),
            now=visit.now,
        )
    except ApiError as error:
        return _keys(visit, problem=f"{error.detail[0].upper()}{error.detail[1:]}.", code=422)
    return _keys(visit, made=row, secret=secret, code=201)


def revoke_key(visit: Visit) -> Response:
    """Revoke a key."""
    keys.revoke_key(visit.server, visit.caller, visit.form.get("key_id", ""), visit.now)
    return back(KEYS, "key-revoked")


def audit(visit: Visit) -> Response:
    """Show all changes, the newest first."""
    visit.needs_whole_org()
    before = visit.asked("before")
    at = whole(before)
    rows = visit.server.storage.audit.list(visit.org, limit=PAGE + 1, before=at)
    names = {row.key_id: row.name for row in visit.server.storage.keys.list(visit.org)}
    older = f"{AUDIT}?before={rows[PAGE - 1].id}" if len(rows) > PAGE else ""
    return render(visit, "audit.html", "Audit", rows=rows[:PAGE], names=names, older=older, newest=AUDIT if at else "")


def org(visit: Visit) -> Response:
    """Show the settings of the org."""
    visit.needs_whole_org()
    return render(
        visit, "org.html", "Settings", org=visit.server.storage.orgs.get(visit.org), most=MAX_RETENTION_DAYS, problem=""
    )


def save_org(visit: Visit) -> Response:
    """Save the retention."""
    visit.needs_whole_org()
    days = whole(visit.form.get("days", ""))
    if days is None or not 1 <= days <= MAX_RETENTION_DAYS:
        raise Refusal(422, "Not saved", f"The retention must be from 1 to {MAX_RETENTION_DAYS:,} days.")
    visit.server.storage.orgs.put(visit.org, days)
    visit.audit("org.put", f"retention_days {days}")
    return back(ORG, "org-saved")


def _keys(
    visit: Visit, *, made: KeyRow | None = None, secret: str = "", problem: str = "", code: int = 200
) -> Response:
    rows = sorted(
        keys.visible_keys(visit.server, visit.caller), key=lambda row: (row.revoked is not None, -row.created)
    )
    return render(
        visit,
        "keys.html",
        "Keys",
        code,
        rows=rows,
        made=made,
        secret=secret,
        problem=problem,
        scopes=[(scope, MEANINGS[scope]) for scope in SCOPES if visit.may(scope)],
        lives=LIVES,
        own=visit.key.key_id,
        given=visit.form,
        url=str(visit.request.base_url).rstrip("/"),
    )


def _fault(name: str, project: str, scopes: Sequence[Scope]) -> str:
    """Return the fault of a form, or ""."""
    if not name or len(name) > MAX_NAME or "\0" in name:
        return f"Give the key a name of at most {MAX_NAME} characters, so that others know who uses it."
    if len(project) > MAX_NAME or "\0" in project:
        return f"The name of a project has at most {MAX_NAME} characters."
    return "" if scopes else "Choose at least one scope."
