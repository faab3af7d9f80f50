"""Closes file and database handles before a fork, so that parent and child never share one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from .._process import around_fork


class Closable(Protocol):
    """A sink or store that reopens its handle when it needs it."""

    def close(self) -> None: ...


no_fork = threading.RLock()
"""Held while a sink or store uses its handle: a fork waits for it."""


@contextmanager
def no_fork_if_free(*, wait: bool = False) -> Iterator[bool]:
    """Hold `no_fork` unless another thread does, which may wait for a file. Yields whether it is held."""
    held = no_fork.acquire(blocking=wait)
    try:
        yield held
    finally:
        if held:
            no_fork.release()


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
