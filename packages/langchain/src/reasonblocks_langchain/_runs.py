"""The runs of one middleware: the session behind each, its place in the agent's state, and the `with` that ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from reasonblocks import SteeringSession
from reasonblocks.adapters import ABANDONED, InThread, Runs, RunView, SteeringFlow, view_of
from reasonblocks.types import JSON, AdapterCaps, StepLogEntry

from ._channel import About, Carried
from ._failures import watch_here
from .models import route_names

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks
    from reasonblocks.adapters import RunOptions

Snapshot = Mapping[str, Any]
When: TypeAlias = 'Literal["stalled", "over_budget"] | Callable[[RunView], str | None] | None'
"""The values of `interrupt_when`."""


class Scope:
    """One `with mw:`, known by its identity."""


_inside: ContextVar[tuple[Scope, ...]] = ContextVar("reasonblocks_inside", default=())
"""The entered scopes of all middlewares, the innermost last. Tasks and threads that LangChain starts inherit it."""


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
        """Return the innermost open scope of this thread or task."""
        inside = _inside.get()
        return next((scope for scope in reversed(inside) if scope in self._open), None) if inside else None

    def enter(self) -> None:
        scope = Scope()
        with self._lock:
            self._open.add(scope)
        _inside.set((*_inside.get(), scope))
        watch_here(True)

    def leave(self) -> tuple[Scope | None, bool]:
        """Return the scope that ends, None if it is unknown, and whether it was the last."""
        scope = self.current
        _inside.set(tuple(other for other in _inside.get() if other is not scope))
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


class Run:
    """One run in this process. The channel has its state; a session holds it between two hooks."""

    def __init__(self, session: SteeringSession, snapshot: Snapshot) -> None:
        self.run_id = session.run.run_id
        self._now: tuple[SteeringSession, tuple[Snapshot, ...]] = (session, (snapshot,))
        """A single tuple, so that a thread sees both changes or neither."""
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

    def session_at(self, snapshot: Snapshot) -> SteeringSession | None:
        """Return the session if it is at this snapshot: a fork or time travel would have moved it."""
        session, handed = self._now
        return session if any(snapshot is known or snapshot == known for known in handed) else None

    def hand_out(self, session: SteeringSession, *snapshots: Snapshot) -> None:
        """Note the channel's possible states at the next hook: a call may be retried, so both before and after it."""
        if session is self.session:
            self._now = (session, snapshots)

    def continue_from(self, session: SteeringSession, snapshot: Snapshot) -> None:
        """Continue with another session, which is at the channel's state."""
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
        """Return the runs of the `with` that ends here; all of them when it is the last."""
        scope, last = self._scopes.leave()
        return [run for run in self.all() if (scope and run.scope is scope) or (last and run.scope not in self._scopes)]

    def taken_up(self, run: Run) -> None:
        """Move a run that was started in no open `with` to the current one."""
        if run.scope not in self._scopes:
            run.scope = self._scopes.current

    def add(self, run: Run) -> Run:
        self.taken_up(run)
        return super().add(run)


CAPS = AdapterCaps(effort=True, tool_limits=True)


class Sessions:
    """Opens the sessions of one middleware, and finds the session of a channel's run."""

    def __init__(self, rb: ReasonBlocks, options: RunOptions, runs: ScopedRuns, interrupt_when: When) -> None:
        self._rb = rb
        self._options = replace(options, task=None)  # the channel has the task: a resumed run keeps its own
        self._runs = runs
        self._route_names = route_names(rb.model_routing)
        self._interrupt_when = interrupt_when

    def opened(self, run_id: str, about: About, snapshot: Mapping[str, JSON] | None = None) -> SteeringSession:
        return self._options.session(
            self._rb,
            framework="langchain",
            caps=CAPS,
            run_id=run_id,
            agent_name=about.get("agent_name"),
            task=about["task"],
            snapshot=snapshot,
            parent_run_id=about["parent_run_id"],
            parent_call_id=about["parent_call_id"],
            session_id=about["session_id"],
            route_names=self._route_names,
            interrupt_when=self._interrupt_when,
        )

    def run(self, carried: Carried, *, goes_on: bool = False) -> SteeringFlow[tuple[Run, SteeringSession]]:
        """Return the run of a channel, and the session that is at the channel's state.

        A run that `goes_on` although another run on its thread has abandoned it gets a new session.
        """
        held = self._held(carried)
        if held is not None and not (goes_on and held[1].outcome == ABANDONED):
            return held
        about, snapshot = carried["about"], carried["snapshot"]
        session = yield InThread(partial(self.opened, carried["run_id"], about, snapshot))
        return self._taken_over(carried, session)

    def _held(self, carried: Carried) -> tuple[Run, SteeringSession] | None:
        run = self._runs.find(carried["run_id"])
        session = run.session_at(carried["snapshot"]) if run else None
        if run is None or session is None:
            return None
        self._runs.taken_up(run)
        return run, session

    def _taken_over(self, carried: Carried, session: SteeringSession) -> tuple[Run, SteeringSession]:
        """Replace the session held here: the channel comes from another process, or from another branch of a thread."""
        run = self._runs.find(carried["run_id"])
        if run is None:
            run = self._runs.add(Run(session, carried["snapshot"]))
        else:
            run.continue_from(session, carried["snapshot"])
            self._runs.taken_up(run)
        return run, session
