"""Asks a server within a deadline and behind its circuit breaker, for sync and async callers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic, TypeVar

from ...exceptions import BadAnswer, DeadlineExceeded, Unavailable
from ._address import Address
from ._connections import Ask, ClientClosed, Flight, NoReply, Reply, pools

logger = logging.getLogger("reasonblocks")

T = TypeVar("T")

NO_DEADLINE_SECONDS = 5.0
"""Seconds for a request without a deadline, as in a test of a single backend."""
REFUSED_SECONDS = 60.0
"""Seconds until a single request tests a server that refused the key."""
KEY_REFUSED = (401, 403)
THIS_REQUEST_ONLY = (400, 413, 422, 429)
"""Statuses that concern one request, and are no failure of the server."""


class _Attempt(Generic[T]):
    """One request behind the breaker."""

    __slots__ = ("answer", "flight", "left", "reply")

    answer: T
    reply: Reply

    def __init__(self, flight: Flight, left: float) -> None:
        self.flight, self.left = flight, left


class Exchange:
    """A user of one server's connections: sync and async, from any thread and event loop, also after `close`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pool = pools.of(address)

    def close(self) -> None:
        """Close the connections, unless another client uses them. The next request opens new ones."""
        self._pool.leave(self)

    def check(self, backend: str) -> None:
        """Raise `SwitchedOff` while the server is off."""
        self._pool.breaker.check(backend)

    def reason(self, reply: Reply) -> str:
        """Return the reason of a reply without the key, which a server may repeat."""
        return self.address.hide(reply.reason)

    def send(self, ask: Ask, seconds: float) -> Reply:
        """Send a request past the breaker. Raises `Unavailable`, and `BadAnswer` for a body that is too large."""
        name = self.address.shown
        try:
            return self._pool.start(self, ask, seconds, may_wait=True).result(seconds)
        except (FutureTimeout, DeadlineExceeded):
            raise Unavailable(name, f"no answer within {seconds:.1f} s") from None
        except NoReply as exc:
            raise Unavailable(name, exc.reason) from None
        except BadAnswer as exc:
            raise self.address.without_key(exc) from None

    def ask(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> T:
        """Send a request and return its answer as `read` reads it. Raises `Unavailable` and `BadAnswer`."""
        with self._attempt(backend, ask, ends, read) as attempt:
            attempt.reply = attempt.flight.result(attempt.left)
        return attempt.answer

    async def aask(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> T:
        """Send a request like `ask`, without blocking the caller's event loop."""
        with self._attempt(backend, ask, ends, read) as attempt:
            attempt.reply = await attempt.flight.aresult(attempt.left)
        return attempt.answer

    def key_refused(self, status: int, turn: int | None = None) -> None:
        """Switch the server off for all clients with this key. A request past the breaker has no turn."""
        if self._pool.breaker.refused(turn, REFUSED_SECONDS):
            text = "access to %s was refused (%d): switched off, tested again in %d s; runs continue without it"
            logger.warning(text, self._pool.breaker.name, status, REFUSED_SECONDS)

    @contextmanager
    def _attempt(self, backend: str, ask: Ask, ends: float | None, read: Callable[[bytes], T]) -> Iterator[_Attempt[T]]:
        """Start an attempt whose `reply` the block sets, and report its result to the breaker."""
        left = NO_DEADLINE_SECONDS if ends is None else ends - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(backend, 0.0)
        breaker = self._pool.breaker
        turn = breaker.begin(backend, left)
        try:
            attempt: _Attempt[T] = _Attempt(self._pool.start(self, _with_deadline(ask, left), left), left)
            yield attempt
            reply = attempt.reply
            if reply.is_success:
                attempt.answer = read(reply.body)
        except (FutureTimeout, DeadlineExceeded):
            breaker.failed(turn, "no answer in time")
            raise DeadlineExceeded(backend, left) from None
        except ClientClosed as exc:
            breaker.abandoned(turn)
            raise Unavailable(backend, exc.reason) from None
        except NoReply as exc:
            breaker.failed(turn, exc.reason)
            raise Unavailable(backend, exc.reason) from None
        except BadAnswer as exc:
            breaker.failed(turn, "an unreadable answer")
            raise self.address.without_key(exc) from None
        except BaseException:
            breaker.abandoned(turn)
            raise
        self._judge(backend, turn, reply)

    def _judge(self, backend: str, turn: int, reply: Reply) -> None:
        breaker = self._pool.breaker
        if reply.is_success:
            breaker.answered(turn)
            return
        if reply.status in KEY_REFUSED:
            self.key_refused(reply.status, turn)
        elif reply.status in THIS_REQUEST_ONLY:
            breaker.answered(turn)
        else:
            breaker.failed(turn, self.reason(reply))
        raise Unavailable(backend, self.reason(reply), retry_after=reply.retry_after)


def _with_deadline(ask: Ask, left: float) -> Ask:
    return replace(ask, headers={**ask.headers, "reasonblocks-deadline-ms": str(max(1, int(left * 1000)))})
