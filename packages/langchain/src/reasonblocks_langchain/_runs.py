"""Keeps the runs of one middleware and their ids: the open ones, and the newest finished. Safe between threads."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from reasonblocks.session import RunView, SteeringSession
from reasonblocks.types import StepLogEntry

from ._scopes import Scope, Scopes

MOST_FINISHED = 256
MOST_OPEN = 4_096
"""Beyond, the oldest is forgotten here: it waits in a checkpoint, or the client has abandoned it long ago."""
MOST_NAMES = 4_096
"""Run ids whose uses are counted, the numbered ones too."""

Snapshot = Mapping[str, Any]


class Run:
    """One run in this process. Its state is the channel's; the session is what holds it between two hooks."""

    def __init__(self, session: SteeringSession, snapshot: Snapshot) -> None:
        self.run_id = session.run.run_id
        self._now: tuple[SteeringSession, tuple[Snapshot, ...]] = (session, (snapshot,))
        """One tuple, so that a thread sees both or neither change."""
        self._earlier: list[StepLogEntry] = []
        self.scope: Scope | None = None
        """The `with` that it was started in."""

    @property
    def session(self) -> SteeringSession:
        return self._now[0]

    @property
    def over(self) -> bool:
        return self.session.outcome is not None

    def standing_at(self, snapshot: Snapshot) -> SteeringSession | None:
        """The session, if it stands where this snapshot does: no fork and no time travel between."""
        session, handed = self._now
        return session if any(snapshot is one or snapshot == one for one in handed) else None

    def hand_out(self, session: SteeringSession, *snapshots: Snapshot) -> None:
        """What the channel may hold at the next hook; before and after a call both, since a call may be retried."""
        if session is self.session:
            self._now = (session, snapshots)

    def go_on_from(self, session: SteeringSession, snapshot: Snapshot) -> None:
        """Another session takes over, where the channel stands."""
        self._earlier = self.step_log
        self.session.pause()
        self._now = (session, (snapshot,))

    @property
    def step_log(self) -> list[StepLogEntry]:
        entries = self.session.step_log
        first = entries[0].step if entries else self.session.trace.state.calls
        return [*(entry for entry in self._earlier if entry.step < first), *entries]

    @property
    def view(self) -> RunView:
        session = self.session
        return RunView(
            run=session.run,
            step_log=self.step_log,
            trace=session.trace,
            final=session.final,
            outcome=session.outcome,
        )

    def paused(self) -> None:
        self.session.pause()

    async def afailed(self, error: Exception) -> None:
        await self.session.afinish(f"failure: {type(error).__name__}")


class Runs(Mapping[str, RunView]):
    """All runs that are open, and the newest finished ones, by id."""

    def __init__(self, given_id: str | None) -> None:
        self.newest: Run | None = None
        self._given_id = given_id
        self._runs: dict[str, Run] = {}
        self._uses: dict[str, int] = {}
        self._scopes = Scopes()
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
        """A `with` is entered here."""
        self._scopes.enter()

    def leave(self) -> list[Run]:
        """The runs that end with the `with` that is left here: its own; with the last one, all."""
        scope, last = self._scopes.leave()
        return [run for run in self.all() if (scope and run.scope is scope) or (last and run.scope not in self._scopes)]

    def taken_up(self, run: Run) -> None:
        """A run that was started in no `with`, or in one that was left, belongs to the one that it goes on in."""
        if run.scope not in self._scopes:
            run.scope = self._scopes.current

    def add(self, run: Run) -> Run:
        self.taken_up(run)
        with self._lock:
            self._runs[run.run_id] = run
            self.newest = run
            self._forget()
        return run

    def find(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    def all(self) -> list[Run]:
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
