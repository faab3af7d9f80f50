"""Closes connections before a fork: the process forks when no other thread uses one."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakSet

from reasonblocks._process import around_fork


class Closable(Protocol):
    """A store that opens its connections again when it needs them."""

    def disconnect(self) -> None: ...


class _Gate:
    """Passed by every thread that uses a connection. Unlike the core's `no_fork`, several may be inside at once,
    because one that waits for another process's transaction must not hold up the rest.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: dict[int, int] = {}
        self._forking = False
        self.stores: WeakSet[Closable] = WeakSet()

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            while self._forking and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._changed:
            if self._inside[me] == 1:
                del self._inside[me]
            else:
                self._inside[me] -= 1
            if self._forking:
                self._changed.notify_all()

    def before_fork(self) -> None:
        me = threading.get_ident()
        self._changed.acquire()
        self._forking = True
        while any(thread != me for thread in self._inside):
            self._changed.wait()
        for store in list(self.stores):
            store.disconnect()

    def after_fork(self) -> None:
        self._forking = False
        self._changed.notify_all()
        self._changed.release()


gate = _Gate()
around_fork(gate.before_fork, gate.after_fork)
