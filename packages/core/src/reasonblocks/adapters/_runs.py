"""Keeps the runs of one steering object and their ids: the open ones, and the newest finished. Safe between threads."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ..exceptions import ConfigError, ProtocolError
from ..session import RunView, SteeringSession, TraceStateManager
from ..types import Doubt, StepLogEntry

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_FINISHED = 256
MAX_OPEN = 4_096
"""Beyond it, the oldest is forgotten: it waits in a checkpoint, or the client has abandoned it long ago."""
MAX_NAMES = 4_096
"""Run ids whose uses are counted, including numbered ones."""


class AdapterRun(Protocol):
    """A run of an adapter. Its session changes when another process has continued the run."""

    @property
    def run_id(self) -> str: ...
    @property
    def session(self) -> SteeringSession: ...
    @property
    def over(self) -> bool: ...
    @property
    def view(self) -> RunView: ...


RunT = TypeVar("RunT", bound=AdapterRun)


class HeldRun:
    """A run with one session. It keeps its first id, even if its session restores the snapshot of another run.

    A framework's results and errors may hold it: their copies have the same run, their pickles have None instead.
    """

    __slots__ = ("run_id", "session")

    def __init__(self, session: SteeringSession) -> None:
        self.run_id = session.run.run_id
        self.session = session

    def __repr__(self) -> str:
        return f"{type(self).__name__}(run_id={self.run_id!r}, outcome={self.outcome!r}, calls={self.calls})"

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Entry n is call n."""
        return self.session.step_log

    @property
    def trace(self) -> TraceStateManager:
        """The run's trace state."""
        return self.session.trace

    @property
    def final(self) -> StepLogEntry | None:
        """The last completed step, once the run is finished."""
        return self.session.final

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Doubts that the final step raised, once the run is finished."""
        return self.view.doubts

    @property
    def outcome(self) -> str | None:
        """ "success", "failure: ..." or "stopped: ..."; None while the run is open, waits, or was cancelled."""
        return self.session.outcome

    @property
    def calls(self) -> int:
        """The number of decided calls."""
        return self.session.trace.state.calls

    @property
    def over(self) -> bool:
        return self.outcome is not None

    @property
    def view(self) -> RunView:
        return view_of(self.session)

    def mark_failure(self, reason: str) -> None:
        """Mark the run as failed, whatever its own outcome. Raises `ConfigError` if the reason is no text."""
        self.session.mark_failure(reason)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return NoneType, ()


def view_of(session: SteeringSession, step_log: list[StepLogEntry] | None = None) -> RunView:
    """Return the user's view of a session. Pass `step_log` if other sessions hold a part of the run."""
    return RunView(
        run=session.run,
        step_log=session.step_log if step_log is None else step_log,
        trace=session.trace,
        final=session.final,
        outcome=session.outcome,
    )


class Runs(Mapping[str, RunView], Generic[RunT]):
    """The open runs and the newest finished ones, by id. To its user a mapping of views."""

    def __init__(self, given_id: str | None = None) -> None:
        self.newest: RunT | None = None
        self._given_id = given_id
        self._runs: dict[str, RunT] = {}
        self._uses: dict[str, int] = {}
        self._lock = threading.Lock()

    def new_id(self, wanted: object = None) -> str:
        """Return `wanted`, else the id from the options, else a new id.

        The second use of an id ends in ".2", or in the next number that makes an unused id.
        """
        base = str(wanted) if wanted else self._given_id
        if base is None:
            return str(uuid.uuid4())
        with self._lock:
            uses = self._uses.pop(base, 0) + 1
            while (name := base if uses == 1 else f"{base}.{uses}") in self._uses or name in self._runs:
                uses += 1
            self._uses.setdefault(name, 1)
            self._uses[base] = uses
            while len(self._uses) > MAX_NAMES:
                del self._uses[next(iter(self._uses))]
        return name

    def enter(self) -> None:
        """Note that a `with` is entered. Only subclasses that distinguish nested `with` blocks need it."""

    def leave(self) -> list[RunT]:
        """Return the runs that end with the `with` that is left: all."""
        return self.all()

    def add(self, run: RunT) -> RunT:
        """Add a run, which becomes the newest."""
        with self._lock:
            self._runs[run.run_id] = run
            self.newest = run
            self._forget()
        return run

    def find(self, run_id: str) -> RunT | None:
        return self._runs.get(run_id)

    def all(self) -> list[RunT]:
        """Return the runs, the oldest first."""
        with self._lock:
            self._forget()
            return list(self._runs.values())

    def __getitem__(self, run_id: str) -> RunView:
        return self._runs[run_id].view

    def __iter__(self) -> Iterator[str]:
        return iter([run.run_id for run in self.all()])

    def __len__(self) -> int:
        return len(self.all())

    def _forget(self) -> None:
        if len(self._runs) <= MAX_FINISHED:
            return
        kept: dict[bool, int] = {True: MAX_FINISHED, False: MAX_OPEN}
        for run_id, run in reversed(list(self._runs.items())):
            over = run.over
            kept[over] -= 1
            if kept[over] < 0:
                del self._runs[run_id]


CLOSE_SECONDS = 5.0
"""Time for sinks to write what they still hold (BEHAVIOUR section 0)."""


class SteeringHandle(Generic[RunT]):
    """The user-facing properties and methods of every adapter's steering object. Subclasses set `_runs`.

    A context manager: leaving it finishes, as abandoned, the runs that `_runs.leave()` returns.
    """

    _runs: Runs[RunT]

    @property
    def runs(self) -> Mapping[str, RunView]:
        """Every open run and the newest 256 finished ones, by run id."""
        return self._runs

    @property
    def step_log(self) -> list[StepLogEntry]:
        """The log of the run started last: entry n is call n. Empty before the first run."""
        newest = self._runs.newest
        return newest.view.step_log if newest else []

    @property
    def trace(self) -> TraceStateManager:
        """The trace state of the run started last. Raises `ProtocolError` before the first run."""
        return self._newest().session.trace

    @property
    def final(self) -> StepLogEntry | None:
        """The last completed step of the run started last, once it is finished."""
        newest = self._runs.newest
        return newest.session.final if newest else None

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """Mark a run as failed: `run_id`, or the run started last. Raises `ConfigError` if it is unknown."""
        run = self._newest() if run_id is None else self._runs.find(run_id)
        if run is None:
            raise ConfigError.unknown("run_id", run_id, self._runs)
        run.session.mark_failure(reason)

    def finish(self, outcome: str = "success") -> None:
        """End the run started last, if it is open. Not needed where the framework reports the end of its runs."""
        self._newest().session.finish(outcome)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finish open runs as abandoned, but not paused ones, and wait at most `timeout` seconds for sinks."""
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


SteeringFace = SteeringHandle
Held = AdapterRun
"""Earlier names, which third-party adapters may use."""


def _close(runs: Iterable[AdapterRun], timeout: float = CLOSE_SECONDS) -> None:
    ends = time.monotonic() + timeout
    for run in runs:
        run.session.close(max(0.0, ends - time.monotonic()))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Newest(dict[K, V]):
    """A mapping that forgets its oldest keys: setting a key makes it the newest. Safe to share between threads."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            for oldest in list(self)[: len(self) - self._most]:
                self.pop(oldest, None)  # another thread may have removed it

    def keep(self, key: K, value: V) -> V:
        """Set a value and return it."""
        self[key] = value
        return value
