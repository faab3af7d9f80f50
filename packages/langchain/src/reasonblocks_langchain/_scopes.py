"""Knows which `with mw:` a thread or task is in, so that leaving one ends only what was started there."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from ._failures import watch_here


class Scope:
    """One `with mw:`, told apart by its identity."""


_inside: ContextVar[tuple[Scope, ...]] = ContextVar("reasonblocks_inside", default=())
"""Of all middlewares, the innermost last; tasks, and the threads that LangChain starts, inherit it."""


class Scopes:
    """The open scopes of one middleware. Safe between threads."""

    def __init__(self) -> None:
        self._open: set[Scope] = set()
        self._lost = 0
        """Scopes that were left in another context than they were entered in (a fixture, a generator in threads)."""
        self._lock = threading.Lock()

    def __contains__(self, scope: Scope | None) -> bool:
        return scope in self._open

    @property
    def current(self) -> Scope | None:
        """The innermost open one here."""
        inside = _inside.get()
        return next((scope for scope in reversed(inside) if scope in self._open), None) if inside else None

    def enter(self) -> None:
        scope = Scope()
        with self._lock:
            self._open.add(scope)
        _inside.set((*_inside.get(), scope))
        watch_here(True)

    def leave(self) -> tuple[Scope | None, bool]:
        """The scope that is left, None when that cannot be told; and whether it was the last."""
        scope = self.current
        _inside.set(tuple(one for one in _inside.get() if one is not scope))
        watch_here(bool(_inside.get()))
        with self._lock:
            if scope is None:
                self._lost += 1
            else:
                self._open.discard(scope)
            if last := self._lost >= len(self._open):
                self._open.clear()
                self._lost = 0
        return scope, last
