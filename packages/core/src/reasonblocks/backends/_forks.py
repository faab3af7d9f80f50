"""Closes file and database handles before a fork, so that parent and child never share one."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakSet

from ..concurrency.interrupts import held
from ..util.process import around_fork


class Closable(Protocol):
    """A sink or store that reopens its handle when it needs it."""

    def close(self) -> None: ...


no_fork = threading.RLock()
"""Held while a sink or store uses its handle: a fork waits for it."""


class InUse(Exception):
    """Another thread holds `no_fork`, and may wait for a file."""


def no_fork_if_free() -> AbstractContextManager[None]:
    """Hold `no_fork`. Raises `InUse` instead of waiting for it."""
    return held(no_fork, 0, InUse)


_open: WeakSet[Closable] = WeakSet()


def opened(closable: Closable) -> None:
    """Close it before the next fork. The caller holds `no_fork`."""
    _open.add(closable)


def _before() -> None:
    no_fork.acquire()
    for closable in _open:
        closable.close()
    _open.clear()


# Closing in the child is too late: SQLite takes the locks of inherited connections for its own, and a log is lost.
around_fork(_before, no_fork.release)
