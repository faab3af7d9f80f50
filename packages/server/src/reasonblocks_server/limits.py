"""Limits the number of requests, and the size and form of their bodies, before they reach a route."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError
from .settings import MAX_UNPACKED_BYTES

VERSION_PREFIX = "/v1"
UNVERSIONED = ("/v1/", "/ui")
"""The beginnings of paths to which no version is added."""
STREAMS = (f"{VERSION_PREFIX}/monitor/stream", "/ui/stream")
"""The paths of answers that last."""
IN_FLIGHT = 256
"""The most requests that a worker answers at once. Streams are counted separately, with the same limit."""
HELD_BYTES = 256_000_000
"""Bytes of the bodies that a worker holds at once."""
BODY_SECONDS = 30.0
"""The longest time that a body may take to arrive."""
UNPACKED_INLINE = 32_768
"""Bytes of the largest compressed body that is decompressed on the event loop."""
CHECKED_INLINE = 500_000
"""Bytes of the largest body that is checked on the event loop: 3 ms."""
MAX_LEVELS = 500
"""The most levels of a JSON body. Every supported Python parses that many; their own limits differ."""
DEADLINE_HEADER = "reasonblocks-deadline-ms"
MAX_DEADLINE_MS = 600_000
ARRIVED = "reasonblocks.arrived"
"""The key in a scope for the arrival time of the request, by the monotonic clock."""


def ends_of(request: Request) -> float | None:
    """Return the time at which the client gives up, by the monotonic clock; None if it is not known."""
    given = request.headers.get(DEADLINE_HEADER, "")
    if not given.isascii() or not given.isdecimal() or len(given) > len(str(MAX_DEADLINE_MS)):
        return None
    arrived: float = request.scope.get(ARRIVED) or time.monotonic()
    return arrived + min(int(given), MAX_DEADLINE_MS) / 1000


def refusal(error: ApiError) -> JSONResponse:
    """Return the response for an error."""
    return JSONResponse({"detail": error.detail}, error.status, error.headers)


class Paths:
    """Passes on paths as they were sent, percent-encoded, so that an id may contain any character.

    `decode_path_params` decodes the parameters. A path without a version gets the current one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw: bytes | None = scope.get("raw_path")
            root = scope.get("root_path", "")
            path = (quote(scope["path"]) if raw is None else raw.decode("latin-1")).removeprefix(root)
            if path != "/" and not path.startswith(UNVERSIONED):
                path = VERSION_PREFIX + path
            path = root + path
            arrived = time.monotonic()
            scope = {**scope, "path": path, "raw_path": path.encode("latin-1"), ARRIVED: arrived}
        await self._app(scope, receive, send)


async def decode_path_params(request: Request) -> None:
    """Decode the parameters in a path, before a route reads them. Raises `ApiError` 400 if one is not UTF-8."""
    params: dict[str, Any] = request.scope.get("path_params", {})
    for name, value in params.items():
        if isinstance(value, str) and "%" in value:
            try:
                params[name] = unquote_to_bytes(value).decode()
            except UnicodeDecodeError:
                raise ApiError(400, f"{name}: must be percent-encoded UTF-8") from None


class InFlight:
    """Answers 503 if a worker has too many requests in progress, without those whose bodies still arrive."""

    def __init__(self, app: ASGIApp, most: int = IN_FLIGHT) -> None:
        self._app, self._most = app, most
        self._count = {True: 0, False: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        lasts = scope["path"].removeprefix(scope.get("root_path", "")) in STREAMS
        if self._count[lasts] >= self._most:
            busy = ApiError(503, "the server is busy", {"Retry-After": "1"})
            await refusal(busy)(scope, receive, send)
            return
        self._count[lasts] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._count[lasts] -= 1


class SafeHeaders:
    """Adds the headers that prevent browsers from guessing types and from storing responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


SAFE_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class Bodies:
    """Reads and decompresses bodies within the limits, and passes on each one as a whole."""

    def __init__(self, app: ASGIApp, most_sent: int) -> None:
        self._app, self._most_sent = app, most_sent
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        holding = _Holding(self)
        try:
            await self._with_body(scope, receive, send, holding)
        finally:
            holding.release()

    async def _with_body(self, scope: Scope, receive: Receive, send: Send, holding: _Holding) -> None:
        try:
            body = await self._read(scope, receive, holding)
            if body is None:
                return  # the client has gone
            if scope["path"].startswith("/ui"):
                pass  # a form
            elif len(body) <= CHECKED_INLINE:
                _check_json(body)
            else:
                await run_in_threadpool(_check_json, body)
        except ApiError as error:
            await refusal(error)(scope, receive, send)
            return
        await self._app(_with_length(scope, len(body)), _Whole(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive, holding: _Holding) -> bytes | None:
        headers = Headers(scope=scope)
        self._check_length(headers)
        ends = time.monotonic() + BODY_SECONDS
        parts, size, more = [], 0, True
        while more:
            try:
                message = await asyncio.wait_for(receive(), ends - time.monotonic())
            except asyncio.TimeoutError:
                raise ApiError(408, f"the body took longer than {BODY_SECONDS:g} s", CLOSE) from None
            if message["type"] != "http.request":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > self._most_sent:
                raise _too_large(f"the body is larger than {self._most_sent} bytes")
            holding.take(len(part))
            parts.append(part)
            more = message.get("more_body", False)
        return await self._unpacked(b"".join(parts), headers.get("content-encoding", ""), holding)

    def _check_length(self, headers: Headers) -> None:
        given = {*headers.getlist("content-length")}
        if not given:
            return
        length = given.pop()
        if given or not (length.isascii() and length.isdecimal()):
            raise ApiError(400, "the Content-Length is not a number", CLOSE)
        if len(length) > 20 or int(length) > self._most_sent:
            raise _too_large(f"the body is larger than {self._most_sent} bytes")

    async def _unpacked(self, sent: bytes, encoding: str, holding: _Holding) -> bytes:
        encoding = encoding.strip().lower()
        if encoding in ("", "identity"):
            return sent
        if encoding not in ("gzip", "x-gzip"):
            raise ApiError(415, f"the content encoding {encoding[:40]!r} is not supported: send gzip or none")
        found = _unpack(sent) if len(sent) <= UNPACKED_INLINE else await run_in_threadpool(_unpack, sent)
        holding.take(len(found))
        return found

    def hold(self, size: int) -> None:
        """Count bytes in memory. Raises `ApiError` 503 if there are too many."""
        if size > 0 and self._held + size > HELD_BYTES:
            raise ApiError(503, "the server is busy with large bodies", {"Retry-After": "1", **CLOSE})
        self._held += size


CLOSE = {"Connection": "close"}
"""The header that ends a connection whose body is not read completely."""


class _Holding:
    """The bytes that one request holds in memory."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies, self._size = bodies, 0

    def take(self, size: int) -> None:
        self._bodies.hold(size)
        self._size += size

    def release(self) -> None:
        self._bodies.hold(-self._size)
        self._size = 0


class _Whole:
    """Receives a body that has been read already, and then the end of the connection."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        return await self._receive() if body is None else {"type": "http.request", "body": body, "more_body": False}


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _with_length(scope: Scope, length: int) -> Scope:
    """Return the scope of an unpacked body. A body without a type is JSON."""
    headers = MutableHeaders(raw=list(scope["headers"]))
    del headers["content-encoding"]
    del headers["transfer-encoding"]
    headers["content-length"] = str(length)
    headers.setdefault("content-type", "application/json")
    return {**scope, "headers": headers.raw}


def _unpack(sent: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(sent, MAX_UNPACKED_BYTES + 1)
    except zlib.error as exc:
        raise ApiError(400, f"the body is not gzip: {exc}") from exc
    if len(found) > MAX_UNPACKED_BYTES:
        raise _too_large(f"the body is larger than {MAX_UNPACKED_BYTES} bytes after decompression")
    if not unpacking.eof or unpacking.unused_data:
        raise ApiError(400, "the body must be one complete gzip stream")
    return found


def _too_large(detail: str) -> ApiError:
    return ApiError(413, detail, CLOSE)


def _check_json(body: bytes) -> None:
    """Refuse NaN, infinities, numbers too large for a float, and deep nesting. Other errors are left to the route."""
    try:
        found = json.loads(body, parse_constant=_no_number, parse_float=_finite)
    except ValueError:
        return
    except RecursionError:
        raise _too_deep() from None
    level = [found] if type(found) in _NESTED else []
    for _ in range(MAX_LEVELS):
        level = [item for each in level for item in _items(each) if type(item) in _NESTED]
        if not level:
            return
    raise _too_deep()


_NESTED = frozenset({dict, list})


def _items(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value


def _too_deep() -> ApiError:
    return ApiError(422, f"the body is nested more than {MAX_LEVELS} levels deep")


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) != float("inf") else _no_number(text)


def _no_number(text: str) -> float:
    raise ApiError(422, f"the body has the number {text[:40]}, which is not finite")
