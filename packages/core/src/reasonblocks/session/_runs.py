"""Runs as others see them: one run's view, and the open ones of a client."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ..types import RunInfo, StepLogEntry
from ._session import SteeringSession
from ._trace import TraceStateManager

OPEN_RUNS = 1_024
"""Open runs that a client remembers; beyond, the oldest is finished as abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as a middleware shows it."""

    run: RunInfo
    step_log: list[StepLogEntry]
    trace: TraceStateManager
    final: StepLogEntry | None
    outcome: str | None

    @property
    def run_id(self) -> str:
        return self.run.run_id


def view(session: SteeringSession) -> RunView:
    """The session's run, as it stands now."""
    return RunView(
        run=session.run,
        step_log=session.step_log,
        trace=session.trace,
        final=session.final,
        outcome=session.outcome,
    )


class OpenRuns:
    """The runs of a client that have not finished, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[int, SteeringSession] = {}
        self._lock = threading.Lock()

    def add(self, session: SteeringSession) -> None:
        with self._lock:
            self._open[id(session)] = session
            oldest = next(iter(self._open.values())) if len(self._open) > OPEN_RUNS else None
        if oldest is not None:
            oldest.abandon()
            self.forget(oldest)

    def forget(self, session: SteeringSession) -> None:
        with self._lock:
            self._open.pop(id(session), None)

    def all(self) -> list[SteeringSession]:
        with self._lock:
            return list(self._open.values())
