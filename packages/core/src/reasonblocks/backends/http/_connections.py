"""Holds the connections to each server, and exchanges requests and answers over them in worker threads."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

from ...concurrency.breaker import Breaker
from ...concurrency.forks import on_fork
from ...concurrency.workers import Workers
from ...exceptions import BadAnswer, ConfigError, DeadlineExceeded, ExtraMissing, Unavailable
from ...util.text import preview
from ._address import Address

if TYPE_CHECKING:
    import ssl

    import httpx

IDLE_SECONDS = 30.0
"""Seconds that an unused connection is kept: agents make a step every few seconds."""
MOST_CONNECTIONS, MOST_IDLE = 256, 32
"""Connections to one server at once, as many as a worker of it serves, and those of them that are kept unused."""
ANSWER_BYTES = 250_000
"""The largest body of an answer that is read: parsing one of that size takes some milliseconds of an event loop."""
OFF_SECONDS = 30.0
"""Seconds until a single request tests a server that failed."""
DETAIL_CHARS = 120
"""Characters of a server's own reason in a log line or an error."""

_workers = Workers()


class NoReply(Exception):
    """An exchange failed before there was an answer. `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ClientClosed(NoReply):
    """The client was closed during an exchange, which shows nothing about the server."""

    def __init__(self) -> None:
        super().__init__("the client was closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of any status."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json(self, server: str) -> dict[str, Any]:
        """Return the body, a JSON object. Raises `BadAnswer`."""
        return json_object(server, self.body)

    @property
    def reason(self) -> str:
        """The status, and the reason that the server gave."""
        try:
            detail = self.json("the server").get("detail")
        except BadAnswer:
            detail = None
        return f"HTTP {self.status}" + (f": {one_line(detail)}" if isinstance(detail, str) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request: its path below the server's URL, JSON body and headers, and the largest answer that is read.

    `verb` is its method if that is not GET without a body, and POST with one.
    """

    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    verb: str = ""
    most_bytes: int = ANSWER_BYTES

    @property
    def method(self) -> str:
        return self.verb or ("GET" if self.body is None else "POST")


class _Connection:
    """An HTTP client with one connection, whose socket is therefore known to the thread that cuts it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client = _client_of(address)
        self._stream: Any = None
        self._is_cut = False
        self.used = time.monotonic()

    def exchange(self, ask: Ask, seconds: float) -> Reply:
        """Send a request and read its answer.

        `seconds` limits each read and write, and the body as a whole; `cut` ends all of them.
        """
        begun = time.monotonic()
        stream = self._client.stream(
            ask.method,
            self._address.route(ask.path),
            content=ask.body,
            headers=dict(ask.headers),
            timeout=seconds,
            extensions={"trace": self._trace},
        )
        with _own_request, stream as response:
            reply = Reply(
                status=response.status_code,
                body=self._read_body(response, ask.most_bytes, begun, seconds),
                retry_after=_seconds(response.headers.get("retry-after")),
            )
        self.used = time.monotonic()
        return reply

    def _read_body(self, response: httpx.Response, most: int, begun: float, seconds: float) -> bytes:
        """Return the body; of an error only the start. It must not be compressed: it could unpack to any size."""
        body = bytearray()
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity" and response.is_success:
            raise BadAnswer(self._address.shown, encoding, "its answer must not be compressed")
        limit = most if response.is_success else ANSWER_BYTES
        for part in response.iter_raw():
            body += part
            if time.monotonic() - begun > seconds:
                raise DeadlineExceeded(self._address.shown, seconds)
            if len(body) > limit:
                break
        if response.is_success and len(body) > limit:
            raise BadAnswer(self._address.shown, f"over {most} bytes", "its answer is too large")
        return bytes(body)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the socket of a new connection, which httpcore hands to the trace of a request."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._stream = info["return_value"]
            if self._is_cut:
                self.cut()

    def cut(self) -> None:
        """Shut the socket down, so that the thread that waits for it raises at once. It closes the socket."""
        self._is_cut = True
        found = None if self._stream is None else self._stream.get_extra_info("socket")
        if found is not None:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(found, socket.SHUT_RDWR)  # that of a TLS socket is for its own thread

    def close(self) -> None:
        self._client.close()


class Flight:
    """A request in a worker thread. A caller that stops waiting cuts its connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.is_cut = False
        self.connection: _Connection | None = None
        self.future: Future[Reply]

    def result(self, seconds: float) -> Reply:
        """Wait for the reply. Raises `NoReply`, `BadAnswer`, and `DeadlineExceeded` or a `TimeoutError`."""
        try:
            return self.future.result(seconds)
        finally:
            self._pool.cut(self)

    async def aresult(self, seconds: float) -> Reply:
        """Wait for the reply without blocking the event loop. Raises as `result` does."""
        import asyncio  # already imported by the awaiting code; others do not pay for it

        waited = asyncio.wrap_future(self.future)
        try:
            await asyncio.wait((waited,), timeout=seconds)
            if not waited.done():
                raise FutureTimeout
            return waited.result()
        finally:
            waited.cancel()
            self._pool.cut(self)


class Pool:
    """The connections and the breaker of one server and key, for all clients of this process, its `users`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle = [_Connection(address)]
        self._reset()
        on_fork(self._forget_connections)
        self._at_exit = weakref.finalize(self, _close_all, self._idle)
        self.breaker = Breaker(
            f"{address.shown} with {address.shown_key}",
            off_seconds=OFF_SECONDS,
            off_line="%s failed %d times in a row (%s): switched off, tested again in %d s; runs continue without it",
            on_line="%s answers again and is switched on",
        )
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    def _reset(self) -> None:
        self._lock, self._free = threading.Lock(), threading.Semaphore(MOST_CONNECTIONS)
        self._flights: set[Flight] = set()

    def _forget_connections(self) -> None:
        """Start without connections: those of the parent are in use there."""
        self._reset()
        _close_all(self._idle)

    def start(self, user: object, ask: Ask, seconds: float, *, may_wait: bool = False) -> Flight:
        """Begin an exchange that takes at most `seconds`.

        Raises `Unavailable` if no thread can be started, as at exit. With `may_wait` the exchange is then made in
        place, for the events at exit.
        """
        flight = Flight(self)
        with self._lock:
            self.users.add(user)
        run = partial(self._run, flight, ask, seconds)
        try:
            flight.future = _workers.submit(run, self._address.shown)
        except RuntimeError:
            if not may_wait:
                raise Unavailable(self._address.shown, "no thread can be started") from None
            flight.future = Future()
            try:
                flight.future.set_result(run())
            except Exception as exc:  # noqa: BLE001 - raised by whoever asks for the result
                flight.future.set_exception(exc)
        return flight

    def cut(self, flight: Flight) -> None:
        """End a flight that is under way."""
        with self._lock:
            flight.is_cut = True
            if flight.connection is not None:
                flight.connection.cut()

    def leave(self, user: object) -> None:
        """Close the connections, unless another user is left."""
        with self._lock:
            self.users.discard(user)
            flights = () if self.users else tuple(self._flights)
            idle = [] if self.users else self._idle[:]
            del self._idle[: len(idle)]
        for flight in flights:
            self.cut(flight)
        _close_all(idle)

    def _run(self, flight: Flight, ask: Ask, seconds: float) -> Reply:
        """Send a request and read its answer. Raises `NoReply`, `BadAnswer` and `DeadlineExceeded`."""
        import httpx

        if not self._free.acquire(timeout=seconds):
            raise DeadlineExceeded(self._address.shown, seconds)
        try:
            return self._exchange(flight, ask, seconds)
        except (NoReply, BadAnswer, DeadlineExceeded):
            raise
        except httpx.TimeoutException:
            raise DeadlineExceeded(self._address.shown, seconds) from None
        except Exception as exc:  # noqa: BLE001 - HTTP, TLS and DNS each have errors of their own
            if flight.is_cut:
                raise ClientClosed from None
            reason = f"{type(exc).__name__}: {one_line(self._address.hide(str(exc)))}"
            raise NoReply(reason) from None  # the library's own error may show a header, and so the key
        finally:
            self._free.release()

    def _exchange(self, flight: Flight, ask: Ask, seconds: float) -> Reply:
        connection, is_kept = self._take(flight), False
        try:
            reply = connection.exchange(ask, seconds)
            is_kept = True
            return reply
        finally:
            with self._lock:
                self._flights.discard(flight)
                flight.connection = None
                is_wanted = bool(self.users) and self._at_exit.alive and len(self._idle) < MOST_IDLE
                is_kept = is_kept and is_wanted and not flight.is_cut
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def _take(self, flight: Flight) -> _Connection:
        """Return the connection that was used last, or a new one; close those that were not used for a while."""
        with self._lock:
            if flight.is_cut:
                raise ClientClosed
            oldest = time.monotonic() - IDLE_SECONDS
            stale = [one for one in self._idle if one.used < oldest]
            self._idle[:] = [one for one in self._idle if one.used >= oldest]  # the list that is closed at exit
            connection = self._idle.pop() if self._idle else _Connection(self._address)
            flight.connection = connection
            self._flights.add(flight)
        _close_all(stale)
        return connection


def _close_all(connections: list[_Connection]) -> None:
    while connections:
        connections.pop().close()


class _Pools:
    """The pools of this process by URL and key."""

    def __init__(self) -> None:
        self._pools: weakref.WeakValueDictionary[tuple[str, bytes], Pool] = weakref.WeakValueDictionary()
        self._new_lock()
        on_fork(self._new_lock)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()

    def of(self, address: Address) -> Pool:
        """Return the pool of a server and key; of the key a digest, as debuggers and error reports show names."""
        key = b"" if address.key is None else hashlib.sha256(address.key.reveal().encode()).digest()
        with self._lock:
            pool = self._pools.get((address.url, key))
            if pool is None:
                pool = self._pools[address.url, key] = Pool(address)
            return pool


pools = _Pools()


def _client_of(address: Address) -> httpx.Client:
    """Return a client without connections. Raises `ExtraMissing`, and `ConfigError` for variables that httpx refuses.

    The client gets its key last, so that no frame of such an error has it.
    """
    try:
        import httpx  # for those who have a server
    except ImportError as exc:
        raise ExtraMissing("a ReasonBlocks server", "httpx", "http") from exc
    logging.getLogger("httpx").addFilter(_is_foreign)
    try:
        client = httpx.Client(
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "reasonblocks-core"},
            follow_redirects=False,  # a redirect would carry the agent's texts to another server
            limits=httpx.Limits(max_connections=1, keepalive_expiry=IDLE_SECONDS),
            trust_env=not address.loopback,  # proxies
            verify=_tls(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        )
    except Exception as exc:  # a missing file or package, or a URL that is none
        rule = f"cannot be asked with these variables for proxies and certificates: {type(exc).__name__}: {exc}"
        raise ConfigError("base_url", address.url, rule) from exc
    if address.key is not None:
        client.headers["authorization"] = f"Bearer {address.key.reveal()}"
    return client


@lru_cache(maxsize=4)
def _tls(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return the TLS context for these variables, the same for all servers: one takes 30 ms and 0.6 MB."""
    import httpx  # imported by `_client_of`

    return httpx.create_ssl_context()


class _OwnRequest(threading.local):
    """Marks the thread that makes one of our requests."""

    is_now = False

    def __enter__(self) -> None:
        self.is_now = True

    def __exit__(self, *_: object) -> None:
        self.is_now = False


_own_request = _OwnRequest()


def _is_foreign(_: logging.LogRecord) -> bool:
    """Return False for the line that httpx logs for each of our requests: a program's log would be full of them."""
    return not _own_request.is_now


def one_line(text: str) -> str:
    """Return the start of a foreign text as one line, without control characters."""
    return "".join([char if char.isprintable() else "?" for char in preview(text, DETAIL_CHARS)])


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header; a date is not read."""
    try:
        return float(retry_after) if retry_after is not None else None
    except ValueError:
        return None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_DECODER = JSONDecoder(parse_constant=_no_number)


def json_object(source: str, body: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises `BadAnswer` for anything else: NaN, a list, or nesting that has no end."""
    try:
        value = _DECODER.decode(body.decode())
    except (ValueError, RecursionError):
        raise BadAnswer(source, preview(repr(body[:DETAIL_CHARS]), DETAIL_CHARS), "must be JSON") from None
    if not isinstance(value, dict):
        raise BadAnswer(source, type(value).__name__, "must be a JSON object")
    return value
