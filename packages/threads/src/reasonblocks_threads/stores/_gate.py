"""Closes connections before a fork: the process forks when no other thread uses one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Protocol
from weakref import WeakSet

from reasonblocks.concurrency.forks import around_fork
from reasonblocks.concurrency.interrupts import holding

LOOK_S = 0.001
"""Seconds between two looks at the connections that a fork waits for."""


class Closable(Protocol):
    """A store that opens its connections again when it needs them."""

    def disconnect(self) -> None: ...


class _Gate:
    """Passed by every thread that uses a connection. Unlike the core's `no_fork`, several may be inside at once,
    because one that waits for another process's transaction must not hold up the rest.
    """

    def __init__(self) -> None:
        self.forking = threading.RLock()
        """Held during a fork."""
        self._inside: dict[object, int] = {}
        """The thread of each use."""
        self.stores: WeakSet[Closable] = WeakSet()

    @holding
    def passed(self) -> Iterator[None]:
        me, use = threading.get_ident(), object()
        try:
            if me in list(self._inside.values()):  # a fork waits for it
                self._inside[use] = me
            else:
                with self.forking:
                    self._inside[use] = me
            yield
        finally:
            self._inside.pop(use, None)

    def before_fork(self) -> None:
        self.forking.acquire()
        me = threading.get_ident()
        while any(thread != me for thread in list(self._inside.values())):
            time.sleep(LOOK_S)
        for store in list(self.stores):
            store.disconnect()


gate = _Gate()
around_fork(gate.before_fork, gate.forking.release)
