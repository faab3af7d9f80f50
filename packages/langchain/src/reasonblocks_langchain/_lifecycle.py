"""Maps the life of an agent's run onto steering sessions: start, decide, apply, record, finish."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.runnables import RunnableConfig

from reasonblocks._session import ABANDONED, SteeringSession
from reasonblocks.exceptions import StaleKey
from reasonblocks.types import Step, StepDecision, StepInput

from ._call import Call, Calls
from ._channel import CHANNEL, About, Carried
from ._convert import last_answer, step_input, task_of
from ._failures import WATCH
from ._keys import START, renamed
from ._models import Routes, model_name
from ._runs import Run, ScopedRuns
from ._sessions import Sessions

if TYPE_CHECKING:
    from reasonblocks._client import ReasonBlocks
    from reasonblocks.adapters import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """A run that is about to begin."""

    run_id: str
    about: About
    before_run: str | None
    left_open: Run | None
    """What the thread's last run left open here."""


class Lifecycle:
    """Everything that one middleware does, but for LangChain's names of it. Sync and async differ in the waiting."""

    def __init__(self, rb: ReasonBlocks, options: RunOptions) -> None:
        self._rb = rb
        self._options = options
        self.name = "-".join(("SteeringMiddleware", *_words(options.agent_name)))
        self.runs = ScopedRuns(options.run_id)
        self._sessions = Sessions(rb, options, self.runs)
        self._calls = Calls(self.name, options.model, Routes(rb.model_routing))

    # ------------------------------------------------------------ a run starts

    def start(self, state: Mapping[str, Any], config: RunnableConfig) -> Carried | None:
        if self._rb.disabled:
            return None
        with self._rb.guard("starting a run"):
            start = self._starting(state, config)
            if start.left_open is not None:
                start.left_open.session.finish(ABANDONED)
            return self._started(start, self._sessions.opened(start.run_id, start.about), config)
        return None

    async def astart(self, state: Mapping[str, Any], config: RunnableConfig) -> Carried | None:
        if self._rb.disabled:
            return None
        with self._rb.guard("starting a run"):
            start = self._starting(state, config)
            if start.left_open is not None:
                await start.left_open.session.afinish(ABANDONED)
            session = await asyncio.to_thread(self._sessions.opened, start.run_id, start.about)
            return self._started(start, session, config)
        return None

    def _starting(self, state: Mapping[str, Any], config: RunnableConfig) -> _Start:
        messages = state["messages"]
        earlier = self._carried(state)
        left = self.runs.find(earlier["run_id"]) if earlier else None
        answer = last_answer(messages, None)
        before_run = answer.id if answer else None
        caller = WATCH.caller(config)
        thread = config.get("configurable", {}).get("thread_id")
        return _Start(
            run_id=self.runs.new_id(config.get("metadata", {}).get("reasonblocks_run_id")),
            about=About(
                task=self._options.task or task_of(messages, before_run),
                session_id=None if thread is None else str(thread),
                parent_run_id=caller.run.run_id if caller else None,
                parent_call_id=caller.call_id if caller else None,
                agent_name=_agent_name(config, caller.run.agent_name if caller else ""),
            ),
            before_run=before_run,
            left_open=left if left is not None and not left.over else None,
        )

    def _started(self, start: _Start, session: SteeringSession, config: RunnableConfig) -> Carried:
        carried = Carried(
            run_id=session.run.run_id,
            snapshot=session.trace.snapshot(),
            about=About(**{**start.about, "task": session.run.task}),
            model=self._options.model or "",
            before_run=start.before_run,
            seen=None,
            key=None,
        )
        WATCH.attach(config, self.runs.add(Run(session, carried["snapshot"])))
        return carried

    # ------------------------------------------------------------ a step is decided

    def decide(self, state: Mapping[str, Any], config: RunnableConfig) -> Carried | None:
        if (carried := self._carried(state)) is None:
            return None
        with self._rb.guard("deciding a step"):
            run, session = self._sessions.run(carried)
            WATCH.attach(config, run)
            if not _waits(given := self._following(state, carried, session)):
                return self._decided(carried, run, session, self._begin(session, given))
        return None

    async def adecide(self, state: Mapping[str, Any], config: RunnableConfig) -> Carried | None:
        if (carried := self._carried(state)) is None:
            return None
        with self._rb.guard("deciding a step"):
            run, session = await self._sessions.arun(carried)
            WATCH.attach(config, run)
            if not _waits(given := self._following(state, carried, session)):
                return self._decided(carried, run, session, await self._abegin(session, given))
        return None

    def _given(
        self, state: Mapping[str, Any], carried: Carried, session: SteeringSession, model: str = ""
    ) -> StepInput:
        return step_input(
            state["messages"],
            before_run=carried["before_run"],
            seen=carried["seen"],
            last_key=carried["key"],
            model=carried["model"] or model,
            agent_name=self._options.agent_name or carried["about"].get("agent_name"),
            guard=session.guard,
        )

    def _following(self, state: Mapping[str, Any], carried: Carried, session: SteeringSession) -> StepInput:
        """What follows the last call. Where a model repeats the ids of its answers, that it answered tells it apart."""
        given = self._given(state, carried, session)
        now = session.trace.state
        return renamed(given, now.calls) if given.key == carried["key"] and now.pending is not None else given

    @staticmethod
    def _decided(carried: Carried, run: Run, session: SteeringSession, decision: StepDecision) -> Carried:
        snapshot = session.trace.snapshot()
        run.hand_out(session, snapshot)
        return {**carried, "key": decision.key, "snapshot": snapshot}

    @staticmethod
    def _begin(session: SteeringSession, given: StepInput) -> StepDecision:
        try:
            return session.begin_step(given)
        except StaleKey:
            return session.begin_step(renamed(given, session.trace.state.calls))

    @staticmethod
    async def _abegin(session: SteeringSession, given: StepInput) -> StepDecision:
        try:
            return await session.abegin_step(given)
        except StaleKey:
            return await session.abegin_step(renamed(given, session.trace.state.calls))

    # ------------------------------------------------------------ a step is applied

    def apply(self, request: ModelRequest[Any]) -> Call | None:
        if (carried := self._carried(request.state)) is None:
            return None
        with self._rb.guard("steering a call"):
            run, session = self._sessions.run(carried)
            given = self._given(request.state, carried, session, model_name(request.model))
            return self._calls.made(request, carried, run, session, self._begin(session, given))
        return None

    async def aapply(self, request: ModelRequest[Any]) -> Call | None:
        if (carried := self._carried(request.state)) is None:
            return None
        with self._rb.guard("steering a call"):
            run, session = await self._sessions.arun(carried)
            given = self._given(request.state, carried, session, model_name(request.model))
            decision = await self._abegin(session, given)
            if self._calls.ready(decision):
                return self._calls.made(request, carried, run, session, decision)
            return await asyncio.to_thread(self._calls.made, request, carried, run, session, decision)
        return None

    # ------------------------------------------------------------ a run ends

    def finish(self, state: Mapping[str, Any]) -> None:
        if (carried := self._carried(state)) is None:
            return
        with self._rb.guard("finishing a run"):
            _, session = self._sessions.run(carried)
            session.finish(completed=self._undecided(state, carried, session))

    async def afinish(self, state: Mapping[str, Any]) -> None:
        if (carried := self._carried(state)) is None:
            return
        with self._rb.guard("finishing a run"):
            _, session = await self._sessions.arun(carried)
            await session.afinish(completed=self._undecided(state, carried, session))

    def _undecided(self, state: Mapping[str, Any], carried: Carried, session: SteeringSession) -> Step | None:
        """The last step, unless a decision was taken from it and its call never came."""
        given = self._following(state, carried, session)
        return None if given.key == carried["key"] else given.completed

    def _carried(self, state: Mapping[str, Any]) -> Carried | None:
        """Our part of the channel; None while steering is off, or when the run started without it."""
        if self._rb.disabled:
            return None
        carried: Carried | None = (state.get(CHANNEL) or {}).get(self.name)
        return carried


def _agent_name(config: RunnableConfig, of_caller: str) -> str | None:
    """Return the name of `create_agent(name=...)`. An agent without one, in a tool, inherits the caller's metadata."""
    name = config.get("metadata", {}).get("lc_agent_name")
    return None if name == of_caller else name


def _waits(given: StepInput) -> bool:
    """The first call of an agent whose model is not known yet is left to `apply`, which sees it."""
    return given.key == START and not given.default_model


def _words(agent_name: str | None) -> list[str]:
    """What a node may be called: LangGraph keeps ":" and "|" for itself."""
    return re.findall(r"\w+", agent_name or "")
