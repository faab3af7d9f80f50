"""Checks the requests of browsers: the login cookie, a form's token and origin, and the scopes of the key."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from reasonblocks.exceptions import ConfigError, StoreError, Unavailable

from ..errors import ApiError, StorageUnavailable
from ..server import Server
from ..values import KeyRow, Principal, Scope
from ._paths import with_query

LOGIN = "rb_login"
"""The cookie of a login."""
FORM = "rb_form"
"""The cookie that binds the form of the login page to its browser."""
MAX_FORM = 262_144
"""Bytes of a form."""
MAX_DIGITS = 15
"""Digits of a number in an address, so that every database can store it."""
TOKEN = "token"
"""The field with a form's token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A person who is logged in, by a key."""

    key: KeyRow
    cookie: str

    def may(self, scope: Scope) -> bool:
        return scope in self.key.scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of a browser. `form` has the fields of a POST."""

    server: Server
    request: Request
    login: Login | None
    now: float
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> KeyRow:
        assert self.login is not None, "the page is for people who are logged in"
        return self.login.key

    @property
    def org(self) -> str:
        return self.key.org_id

    @property
    def form_token(self) -> str:
        cookie = self.login.cookie if self.login else self.request.cookies.get(FORM, "")
        return token_of(cookie) if cookie else ""

    def may(self, scope: Scope) -> bool:
        return self.login is not None and self.login.may(scope)

    def needs(self, scope: Scope) -> None:
        """Refuse a key without this scope. Raises `Refusal`."""
        if not self.may(scope):
            raise Refusal(403, "Not allowed", f"The key that you are logged in with has no scope {scope!r}.")

    def needs_whole_org(self) -> None:
        """Refuse a key that is bound to a project. Raises `Refusal`."""
        if self.key.project_id is not None:
            raise Refusal(403, "Not allowed", "Your key belongs to one project, and this page shows the whole org.")

    @property
    def caller(self) -> Principal:
        """The person who is logged in, as the caller of a request."""
        key = self.key
        return Principal(
            org_id=key.org_id, key_id=key.key_id, scopes=frozenset(key.scopes), project_id=key.project_id,
            expires=key.expires,
        )  # fmt: skip

    def audit(self, action: str, target: str) -> None:
        """Record a change that this person made."""
        self.server.audit(self.caller, action, target)

    def asked(self, name: str) -> str:
        """Return a value of the address's query, or ""."""
        return self.request.query_params.get(name, "").replace("\0", "\ufffd")


class Refusal(Exception):
    """A refused request. The answer is a page with the reason."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        self.status, self.title, self.detail = status, title, detail
        super().__init__(f"{status}: {detail}")


def whole(text: str) -> int | None:
    """Return the whole number of a text in an address or a form; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


Handler: TypeAlias = Callable[[Visit], Response]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
Failed: TypeAlias = Callable[[Visit, Refusal], Response]


def token_of(cookie: str) -> str:
    """Return the token that a form must have: only someone who can read the cookie can compute it."""
    return hashlib.sha256(f"form:{cookie}".encode()).hexdigest()


def endpoint(handler: Handler, failed: Failed, *, scope: Scope | None = "read") -> Endpoint:
    """Return the endpoint of a page. `scope` is the scope that the key needs, None for pages without a login."""

    async def answer(request: Request) -> Response:
        visit = Visit(server=request.app.state.server, request=request, login=None, now=time.time())
        try:
            form = await _form(request) if request.method == "POST" else {}
        except Refusal as refusal:
            return failed(visit, refusal)
        return await run_in_threadpool(_answer, handler, failed, scope, request, form)

    return answer


def _answer(
    handler: Handler, failed: Failed, scope: Scope | None, request: Request, form: Mapping[str, str]
) -> Response:
    visit = Visit(server=request.app.state.server, request=request, login=None, now=time.time(), form=form)
    try:
        visit = admit(visit)
        if scope is not None and visit.login is None:
            return to_login(request)
        if request.method == "POST":
            check_form(visit)
        if scope is not None:
            visit.needs(scope)
        return handler(visit)
    except Refusal as refusal:
        return failed(visit, refusal)
    except ApiError as error:
        return failed(visit, Refusal(error.status, "The request failed", error.detail))
    except ConfigError as error:
        return failed(visit, Refusal(422, "The request failed", f"{error}."))
    except StorageUnavailable:
        return failed(visit, Refusal(503, "The database is not available", "Try again in a moment."))
    except (StoreError, Unavailable) as error:
        return failed(
            visit, Refusal(503, "The patterns or findings are not available", f"{error}. Try again in a moment.")
        )


def admit(visit: Visit) -> Visit:
    """Return the visit with its login, if the cookie is valid and its key still has the scope `read`."""
    cookie = visit.request.cookies.get(LOGIN, "")
    key = visit.server.storage.keys.login_key(cookie, visit.now) if cookie else None
    login = Login(key=key, cookie=cookie) if key is not None and "read" in key.scopes else None
    return Visit(server=visit.server, request=visit.request, login=login, now=visit.now, form=visit.form)


def to_login(request: Request) -> Response:
    """Redirect to the login page, which leads back to this page if that was read with GET."""
    path = request.url.path if request.method == "GET" else ""
    target = f"{path}?{request.url.query}" if path and request.url.query else path
    return RedirectResponse(with_query("/ui/login", {"to": target if target != "/ui/" else ""}), status_code=303)


async def _form(request: Request) -> dict[str, str]:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM:
            raise Refusal(413, "Too much text", f"A form may have at most {MAX_FORM:,} bytes.")
    try:
        fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise Refusal(400, "Too many fields", "A form may have at most 100 fields.") from error
    return {name: value.replace("\r\n", "\n").replace("\0", "\ufffd") for name, value in fields}


def check_form(visit: Visit) -> None:
    """Refuse a form from another site, or without its token. Raises `Refusal`."""
    if not _same_origin(visit.request):
        raise Refusal(403, "Form refused", "The form was sent by another site.")
    expected = visit.form_token
    if not expected or not hmac.compare_digest(expected.encode(), visit.form.get(TOKEN, "").encode()):
        raise Refusal(403, "Form refused", "The form is not of your current login. Reload the page and send it again.")


def _same_origin(request: Request) -> bool:
    """Return True if the browser reports that the form's page is ours.

    A page without a referrer sends its forms with the origin "null". Then `Sec-Fetch-Site` decides, which browsers send
    to https and loopback addresses only. Elsewhere the form's token and the cookie of the same site have to suffice.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is None or origin == "null":
        return site == "same-origin" or (site is None and origin == "null")
    try:
        place = urlsplit(origin).netloc
    except ValueError:  # as "http://[", which no browser sends
        return False
    return place == request.headers.get("host") and site in (None, "same-origin")
