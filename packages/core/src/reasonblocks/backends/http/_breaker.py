"""Switches a server off after failures in a row, so that a dead server delays three steps and not every step."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import inf

from ...concurrency.forks import on_fork
from ...exceptions import SwitchedOff

logger = logging.getLogger("reasonblocks")

FAILURES_IN_A_ROW = 3
"""Failures in a row after which a server is switched off."""
OFF_SECONDS = 30.0
"""Seconds until a single request tests a server that failed."""
REFUSED_SECONDS = 60.0
"""Seconds until a single request tests a server that refused the key."""


class Breaker:
    """The circuit breaker of one server and key, shared by all runs. `server` names both in log lines.

    `begin` returns a turn, which goes to exactly one of `answered`, `failed`, `refused` and `abandoned`. A turn that
    began before the last switch changes nothing.
    """

    def __init__(self, server: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._server, self._monotonic = server, monotonic
        self._failures = self._switches = 0
        self._off_until: float | None = None
        self._new_lock()
        on_fork(self._new_lock)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()
        self._trying_until = -inf

    @property
    def _trying(self) -> bool:
        return self._monotonic() < self._trying_until

    def begin(self, backend: str, seconds: float = OFF_SECONDS) -> int:
        """Return a turn. Raises `SwitchedOff` while off, except for the one request that tries the server.

        Another one may try it after `seconds`: a caller whose event loop has stopped never hands its turn back.
        """
        with self._lock:
            self._refuse_while_off(backend)
            if self._off_until is not None:
                self._trying_until = self._monotonic() + seconds
            return self._switches

    def check(self, backend: str) -> None:
        """Raise `SwitchedOff` if no request may begin, before its texts are prepared."""
        with self._lock:
            self._refuse_while_off(backend)

    def _refuse_while_off(self, backend: str) -> None:
        if self._off_until is not None:
            left = self._off_until - self._monotonic()
            if left > 0 or self._trying:
                raise SwitchedOff(backend, max(left, 0.0))

    def answered(self, turn: int) -> None:
        """Record an answer, which switches the server on again."""
        with self._lock:
            if turn != self._switches:
                return
            was_off, self._off_until, self._failures = self._off_until is not None, None, 0
            self._trying_until = -inf
            self._switches += was_off
        if was_off:
            logger.warning("%s answers again and is switched on", self._server)

    def failed(self, turn: int, reason: str) -> None:
        """Record a transport error, a missed deadline, a status such as 5xx, or an unreadable body."""
        with self._lock:
            if turn != self._switches:
                return
            self._failures += 1
            switches = self._failures == FAILURES_IN_A_ROW
            if self._failures >= FAILURES_IN_A_ROW or self._off_until is not None:
                self._off(OFF_SECONDS)
        if switches:
            text = "%s failed %d times in a row (%s): switched off, tested again in %d s; runs continue without it"
            logger.warning(text, self._server, FAILURES_IN_A_ROW, reason, OFF_SECONDS)

    def refused(self, turn: int | None, status: int) -> None:
        """Note that the server refused the key. A turn of None is a request that needed none."""
        with self._lock:
            if turn is not None and turn != self._switches:
                return
            was_off = self._off_until is not None
            self._off(REFUSED_SECONDS)
        if not was_off:
            text = "access to %s was refused (%d): switched off, tested again in %d s; runs continue without it"
            logger.warning(text, self._server, status, REFUSED_SECONDS)

    def abandoned(self, turn: int) -> None:
        """Record a request that its caller abandoned, so that another one may test the server."""
        with self._lock:
            if turn == self._switches:
                self._trying_until = -inf

    def _off(self, seconds: float) -> None:
        self._off_until = self._monotonic() + seconds
        self._switches += 1
        self._trying_until = -inf
