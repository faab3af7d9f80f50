"""Hangs steering into the hooks of a `create_agent` agent: the shell around what `_convert` and `_request` say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain_core.runnables import Runnable, RunnableConfig

from reasonblocks.exceptions import ConfigError, ProtocolError
from reasonblocks.session import RunView, TraceStateManager
from reasonblocks.types import StepLogEntry

from ._channel import CHANNEL, Carried, SteeringState
from ._failures import WATCH
from ._lifecycle import Lifecycle
from ._runs import Run

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

NO_CONFIG: RunnableConfig = {}
"""The hooks' default for `config`, which LangGraph finds by its name and its annotation."""
CLOSE_SECONDS = 5.0
"""Given to sinks for what they still hold (BEHAVIOUR section 0)."""

AgentT = TypeVar("AgentT", bound="Runnable[Any, Any]")
Handler = Callable[["ModelRequest[Any]"], "ModelResponse[Any]"]
AsyncHandler = Callable[["ModelRequest[Any]"], "Awaitable[ModelResponse[Any]]"]
Update = dict[str, Any]


class SteeringMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Made by `rb.middleware(...)`. Serves any number of agents and runs at once.

    A context manager: inside `with mw:` it also sees runs that end by an exception, in this thread or task and those
    that LangChain starts (`mw.watch(agent)` sees them anywhere), and which run's tool called another agent. On leaving,
    what was started inside and is still open is finished as abandoned; when the last `with` leaves, so is what was
    started in none. A cancelled run is open, one that waits for a human is paused.

    List a retrying middleware, and LangChain's prompt caching, before this one. A step takes one superstep more: an
    explicit `recursion_limit` has to leave room for it.
    """

    state_schema = SteeringState

    def __init__(self, lifecycle: Lifecycle) -> None:
        super().__init__()
        self.tools = []
        self._lifecycle = lifecycle

    @property
    def name(self) -> str:
        """The class and `agent_name`: the same in every process, since a checkpoint resumes at nodes named after it."""
        return self._lifecycle.name

    # ------------------------------------------------------------ the hooks, each with its async twin

    def before_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(self._lifecycle.start(state, config))

    async def abefore_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(await self._lifecycle.astart(state, config))

    def before_model(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(self._lifecycle.decide(state, config))

    async def abefore_model(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(await self._lifecycle.adecide(state, config))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        call = self._lifecycle.apply(request)
        if call is None:
            return handler(request)
        started = time.perf_counter()
        try:
            response = handler(call.request)
        except BaseException as exc:
            call.raised(exc, _ms_since(started))
            raise
        return call.answered(response, _ms_since(started))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        call = await self._lifecycle.aapply(request)
        if call is None:
            return await handler(request)
        started = time.perf_counter()
        try:
            response = await handler(call.request)
        except BaseException as exc:
            call.raised(exc, _ms_since(started))
            raise
        return call.answered(response, _ms_since(started))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        self._lifecycle.finish(state)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        await self._lifecycle.afinish(state)

    def _update(self, carried: Carried | None) -> Update | None:
        return None if carried is None else {CHANNEL: {self.name: carried}}

    # ------------------------------------------------------------ what the user reads and says

    def watch(self, agent: AgentT) -> AgentT:
        """The agent, whose failing runs are seen without `with`: for agents that are built once and live long."""
        return cast("AgentT", agent.with_config(callbacks=[WATCH]))

    @property
    def runs(self) -> Mapping[str, RunView]:
        """Every open run and the newest 256 finished ones, by run id."""
        return self._lifecycle.runs

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Of the run started last; entry n is call n. Empty before the first run."""
        newest = self._lifecycle.runs.newest
        return newest.step_log if newest else []

    @property
    def trace(self) -> TraceStateManager:
        """Of the run started last. Raises `ProtocolError` before the first run."""
        return self._newest().session.trace

    @property
    def final(self) -> StepLogEntry | None:
        """The last completed step of the run started last, once it is finished."""
        newest = self._lifecycle.runs.newest
        return newest.session.final if newest else None

    def mark_failure(self, reason: str, run_id: str | None = None) -> None:
        """A run failed, whatever it says itself: the one started last, or `run_id`. Raises `ConfigError` if unknown."""
        run = self._newest() if run_id is None else self._lifecycle.runs.find(run_id)
        if run is None:
            raise ConfigError.unknown("run_id", run_id, self.runs)
        run.session.mark_failure(reason)

    def finish(self, outcome: str = "success") -> None:
        """Ends the run started last, if it is open. LangChain's own end of a run does this by itself."""
        self._newest().session.finish(outcome)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finishes as abandoned what is open (not what is paused), and gives sinks at most `timeout` seconds."""
        _close(self._lifecycle.runs.all(), timeout)

    def _newest(self) -> Run:
        if self._lifecycle.runs.newest is None:
            raise ProtocolError("no run has started yet: invoke the agent first")
        return self._lifecycle.runs.newest

    def __enter__(self) -> SteeringMiddleware:
        self._lifecycle.runs.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        _close(self._lifecycle.runs.leave())

    async def __aenter__(self) -> SteeringMiddleware:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(_close, self._lifecycle.runs.leave())


def _close(runs: Iterable[Run], timeout: float = CLOSE_SECONDS) -> None:
    ends = time.monotonic() + timeout
    for run in runs:
        run.session.close(max(0.0, ends - time.monotonic()))


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
