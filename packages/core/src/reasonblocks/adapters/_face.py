"""What the user reads and says of a steering object that serves many runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Generic

from ..exceptions import ConfigError, ProtocolError
from ..session import RunView, TraceStateManager
from ..types import StepLogEntry
from ._runs import Held, Runs, RunT

if TYPE_CHECKING:
    from typing_extensions import Self

CLOSE_SECONDS = 5.0
"""Given to sinks for what they still hold (BEHAVIOUR section 0)."""


class SteeringFace(Generic[RunT]):
    """The same for every adapter: who inherits it sets `_runs`.

    A context manager: on leaving, what `_runs` says ends with this `with` is finished as abandoned.
    """

    _runs: Runs[RunT]

    @property
    def runs(self) -> Mapping[str, RunView]:
        """Every open run and the newest 256 finished ones, by run id."""
        return self._runs

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Of the run started last; entry n is call n. Empty before the first run."""
        newest = self._runs.newest
        return newest.view.step_log if newest else []

    @property
    def trace(self) -> TraceStateManager:
        """Of the run started last. Raises `ProtocolError` before the first run."""
        return self._newest().session.trace

    @property
    def final(self) -> StepLogEntry | None:
        """The last completed step of the run started last, once it is finished."""
        newest = self._runs.newest
        return newest.session.final if newest else None

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """A run failed, whatever it says itself: the one started last, or `run_id`. Raises `ConfigError` if unknown."""
        run = self._newest() if run_id is None else self._runs.find(run_id)
        if run is None:
            raise ConfigError.unknown("run_id", run_id, self._runs)
        run.session.mark_failure(reason)

    def finish(self, outcome: str = "success") -> None:
        """Ends the run started last, if it is open. The framework's own end of a run does this by itself."""
        self._newest().session.finish(outcome)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finishes as abandoned what is open (not what is paused), and gives sinks at most `timeout` seconds."""
        _close(self._runs.all(), timeout)

    def _newest(self) -> RunT:
        if self._runs.newest is None:
            raise ProtocolError("no run has started yet: invoke the agent first")
        return self._runs.newest

    def __enter__(self) -> Self:
        self._runs.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        _close(self._runs.leave())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(_close, self._runs.leave())


def _close(runs: Iterable[Held], timeout: float = CLOSE_SECONDS) -> None:
    ends = time.monotonic() + timeout
    for run in runs:
        run.session.close(max(0.0, ends - time.monotonic()))
