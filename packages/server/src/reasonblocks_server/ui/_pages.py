"""Renders the pages of the dashboard, with their headers, navigation, stylesheets and scripts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from reasonblocks.util.folding import visible
from reasonblocks_workbench.report import SCRIPT, STYLESHEET, TEMPLATES, Assets, NavLink
from reasonblocks_workbench.report.html import environment

from . import _words as words
from ._paths import codebase_href, experiment_href, pattern_href, run_href, thread_href, with_query
from ._thread_words import readable
from ._visit import LOGIN, TOKEN, Refusal, Visit

if TYPE_CHECKING:
    from jinja2 import Environment

OWN = Path(__file__).parent / "templates"
FILES: Mapping[str, Path] = {
    STYLESHEET: TEMPLATES / STYLESHEET,
    SCRIPT: TEMPLATES / SCRIPT,
    "dashboard.css": OWN / "dashboard.css",
    "live.js": OWN / "live.js",
}
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NAV = (
    ("Runs", "/ui/"), ("Health", "/ui/health"), ("Patterns", "/ui/patterns"), ("Memory", "/ui/memory"),
    ("Experiments", "/ui/experiments"), ("Agents", "/ui/agents"),
)  # fmt: skip
THREADS_NAV = (("Threads", "/ui/threads"),)
ADMIN_NAV = (("Keys", "/ui/keys"), ("Audit", "/ui/audit"), ("Settings", "/ui/org"))


def render(visit: Visit, template: str, current: str = "", status: int = 200, /, **values: Any) -> Response:
    """Return a page. `current` is the name of its link in the navigation."""
    html = (
        _environment()
        .get_template(template)
        .render(
            values,
            assets=Assets(stylesheet=_href(STYLESHEET), script=_href(SCRIPT)),
            own_style=_href("dashboard.css"),
            live_script=_href("live.js"),
            nav=_nav(visit, current),
            account=visit.login.key if visit.login else None,
            can_steer=visit.may("steer"),
            can_admin=visit.may("admin"),
            token_name=TOKEN,
            form_token=visit.form_token,
            notice=words.NOTICES.get(visit.asked("said"), "") if visit.login else "",
            now=visit.now,
        )
    )
    return HTMLResponse(html, status_code=status, headers=HEADERS)


def failure_page(visit: Visit, refusal: Refusal) -> Response:
    """Return the page with the reason for a refused request."""
    return render(visit, "refused.html", "", refusal.status, title=refusal.title, detail=refusal.detail)


def back(path: str, said: str = "", **values: str) -> Response:
    """Redirect to a page after a form. `said` is the name of the notice that the page shows."""
    return RedirectResponse(with_query(path, {**values, "said": said}), status_code=303, headers=HEADERS)


def text(content: str, kind: str = "text/plain; charset=utf-8") -> Response:
    """Return a text that the browser shows without interpreting it."""
    body = content.encode("utf-8", "backslashreplace")
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
    return Response(body, media_type=kind, headers=headers)


def static(name: str) -> Response:
    """Return a stylesheet or script. Its address changes with its content, so browsers may cache it."""
    path = FILES.get(name)
    if path is None:
        return Response("Not found", status_code=404, media_type="text/plain", headers=HEADERS)
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, media_type=TYPES[path.suffix])


def with_login(response: Response, token: str, seconds: int, *, secure: bool) -> Response:
    """Return the response with the cookie of a login."""
    response.set_cookie(LOGIN, token, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
    return response


def _nav(visit: Visit, current: str) -> list[NavLink]:
    if visit.login is None:
        return []
    threads = THREADS_NAV if visit.server.threads is not None and visit.key.project_id is None else ()
    rows = (*NAV, *threads, *(ADMIN_NAV if visit.may("admin") else ()))
    return [NavLink(name=name, href=href, current=name == current) for name, href in rows]


@cache
def _content(name: str) -> bytes:
    return FILES[name].read_bytes()


@cache
def _href(name: str) -> str:
    return f"/ui/static/{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    found = environment(OWN)
    found.globals |= {
        "run_href": run_href, "thread_href": thread_href, "foreign": visible, "readable": readable,
        "pattern_href": pattern_href, "experiment_href": experiment_href, "codebase_href": codebase_href,
        "with_query": with_query, "ago": words.ago, "moment": words.moment, "share": words.share,
        "decimal": words.decimal, "sentence_case": words.sentence_case,
        "note_word": words.note,
    }  # fmt: skip
    return found
