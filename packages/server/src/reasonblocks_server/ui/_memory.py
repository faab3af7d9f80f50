"""Shows the findings of codebases, searches them, and forgets some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from reasonblocks.findings import MOST_RECALLED, PATH_CHARS, QUERY_CHARS
from reasonblocks.types import CodebaseSummary
from reasonblocks.util.json import canonical
from reasonblocks.wire import InvalidateRequest, RecallRequest, WireFinding, WireRecalled

from ..findings import CHANGING
from ..serving import answer_list, answer_recall
from ._pages import back, render
from ._paths import codebase_href, with_query
from ._visit import Refusal, Visit, whole

PAGE = 100
LIST = "/ui/memory"
FOLDED = 600
"""Characters of a content from which on the page shows only its start until it is opened."""
FOLDED_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A finding on a page: `at` is the time of its storage, `metadata` its JSON, and `score` that of a search."""

    finding: WireFinding
    at: float | None
    metadata: str
    is_long: bool
    score: float | None


def codebases(visit: Visit) -> Response:
    """Show the codebases of the org that have findings."""
    found = visit.server.findings.store.codebases(visit.org)
    at = whole(visit.asked("page")) or 0
    return render(
        visit,
        "codebases.html",
        "Memory",
        rows=[(one, _time(one.newest)) for one in found[at * PAGE : (at + 1) * PAGE]],
        total=len(found),
        earlier=with_query(LIST, {"page": str(at - 1)}) if at else "",
        later=with_query(LIST, {"page": str(at + 1)}) if len(found) > (at + 1) * PAGE else "",
    )


def codebase(visit: Visit, codebase_id: str) -> Response:
    """Show a page of a codebase's findings, or those that fit a search best."""
    summary, store, following = _summary(visit, codebase_id), visit.server.findings.store, ""
    query, after = visit.asked("q").strip()[:QUERY_CHARS], visit.asked("after")
    found: Sequence[WireFinding]
    if query:
        request = RecallRequest(query=query, top_k=MOST_RECALLED)
        found = answer_recall(store, visit.org, codebase_id, request).results
    else:
        page = answer_list(store, visit.org, codebase_id, after=after, limit=PAGE)
        found = sorted(page.findings, key=lambda one: (one.file_path, one.created_at, one.finding_id))
        following = page.next or ""
    place = codebase_href(codebase_id)
    return render(
        visit,
        "codebase.html",
        "Memory",
        summary=summary,
        newest=_time(summary.newest),
        rows=[_shown(one) for one in found],
        query=query,
        after=after,
        most=MOST_RECALLED,
        most_chars=QUERY_CHARS,
        path_chars=PATH_CHARS,
        first=place if after else "",
        later=with_query(place, {"after": following}) if following else "",
        may_change=visit.may(CHANGING) and visit.key.project_id is None,
    )


def forget(visit: Visit, codebase_id: str) -> Response:
    """Forget one finding, or those about a file or the files in a folder."""
    visit.needs_whole_org()
    one, path = visit.form.get("finding_id", ""), visit.form.get("file_path", "").strip()
    if not one and not path:
        raise Refusal(422, "Nothing is forgotten", "Give the path of a file or a folder.")
    request = InvalidateRequest(finding_ids=[one] if one else [], file_paths=[path] if path else [])
    number = visit.server.findings.invalidate(visit.org, codebase_id, request, visit.audit).invalidated
    said = "findings-none" if not number else "finding-forgotten" if one else "findings-forgotten"
    if _found(visit, codebase_id) is None:
        return back(LIST, said)
    return back(codebase_href(codebase_id), said, q=visit.form.get("q", ""), after=visit.form.get("after", ""))


def clear(visit: Visit, codebase_id: str) -> Response:
    """Forget all findings of a codebase."""
    visit.needs_whole_org()
    number = visit.server.findings.clear(visit.org, codebase_id, visit.audit).cleared
    return back(LIST, "findings-forgotten" if number else "findings-none")


def _found(visit: Visit, codebase_id: str) -> CodebaseSummary | None:
    found = visit.server.findings.store.codebases(visit.org)
    return next((one for one in found if one.codebase_id == codebase_id), None)


def _summary(visit: Visit, codebase_id: str) -> CodebaseSummary:
    found = _found(visit, codebase_id)
    if found is None:
        raise Refusal(404, "No such codebase", "The org has no findings about a codebase with this id.")
    return found


def _shown(one: WireFinding) -> Shown:
    return Shown(
        finding=one,
        at=_time(one.created_at),
        metadata=canonical(one.metadata) if one.metadata else "",
        is_long=len(one.content) > FOLDED or one.content.count("\n") >= FOLDED_LINES,
        score=one.score if isinstance(one, WireRecalled) else None,
    )


def _time(text: str) -> float | None:
    """Return a time of a finding in seconds since the epoch; None for a text that is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
