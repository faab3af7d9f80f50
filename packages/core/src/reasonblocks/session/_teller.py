"""What a run tells the sinks: its start, each step once nothing will change it, its finish."""

from __future__ import annotations

import time

from ..events import Event, RunFinish, RunStart, step_event
from ..types import Doubt, RunInfo
from ._guard import Faults
from ._log import Closed
from ._telemetry import Telemetry


class Teller:
    """Makes the events of one run. Without sinks it makes none."""

    __slots__ = ("_faults", "_telemetry")

    def __init__(self, telemetry: Telemetry, faults: Faults) -> None:
        self._telemetry, self._faults = telemetry, faults

    def start(self, run: RunInfo) -> None:
        self._emit(RunStart(run=run, timestamp=time.time()))

    def step(self, run_id: str, closed: Closed | None) -> None:
        if closed is not None and self._telemetry.wanted:
            with self._faults.guard("telemetry"):
                self._telemetry.emit(step_event(run_id, closed.entry, closed.step, closed.scores))

    def finish(self, run_id: str, outcome: str, doubts: tuple[Doubt, ...]) -> None:
        self._emit(RunFinish(run_id=run_id, outcome=outcome, timestamp=time.time(), doubts=doubts))

    def _emit(self, event: Event) -> None:
        with self._faults.guard("telemetry"):
            self._telemetry.emit(event)
