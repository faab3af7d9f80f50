"""Registers what a forked process has to reset: locks, threads and connections belong to the parent."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any
from weakref import ReferenceType, ref

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


def around_fork(before: Reset, after: Reset) -> None:
    """Call `before` ahead of every fork, and `after` behind it in both processes."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


def _reset_child() -> None:
    for reset in _functions:
        reset()
    for owner, method in list(_methods.values()):
        if (alive := owner()) is not None:
            method(alive)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_child)
