"""Registers what a forked process has to reset: locks, threads and connections belong to the parent."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MethodType
from weakref import WeakMethod

Reset = Callable[[], None]

_functions: list[Reset] = []
_methods: set[WeakMethod[Reset]] = set()


def on_fork(reset: Reset) -> None:
    """Call `reset` in every forked process, before any other code runs there; a method only while its object lives.

    A lock that another thread of the parent holds is never released in the child, so a reset makes new locks.
    """
    if isinstance(reset, MethodType):
        _methods.add(WeakMethod(reset, _methods.discard))
    else:
        _functions.append(reset)


def around_fork(before: Reset, after: Reset) -> None:
    """Call `before` ahead of every fork, and `after` behind it in both processes."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


def _reset_child() -> None:
    for reset in [*_functions, *(method() for method in list(_methods))]:
        if reset is not None:
            reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_child)
