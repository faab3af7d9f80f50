"""Logs people in and out: by a key, or by a link that works once."""

from __future__ import annotations

import secrets

from starlette.responses import RedirectResponse, Response

from ..errors import ApiError
from ._pages import HEADERS, back, render, with_login
from ._paths import local
from ._visit import FORM, LOGIN, Refusal, Visit, token_of

SECONDS = 12 * 3_600
"""Seconds for which a login is valid."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "testserver"})


def login_page(visit: Visit) -> Response:
    """Show the form for a key."""
    return _login_page(visit, local(visit.asked("to")))


def log_in(visit: Visit) -> Response:
    """Log in by a key with the scope `read`."""
    to = local(visit.form.get("to", ""))
    try:
        principal = visit.server.auth.check(visit.form.get("key", "").strip())
    except ApiError as error:
        why = "This server does not know this key." if error.status == 401 else f"{error.detail.capitalize()}."
        return _login_page(visit, to, why, error.status)
    if "read" not in principal.scopes:
        return _login_page(visit, to, "The key has no scope read, which the dashboard needs.", 403)
    if visit.server.storage.keys.find(principal.key_id) is None:
        return _login_page(
            visit,
            to,
            "A key of REASONBLOCKS_KEYS cannot open the dashboard. Create another key as described below.",
            403,
        )
    return _logged_in(visit, principal.key_id, to)


def link_page(visit: Visit) -> Response:
    """Show the button of a login link. Opening the page does not use it up, because link previews open it, too."""
    return _with_form_cookie(visit, "link.html")


def follow_link(visit: Visit) -> Response:
    """Log in by a link that works once."""
    key_id = visit.server.storage.keys.take_link(visit.request.path_params["link"], visit.now)
    if key_id is None:
        raise Refusal(
            403,
            "The link is used up or expired",
            "A login link works once, within 15 minutes. Log in with a key instead.",
        )
    return _logged_in(visit, key_id, local(""))


def log_out(visit: Visit) -> Response:
    """End the login, here and on the server."""
    if visit.login is not None:
        visit.server.storage.keys.logout(visit.login.cookie)
    response = back("/ui/login", "logged-out")
    response.delete_cookie(LOGIN, path="/", httponly=True, samesite="strict")
    return response


def _logged_in(visit: Visit, key_id: str, to: str) -> Response:
    token = visit.server.storage.keys.login(key_id, expires=visit.now + SECONDS)
    response = RedirectResponse(to, status_code=303, headers=HEADERS)
    response.delete_cookie(FORM, path="/ui/", httponly=True, samesite="strict")
    return with_login(response, token, SECONDS, secure=not is_loopback(visit))


def is_loopback(visit: Visit) -> bool:
    """Return True if the address is a loopback address, for which plain http is safe."""
    return (visit.request.url.hostname or "") in LOOPBACK


def _login_page(visit: Visit, to: str, why: str = "", status: int = 200) -> Response:
    said = "You are logged out." if visit.asked("said") == "logged-out" else ""
    return _with_form_cookie(visit, "login.html", status, to=to, why=why, said=said)


def _with_form_cookie(visit: Visit, template: str, status: int = 200, **values: str) -> Response:
    cookie = visit.request.cookies.get(FORM) or secrets.token_urlsafe(32)
    response = render(visit, template, "", status, page_token=token_of(cookie), **values)
    response.set_cookie(
        FORM, cookie, max_age=SECONDS, path="/ui/", secure=not is_loopback(visit), httponly=True, samesite="strict"
    )
    return response
