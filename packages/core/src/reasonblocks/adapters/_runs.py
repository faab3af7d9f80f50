"""Keeps the runs of one steering object and their ids: the open ones, and the newest finished. Safe between threads."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from ..session import RunView, SteeringSession
from ..types import StepLogEntry

MOST_FINISHED = 256
MOST_OPEN = 4_096
"""Beyond, the oldest is forgotten here: it waits in a checkpoint, or the client has abandoned it long ago."""
MOST_NAMES = 4_096
"""Run ids whose uses are counted, the numbered ones too."""


class Held(Protocol):
    """A run as an adapter holds it. Its session may change, when another process has gone on with the run."""

    @property
    def run_id(self) -> str: ...
    @property
    def session(self) -> SteeringSession: ...
    @property
    def over(self) -> bool: ...
    @property
    def view(self) -> RunView: ...


RunT = TypeVar("RunT", bound=Held)


class HeldRun:
    """A run that is one session. It keeps the id that it began with, also when its session restores another's."""

    __slots__ = ("run_id", "session")

    def __init__(self, session: SteeringSession) -> None:
        self.run_id = session.run.run_id
        self.session = session

    @property
    def over(self) -> bool:
        return self.session.outcome is not None

    @property
    def view(self) -> RunView:
        return view_of(self.session)


def view_of(session: SteeringSession, step_log: list[StepLogEntry] | None = None) -> RunView:
    """A session as its user sees it. `step_log` for a run of which other sessions hold a part."""
    return RunView(
        run=session.run,
        step_log=session.step_log if step_log is None else step_log,
        trace=session.trace,
        final=session.final,
        outcome=session.outcome,
    )


class Runs(Mapping[str, RunView], Generic[RunT]):
    """All runs that are open, and the newest finished ones, by id. To its user a mapping of views."""

    def __init__(self, given_id: str | None = None) -> None:
        self.newest: RunT | None = None
        self._given_id = given_id
        self._runs: dict[str, RunT] = {}
        self._uses: dict[str, int] = {}
        self._lock = threading.Lock()

    def new_id(self, wanted: object = None) -> str:
        """`wanted` for this run alone, else the given id, else a new one.

        The second use of an id ends in ".2", or in the next number that makes an id which nobody had.
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
            while len(self._uses) > MOST_NAMES:
                del self._uses[next(iter(self._uses))]
        return name

    def enter(self) -> None:
        """A `with` is entered here; it means something to those alone who tell one `with` from another."""

    def leave(self) -> list[RunT]:
        """The runs that end with the `with` that is left here: all."""
        return self.all()

    def add(self, run: RunT) -> RunT:
        """Hold a run, which is then the newest."""
        with self._lock:
            self._runs[run.run_id] = run
            self.newest = run
            self._forget()
        return run

    def find(self, run_id: str) -> RunT | None:
        return self._runs.get(run_id)

    def all(self) -> list[RunT]:
        """The oldest first."""
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
        if len(self._runs) <= MOST_FINISHED:
            return
        kept: dict[bool, int] = {True: MOST_FINISHED, False: MOST_OPEN}
        for run_id, run in reversed(list(self._runs.items())):
            over = run.over
            kept[over] -= 1
            if kept[over] < 0:
                del self._runs[run_id]
