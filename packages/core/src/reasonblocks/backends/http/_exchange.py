"""Exchanges requests and answers with a server, within a deadline, with limited bodies and a circuit breaker."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...concurrency.forks import on_fork
from ...exceptions import BadAnswer, DeadlineExceeded, Unavailable
from ...util.text import preview
from ._address import Address
from ._breaker import Breaker
from ._connect import connect
from ._loop import network

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

ANSWER_BYTES = 250_000
"""The largest body of an answer that is read: parsing one of that size takes some milliseconds of an event loop."""
NO_DEADLINE_SECONDS = 5.0
"""Seconds for a request without a deadline, as in a test of a single backend."""
DETAIL_CHARS = 120
"""Characters of a server's own reason in a log line or an error."""
KEY_REFUSED = (401, 403)
THIS_REQUEST_ONLY = (400, 413, 422, 429)
"""Statuses that concern one request, and are no failure of the server."""


def _one_line(text: str) -> str:
    """Return the start of a foreign text as one line, without control characters."""
    return "".join([char if char.isprintable() else "?" for char in preview(text, DETAIL_CHARS)])


class NoReply(Exception):
    """An exchange failed before there was an answer. `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


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
        return f"HTTP {self.status}" + (f": {_one_line(detail)}" if isinstance(detail, str) else "")


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


class _Pool:
    """The connections and the breaker of one server and key, for all clients of this process."""

    def __init__(self, address: Address, client: httpx.AsyncClient) -> None:
        self.breaker = Breaker(f"{address.shown} with {address.shown_key}")
        self.users = 0
        self._address = address
        self._client: httpx.AsyncClient | None = client
        self._left_to_parent: list[object] = []
        self._ending: set[asyncio.Task[Reply]] = set()
        """Cancelled exchanges that still close their connections; asyncio itself keeps no reference to a task."""
        on_fork(self._forget_connections)

    def _forget_connections(self) -> None:
        self._left_to_parent.append(self._client)
        self._client = None

    async def exchange(self, ask: Ask, seconds: float) -> Reply:
        """Send a request and read its answer. Raises `NoReply`, and `DeadlineExceeded` after `seconds`."""
        task = asyncio.ensure_future(self._exchange(ask))
        try:
            await asyncio.wait((task,), timeout=seconds)
        finally:
            if not task.done():
                self._end(task)
        if not task.done():
            raise DeadlineExceeded(self._address.shown, seconds)
        try:
            return task.result()
        except (NoReply, BadAnswer):
            raise
        except Exception as exc:  # noqa: BLE001 - HTTP, TLS and DNS each have errors of their own
            reason = f"{type(exc).__name__}: {_one_line(self._address.hide(str(exc)))}"
            raise NoReply(reason) from None  # the library's own error may show a header, and so the key

    def _end(self, task: asyncio.Task[Reply]) -> None:
        """Cancel an exchange once, and let it close its connection: a second cancellation would interrupt that.

        The deadline here and a caller that stops waiting at the same time would otherwise cancel it twice.
        """
        self._ending.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: asyncio.Task[Reply]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it

    async def _exchange(self, ask: Ask) -> Reply:
        if self._client is None:
            self._client = connect(self._address)
        url = self._address.route(ask.path)
        async with self._client.stream(ask.method, url, content=ask.body, headers=dict(ask.headers)) as response:
            return Reply(
                status=response.status_code,
                body=await self._body(response, ask.most_bytes),
                retry_after=_seconds(response.headers.get("retry-after")),
            )

    async def _body(self, response: httpx.Response, most: int) -> bytes:
        """Return the body; of an error only the start. It must not be compressed: it could unpack to any size."""
        body = bytearray()
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity" and response.is_success:
            raise BadAnswer(self._address.shown, encoding, "its answer must not be compressed")
        async for part in response.aiter_raw():
            body += part
            if len(body) > (most if response.is_success else ANSWER_BYTES):
                if response.is_success:
                    raise BadAnswer(self._address.shown, f"over {most} bytes", "its answer is too large")
                break
        return bytes(body)

    async def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


class _Pools:
    """The pools of this process by URL and key; one is closed with its last user."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, bytes], _Pool] = {}
        self._new_lock()
        on_fork(self._new_lock)

    def _new_lock(self) -> None:
        self._lock, self.opening = threading.Lock(), threading.Lock()

    def enter(self, address: Address) -> _Pool:
        key = _identity(address)
        with self._lock:
            pool = self._pools.get(key)
            if pool is None:
                pool = self._pools[key] = _Pool(address, connect(address))
            network.enter()
            pool.users += 1
        return pool

    def leave(self, address: Address) -> None:
        key = _identity(address)
        with self._lock:
            pool = self._pools[key]
            pool.users -= 1
            last = not pool.users
            if last:
                del self._pools[key]
        network.leave(pool.disconnect if last else _nothing)


def _identity(address: Address) -> tuple[str, bytes]:
    """Return the URL, and a digest of the key, because debuggers and reports of errors show the names of pools."""
    return address.url, b"" if address.key is None else hashlib.sha256(address.key.reveal().encode()).digest()


async def _nothing() -> None:
    return None


pools = _Pools()


class _Attempt(Generic[T]):
    """One request behind the breaker."""

    __slots__ = ("answer", "future", "left", "reply")

    answer: T
    reply: Reply

    def __init__(self, future: Future[Reply], left: float) -> None:
        self.future, self.left = future, left


class Exchange:
    """A user of one server's connections: sync and async, from any thread and event loop, also after `close`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pool: _Pool | None = None
        self._open()

    def _open(self) -> _Pool:
        pool = self._pool
        if pool is not None:
            return pool
        with pools.opening:
            if self._pool is None:
                self._pool = pools.enter(self.address)
                self._collected = weakref.finalize(self, network.later, partial(pools.leave, self.address))
                self._collected.atexit = False
            return self._pool

    def close(self) -> None:
        """Close the connections, unless another client uses them. The next request opens new ones."""
        with pools.opening:
            if self._collected.detach() is not None:
                self._pool = None
                pools.leave(self.address)

    def check(self, backend: str) -> None:
        """Raise `SwitchedOff` while the server is off."""
        self._open().breaker.check(backend)

    def reason(self, reply: Reply) -> str:
        """Return the reason of a reply without the key, which a server may repeat."""
        return self.address.hide(reply.reason)

    def send(self, ask: Ask, seconds: float) -> Reply:
        """Send a request past the breaker. Raises `Unavailable`, and `BadAnswer` for a body that is too large."""
        name = self.address.shown
        try:
            return _result(self._start(ask, seconds), seconds)
        except (FutureTimeout, DeadlineExceeded):
            raise Unavailable(name, f"no answer within {seconds:.1f} s") from None
        except NoReply as exc:
            raise Unavailable(name, exc.reason) from None
        except BadAnswer as exc:
            raise self.address.without_key(exc) from None

    def ask(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> T:
        """Send a request and return its answer as `read` reads it. Raises `Unavailable` and `BadAnswer`."""
        with self._attempt(backend, ask, ends, read) as attempt:
            attempt.reply = _result(attempt.future, attempt.left)
        return attempt.answer

    async def aask(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> T:
        """Send a request like `ask`, without blocking the caller's event loop."""
        with self._attempt(backend, ask, ends, read) as attempt:
            attempt.reply = await _aresult(attempt.future, attempt.left)
        return attempt.answer

    def key_refused(self, status: int) -> None:
        """Switch the server off for all clients with this key, after a request past the breaker."""
        self._open().breaker.refused(None, status)

    def _start(self, ask: Ask, seconds: float) -> Future[Reply]:
        return network.submit(partial(self._open().exchange, ask, seconds))

    @contextmanager
    def _attempt(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> Iterator[_Attempt[T]]:
        """Start an attempt whose `reply` the block sets, and report its result to the breaker."""
        left = NO_DEADLINE_SECONDS if ends is None else ends - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(backend, 0.0)
        breaker = self._open().breaker
        turn = breaker.begin(backend, left)
        try:
            attempt: _Attempt[T] = _Attempt(self._start(_with_deadline(ask, left), left), left)
            yield attempt
            reply = attempt.reply
            if reply.is_success:
                attempt.answer = read(reply.body)
        except (FutureTimeout, DeadlineExceeded):
            breaker.failed(turn, "no answer in time")
            raise DeadlineExceeded(backend, left) from None
        except NoReply as exc:
            breaker.failed(turn, exc.reason)
            raise Unavailable(backend, exc.reason) from None
        except BadAnswer as exc:
            breaker.failed(turn, "an unreadable answer")
            raise self.address.without_key(exc) from None
        except BaseException:
            breaker.abandoned(turn)
            raise
        self._judge(backend, breaker, turn, reply)

    def _judge(self, backend: str, breaker: Breaker, turn: int, reply: Reply) -> None:
        if reply.is_success:
            breaker.answered(turn)
            return
        if reply.status in KEY_REFUSED:
            breaker.refused(turn, reply.status)
        elif reply.status in THIS_REQUEST_ONLY:
            breaker.answered(turn)
        else:
            breaker.failed(turn, self.reason(reply))
        raise Unavailable(backend, self.reason(reply), retry_after=reply.retry_after)


def _with_deadline(ask: Ask, left: float) -> Ask:
    return replace(ask, headers={**ask.headers, "reasonblocks-deadline-ms": str(max(1, int(left * 1000)))})


def _result(future: Future[Reply], seconds: float) -> Reply:
    """Wait for the reply; a caller that stops waiting cancels the exchange."""
    try:
        return future.result(seconds)
    except CancelledError:
        raise NoReply("the client was closed") from None
    finally:
        future.cancel()


async def _aresult(future: Future[Reply], seconds: float) -> Reply:
    waited = asyncio.wrap_future(future)
    try:
        await asyncio.wait((waited,), timeout=seconds)
        if not waited.done():
            raise FutureTimeout
        if waited.cancelled():
            raise NoReply("the client was closed")
        return waited.result()
    finally:
        waited.cancel()


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
