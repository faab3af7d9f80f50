"""What a sink holds open is closed before a fork: neither process goes on with what the other one holds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet


class Held(Protocol):
    """A sink that opens again with the next event."""

    def close(self) -> None: ...


no_fork = threading.RLock()
"""Held while a sink uses what it has open: a fork waits for it."""


@contextmanager
def no_fork_if_free(*, wait: bool = False) -> Iterator[bool]:
    """Hold it, unless another thread does, who may wait for a file; False: it is not held."""
    held = no_fork.acquire(blocking=wait)
    try:
        yield held
    finally:
        if held:
            no_fork.release()


_open: WeakSet[Held] = WeakSet()


def opened(held: Held) -> None:
    """Close it before the next fork. `no_fork` is held by the caller."""
    _open.add(held)


def _before() -> None:
    no_fork.acquire()
    for held in _open:
        held.close()
    _open.clear()


if sys.platform != "win32":
    # Not only in the child: SQLite takes the locks of inherited connections for its own, and a log is lost.
    os.register_at_fork(before=_before, after_in_parent=no_fork.release, after_in_child=no_fork.release)
