"""Proxies the requests of one session's CLI. Every byte passes unchanged, except for the guidance of a decision."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from reasonblocks.adapters import REFUSALS
from reasonblocks.exceptions import ExtraMissing, Unavailable

from ._meter import Meter
from ._pending import Attempt, Guard, PendingRequests
from ._upstream import HERE, address, environment, proxy, refuse_elsewhere, trust

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, web

EXTRA = {"aiohttp": "aiohttp>=3.10,<4", "certifi": "certifi"}
"""Requirements of the extra `gateway` by module, as in `pyproject.toml`."""
MESSAGES = "/v1/messages"
CLOSING_SECONDS = 1.0
"""Time for answers that are under way when the session ends: the CLI is gone by then."""
LONGEST_HEADER = 65_536
OURS_TO_SAY = frozenset({"host", "content-length", "expect"})
OF_ONE_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that mean two neighbours only (RFC 9110, 7.6.1)."""
NOT_INVENTED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that the client library would add if the CLI does not send them."""


class Gateway:
    """Serves one session whose guidance goes through it. Raises `ConfigError` where a gateway cannot be used.

    Raises `ExtraMissing` if a package of the extra `gateway` is not installed.
    """

    def __init__(self, guard: Guard, env: Mapping[str, str]) -> None:
        for module in EXTRA:
            if find_spec(module) is None:
                raise ExtraMissing("mode='gateway'", module, "gateway", tuple(EXTRA.values()))
        self._env = {**os.environ, **env}
        refuse_elsewhere(self._env)
        self.pending = PendingRequests(guard)
        self._guard = guard
        self._secret = f"/{secrets.token_urlsafe(24)}"
        self._upstream, self._proxy = address(self._env), proxy(self._env)
        self._runner: web.AppRunner | None = None
        self._client: ClientSession | None = None

    async def open(self) -> dict[str, str]:
        """Listen, anew if this was open. Return the variables for the CLI's environment.

        Raises `OSError` where there is no port, or no such certificate.
        """
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

        await self.close()
        context = await asyncio.to_thread(trust, self._env)
        self._client = ClientSession(
            connector=TCPConnector(limit=0, ssl=True if context is None else context),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=None),  # the CLI has its own time-outs
            auto_decompress=False,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )
        app = web.Application(client_max_size=0)  # no limit
        app.router.add_route("*", f"{self._secret}{{path:.*}}", self._handle)
        app.on_response_prepare.append(_as_it_came)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            auto_decompress=False,
            shutdown_timeout=CLOSING_SECONDS,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, HERE, 0).start()
        return environment(self._env, f"http://{HERE}:{self._runner.addresses[0][1]}{self._secret}")

    async def close(self) -> None:
        """Close every connection. May be called again."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._client is not None:
            await self._client.close()
        self._runner = self._client = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body, attempt = await request.read(), None
        if request.method == "POST" and request.path == self._secret + MESSAGES:
            with self._guard("steering a request"):
                attempt = self.pending.take(body, request.headers)
        return await self._forward(request, body if attempt is None else attempt.body, attempt)

    async def _forward(self, request: web.Request, body: bytes, attempt: Attempt | None) -> web.StreamResponse:
        """Pass the provider's answer on as it arrives. If it breaks off, so does the answer to the CLI."""
        from aiohttp import ClientError, web
        from yarl import URL

        assert self._client is not None  # set by `open`, before any request
        response = web.StreamResponse()
        try:
            async with self._client.request(
                request.method,
                URL(self._upstream + request.raw_path[len(self._secret) :], encoded=True),
                headers=_passed(request.raw_headers, OURS_TO_SAY),
                data=body if request.body_exists else None,
                proxy=self._proxy,
                allow_redirects=False,
                skip_auto_headers=NOT_INVENTED,
            ) as answer:
                headers = _passed(answer.raw_headers)
                response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
                await response.prepare(request)
                await self._pour(answer, response, attempt)
        except (ClientError, OSError, asyncio.TimeoutError) as exc:
            self._break_off(request, exc)
        return response

    def _break_off(self, request: web.Request, exc: Exception) -> None:
        """Abort the CLI's connection. Log the cause, because the CLI's own error blames the gateway."""
        if request.transport is None or request.transport.is_closing():
            return  # the CLI has closed it
        request.transport.abort()
        with self._guard("the gateway's connection"):
            raise Unavailable("the model provider", type(exc).__name__) from exc

    async def _pour(self, answer: ClientResponse, response: web.StreamResponse, attempt: Attempt | None) -> None:
        if attempt is not None and answer.status in REFUSALS:
            attempt.request.refusal = answer.status
        if attempt is not None and answer.status == 200:
            attempt.meter = Meter({name.lower(): value for name, value in answer.headers.items()})
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
            self._hear(attempt, chunk)
        self._hear(attempt, None)
        await response.write_eof()

    def _hear(self, attempt: Attempt | None, chunk: bytes | None) -> None:
        """Read what has passed already; None is the end."""
        if attempt is None:
            return
        with self._guard("reading an answer"):
            if attempt.meter is not None:
                attempt.meter.ended() if chunk is None else attempt.meter.feed(chunk)
            self.pending.heard(attempt)


def _passed(headers: Iterable[tuple[bytes, bytes]], but: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """Return the headers of one side for the other."""
    decoded = [(name.decode(), value.decode("utf-8", "surrogateescape")) for name, value in headers]
    named = {name.strip().lower() for key, value in decoded if key.lower() == "connection" for name in value.split(",")}
    kept = OF_ONE_CONNECTION | named | but
    return [(name, value) for name, value in decoded if name.lower() not in kept]


async def _as_it_came(_: web.Request, response: web.StreamResponse) -> None:
    """Remove the server library's name, which it adds if the provider sends none."""
    if response.headers.get("Server", "").startswith("Python/"):
        del response.headers["Server"]
