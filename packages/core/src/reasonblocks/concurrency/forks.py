"""Gets what belongs to a process over a fork: the child resets locks and threads, and handles are closed before it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import MethodType
from typing import Any, Protocol
from weakref import ReferenceType, WeakSet, ref

from .interrupts import hold

Reset = Callable[[], None]
_Key = tuple[int, Callable[..., Any]]

_functions: list[Reset] = []
_methods: dict[_Key, tuple[ReferenceType[object], Callable[[Any], None]]] = {}
"""Not `WeakMethod`: one that goes together with its object, at exit, prints an error."""


def on_fork(reset: Reset) -> None:
    """Call `reset` in every forked process, before any other code runs there; a method only while its object lives.

    A lock that another thread of the parent holds is never released in the child, so a reset makes new locks.
    """
    if isinstance(reset, MethodType):
        owner, method = reset.__self__, reset.__func__
        key = (id(owner), method)
        _methods[key] = ref(owner, partial(_forget, _methods, key)), method
    else:
        _functions.append(reset)


def _forget(methods: dict[_Key, Any], key: _Key, _: object) -> None:
    methods.pop(key, None)


def _reset_child() -> None:
    for reset in _functions:
        reset()
    for owner, method in list(_methods.values()):
        if (alive := owner()) is not None:
            method(alive)


def around_fork(before: Reset, after: Reset) -> None:
    """Call `before` ahead of every fork, and `after` behind it in both processes."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


class Closable(Protocol):
    """A sink or store that reopens its handle when it needs it."""

    def close(self) -> None: ...


no_fork = threading.RLock()
"""Held while a sink or store uses its handle: a fork waits for it."""


class InUse(Exception):
    """Another thread holds `no_fork`, and may wait for a file."""


def no_fork_if_free() -> AbstractContextManager[None]:
    """Hold `no_fork`. Raises `InUse` instead of waiting for it."""
    return hold(no_fork, 0, InUse)


_open: WeakSet[Closable] = WeakSet()


def close_at_fork(closable: Closable) -> None:
    """Close it before the next fork. The caller holds `no_fork`."""
    _open.add(closable)


def _close_all() -> None:
    no_fork.acquire()
    for closable in _open:
        closable.close()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_child)
# Closing in the child is too late: SQLite takes the locks of inherited connections for its own, and a log is lost.
around_fork(_close_all, no_fork.release)
