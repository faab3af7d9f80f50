"""Connects the hooks of yourframework to a steering session for each run."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from reasonblocks.adapters import (
    HeldRun,
    RunKeywords,
    Runs,
    SteeringHandle,
    call_key,
    failure_of,
    model_name,
    ms_since,
    split_keywords,
)
from reasonblocks.types import AdapterCaps, Step, StepDecision, StepInput

# YOURS: the types of your framework. Only the marked places depend on them.
from tinyagents import Agent, Ask, Call, Hooks, Message, Request, Run, Tool

from ._convert import completed_step, outcome_of, steered

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reasonblocks import ReasonBlocks, SteeringSession
    from reasonblocks.adapters import RunOptions

__all__ = ["CAPS", "Steering", "yourframework"]

CAPS = AdapterCaps()  # YOURS: name what the framework cannot do
STATE = "reasonblocks"
"""The key of the snapshot in the state of a paused run."""
TOOL: ContextVar[tuple[str, str] | None] = ContextVar("reasonblocks_yourframework_tool", default=None)
"""The ids of the current run and tool call, which are the parents of a run that the tool starts."""


def yourframework(rb: ReasonBlocks, **options: Unpack[RunKeywords]) -> Steering:
    """Return hooks for agents of yourframework, for any number of runs. Raises `ConfigError` for a wrong option."""
    wanted, _ = split_keywords("yourframework", options)
    wanted.check(rb)
    return Steering(rb, wanted)


class Steering(SteeringHandle[HeldRun], Hooks):  # YOURS: if Hooks has a `close` or `runs`, hold it in an attribute
    """Hooks that `rb.yourframework(...)` returns. They hold the session of a run as long as the run object lives."""

    def __init__(self, rb: ReasonBlocks, options: RunOptions) -> None:
        self._rb = rb
        self._options = options
        self._runs = Runs(options.run_id)
        self._sessions: WeakKeyDictionary[Run, SteeringSession] = WeakKeyDictionary()
        self._routes = {state: model_name(model) for state, model in rb.model_routing.items()}

    # YOURS: the names and parameters of the hooks, here and below.
    async def run_starts(self, agent: Agent, run: Run) -> None:
        if not self._rb.disabled:
            with self._rb.guard("starting a run"):
                self._sessions[run] = self._runs.add(HeldRun(self._session(agent, run))).session

    async def run_ends(self, agent: Agent, run: Run, error: BaseException | None) -> None:
        """Pause or finish the session. A cancelled run is neither a success nor a failure: it is left as it is."""
        session = self._sessions.get(run)
        if session is None:
            return  # the start of the run failed, or steering is off
        if run.waits:
            with session.guard("pausing a run"):
                run.state[STATE] = session.trace.snapshot()
            session.pause()
        elif error is None:
            await session.afinish(completed=_last_step(session, run))
        elif isinstance(error, Exception):
            await session.afinish(f"failure: {type(error).__name__}", completed=_last_step(session, run))

    async def around_call(self, agent: Agent, run: Run, request: Request, ask: Ask) -> Message:
        """Steer one attempt. A retry gets the same decision, because its key is the same."""
        session = self._sessions.get(run)
        decision = await self._decision(session, agent, request) if session else None
        if session is None or decision is None:
            return await ask(request)
        request = self._applied(session, decision, request)
        started = time.perf_counter()
        try:
            answer = await ask(request)
        except BaseException as exc:  # a cancellation, too: it is recorded, and raised again
            session.end_step(decision, failure_of(exc, model=request.model, latency_ms=ms_since(started)))
            raise
        with session.guard("recording an answer"):
            session.end_step(decision, outcome_of(answer, model=request.model, latency_ms=ms_since(started)))
        return answer

    async def around_tool(self, agent: Agent, run: Run, call: Call, tool: Tool) -> Message:
        session = self._sessions.get(run)
        before = TOOL.set((session.run.run_id, call.id) if session else None)
        try:
            return await tool(call)
        finally:
            TOOL.reset(before)

    async def goes_on(self, agent: Agent, run: Run) -> bool:
        """Return True for a run whose end is in doubt: its next call is a second look, decided here."""
        # YOURS: if the framework cannot continue a run that ends, delete this: CAPS = AdapterCaps(second_look=False).
        session = self._sessions.get(run)
        if session is not None and session.wants_second_look:
            with session.guard("taking a second look"):
                request = Request(agent.model, agent.instructions, run.messages)
                return await session.asecond_look(_given(session, agent, request)) is not None
        return False

    def _session(self, agent: Agent, run: Run) -> SteeringSession:
        # YOURS: pass what the framework knows about a run.
        parent, call = TOOL.get() or (None, None)
        return self._options.session(
            self._rb,
            framework="yourframework",
            run_id=self._runs.new_id(None if self._options.run_id else run.id),
            agent_name=agent.name,
            task=next((message.text for message in run.messages if message.role == "user"), None),
            model=agent.model,
            caps=CAPS,
            snapshot=run.state.get(STATE),
            parent_run_id=parent,
            parent_call_id=call,
            route_names=self._routes,
        )

    async def _decision(self, session: SteeringSession, agent: Agent, request: Request) -> StepDecision | None:
        # A guard lets `RunStopped` pass, which ends the run before this call: so it reaches the caller of the agent.
        with session.guard("deciding a call"):
            return await session.abegin_step(_given(session, agent, request))
        return None

    def _applied(self, session: SteeringSession, decision: StepDecision, request: Request) -> Request:
        with session.guard("placing guidance"):
            request = steered(request, decision)
        if decision.route is not None:
            with session.routing(decision.route):
                return replace(request, model=self._model(decision.route))
        return request

    def _model(self, state: str) -> str:
        """Return the mapped model. An exception here closes the route; the run continues."""
        # YOURS: build the model of an identifier once; on an event loop do it in a thread if it may import a package.
        wanted = self._rb.model_routing[state]
        if not isinstance(wanted, str):
            raise TypeError(f"{wanted!r} is no model: map a state to the name of one")
        return wanted


def _given(session: SteeringSession, agent: Agent, request: Request) -> StepInput:
    state = session.trace.state
    return StepInput(
        key=call_key(state),
        completed=completed_step(request.messages) if state.steps_begun else None,
        default_model=request.model,
        agent_name=agent.name,
    )


def _last_step(session: SteeringSession, run: Run) -> Step | None:
    """Return the last step; None if the last call was not answered, since the step before it is judged already."""
    with session.guard("reading the last step"):
        return completed_step(run.messages) if session.trace.state.pending else None
    return None
