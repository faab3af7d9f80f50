"""Switches off what failed several times in a row, so that it delays a few steps and not every step."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import inf

from ..exceptions import SwitchedOff
from .forks import on_fork

logger = logging.getLogger("reasonblocks")

FAILURES_IN_A_ROW = 3
"""Failures in a row that switch off."""


class Breaker:
    """A circuit breaker, shared by all runs: off for `off_seconds`, then tested by one call at a time.

    `begin` returns a turn, which goes to at most one of `answered`, `failed`, `refused` and `abandoned`. A turn that
    began before the last switch changes nothing. The log gets one line for each switch: `off_line` with the name, the
    number of failures, the reason of the last one and the seconds, and `on_line` with the name.
    """

    def __init__(
        self,
        name: str,
        *,
        off_seconds: float,
        off_line: str,
        on_line: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._off_seconds, self._off_line, self._on_line, self._monotonic = off_seconds, off_line, on_line, monotonic
        self._failures = self._switches = 0
        self._off_until: float | None = None
        self._new_lock()
        on_fork(self._new_lock)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()
        self._testing_until = -inf

    def begin(self, backend: str, seconds: float) -> int:
        """Return a turn. Raises `SwitchedOff` for `backend` while off, except for the one call that tests.

        Another one may test after `seconds`: a caller whose event loop has stopped never hands its turn back.
        """
        with self._lock:
            self._refuse_while_off(backend)
            if self._off_until is not None:
                self._testing_until = self._monotonic() + seconds
            return self._switches

    def check(self, backend: str) -> None:
        """Raise `SwitchedOff` if no call may begin."""
        with self._lock:
            self._refuse_while_off(backend)

    def _refuse_while_off(self, backend: str) -> None:
        if self._off_until is not None:
            left = self._off_until - self._monotonic()
            if left > 0 or self._monotonic() < self._testing_until:
                raise SwitchedOff(backend, max(left, 0.0))

    def answered(self, turn: int) -> None:
        """Record an answer, which switches on again."""
        with self._lock:
            if turn != self._switches:
                return
            was_off, self._off_until, self._failures = self._off_until is not None, None, 0
            self._testing_until = -inf
            self._switches += was_off
        if was_off:
            logger.warning(self._on_line, self.name)

    def failed(self, turn: int, reason: str) -> None:
        """Record a failure, such as a missed deadline."""
        with self._lock:
            if turn != self._switches:
                return
            self._failures += 1
            switches = self._failures == FAILURES_IN_A_ROW
            if self._failures >= FAILURES_IN_A_ROW or self._off_until is not None:
                self._switch_off(self._off_seconds)
        if switches:
            logger.warning(self._off_line, self.name, FAILURES_IN_A_ROW, reason, self._off_seconds)

    def refused(self, turn: int | None, seconds: float) -> bool:
        """Switch off at once, for `seconds`; return False if it was off. A turn of None is of a call without one."""
        with self._lock:
            if turn is not None and turn != self._switches:
                return False
            was_off = self._off_until is not None
            self._switch_off(seconds)
        return not was_off

    def abandoned(self, turn: int) -> None:
        """Record a call that its caller abandoned, so that another one may test."""
        with self._lock:
            if turn == self._switches:
                self._testing_until = -inf

    def _switch_off(self, seconds: float) -> None:
        self._off_until = self._monotonic() + seconds
        self._switches += 1
        self._testing_until = -inf
