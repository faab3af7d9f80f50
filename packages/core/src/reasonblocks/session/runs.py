"""Views of a client's runs for the code outside: one run's view, and the open runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..concurrency.forks import on_fork
from ..exceptions import ProtocolError
from ..types import JSON, Doubt, RunInfo, StepLogEntry, TraceState
from .snapshot import decode, encode


class TraceStateManager:
    """Reads, saves and restores the trace state of one run."""

    __slots__ = ("_get", "_put")

    def __init__(self, get: Callable[[], TraceState], put: Callable[[TraceState], None]) -> None:
        self._get, self._put = get, put

    @property
    def state(self) -> TraceState:
        """The current state, which is frozen."""
        return self._get()

    def get_budget_used(self) -> float | None:
        """Return the tokens so far as a fraction of `token_budget` (may exceed 1); None without a budget."""
        state = self._get()
        return None if state.token_budget is None else state.total_tokens / state.token_budget

    def snapshot(self) -> dict[str, JSON]:
        """Return plain JSON from which any process can continue exactly here: at most 64 KB, typically under 12.

        The first call in a process loads pydantic.
        """
        return encode(self._get())

    def restore(self, data: Mapping[str, Any]) -> None:
        """Continue from a snapshot; the run takes its id. Raises `SnapshotError`, after which nothing has changed."""
        self._put(decode(data))


def read_only(state: TraceState) -> TraceStateManager:
    """Return a manager of this state, for a callable that a step waits for. Its `restore` raises `ProtocolError`."""

    def refuse(_: TraceState) -> None:
        raise ProtocolError("a run cannot be restored while one of its steps is being decided")

    return TraceStateManager(lambda: state, refuse)


OPEN_RUNS = 1_024
"""Open runs that a client remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as a middleware shows it to its user."""

    run: RunInfo
    step_log: list[StepLogEntry]
    trace: TraceStateManager
    final: StepLogEntry | None
    outcome: str | None

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Doubts that the final step raised: if there are any, "success" is only the run's own claim."""
        return self.final.doubts if self.final else ()

    @property
    def run_id(self) -> str:
        return self.run.run_id


class OpenRun(Protocol):
    """A run that the client may have to end."""

    def close(self, timeout: float = 5.0) -> None: ...
    def abandon(self, ends: float | None = None) -> None: ...


class OpenRuns:
    """The begun runs of a client that have neither finished nor paused, the oldest first.

    Beyond 1,024 the oldest is forgotten: it can still end by itself. A forked process has none.
    """

    def __init__(self) -> None:
        self._forget_all()
        on_fork(self._forget_all)

    def add(self, run: OpenRun) -> None:
        with self._lock:
            self._open[id(run)] = run
            if len(self._open) > OPEN_RUNS:
                del self._open[next(iter(self._open))]

    def forget(self, run: OpenRun) -> None:
        with self._lock:
            self._open.pop(id(run), None)

    def all(self) -> list[OpenRun]:
        with self._lock:
            return list(self._open.values())

    def _forget_all(self) -> None:
        """Start without runs: in a forked process they are the parent's."""
        self._open: dict[int, OpenRun] = {}
        self._lock = threading.Lock()
