"""Holds a run between two hooks: the session that stands where its channel stands, and the `with` that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasonblocks._session import RunView, SteeringSession
from reasonblocks.adapters import Runs, view_of
from reasonblocks.types import StepLogEntry

from ._scopes import Scope, Scopes

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
    def agent_name(self) -> str:
        return self.session.run.agent_name

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
        return view_of(self.session, self.step_log)

    def paused(self) -> None:
        self.session.pause()

    async def afailed(self, error: Exception) -> None:
        await self.session.afinish(f"failure: {type(error).__name__}")


class ScopedRuns(Runs[Run]):
    """The runs of one middleware, each with the `with` that ends it."""

    def __init__(self, given_id: str | None) -> None:
        super().__init__(given_id)
        self._scopes = Scopes()

    def enter(self) -> None:
        self._scopes.enter()

    def leave(self) -> list[Run]:
        """Those of the `with` that is left here; with the last one, all."""
        scope, last = self._scopes.leave()
        return [run for run in self.all() if (scope and run.scope is scope) or (last and run.scope not in self._scopes)]

    def taken_up(self, run: Run) -> None:
        """A run that was started in no `with`, or in one that was left, belongs to the one that it goes on in."""
        if run.scope not in self._scopes:
            run.scope = self._scopes.current

    def add(self, run: Run) -> Run:
        self.taken_up(run)
        return super().add(run)
