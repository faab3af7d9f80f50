"""Records the requests that a scripted rb-api receives."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reasonblocks.types import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request.

    `path` has no `/v1` before it, and `headers` have lower-case names. `body` is the parsed JSON, None if it is none.
    `up` and `down` are the bytes of the whole request and of the whole answer on the connection; `down` and `status`
    are 0 for a request that was not answered.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    up: int = 0
    down: int = 0
    status: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedNote:
    """An operator's note to a run; `told` is True once the client has reported it."""

    run_id: str
    note: Note
    told: bool = False


class Requests:
    """All requests so far, in order of arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Received] = []

    def add(self, received: Received) -> int:
        """Record a request, and return its number."""
        with self._lock:
            self._all.append(received)
            return len(self._all) - 1

    def answered(self, number: int, status: int, down: int) -> None:
        with self._lock:
            self._all[number] = replace(self._all[number], status=status, down=down)

    def all(self) -> list[Received]:
        with self._lock:
            return list(self._all)
