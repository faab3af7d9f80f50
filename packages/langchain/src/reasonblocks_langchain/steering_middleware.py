"""Calls the steering lifecycle from the hooks of a `create_agent` agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
    hook_config,
)
from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from reasonblocks.adapters import SteeringHandle, adrive, drive, prepare_snapshots

from ._channel import CHANNEL, Carried, CountingState, SteeringState
from ._control import stop_message
from ._failures import WATCH
from ._lifecycle import Decided, Lifecycle
from ._runs import Run

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

NO_CONFIG: RunnableConfig = {}
"""The hooks' default for `config`, which LangGraph finds by its name and its annotation."""

AgentT = TypeVar("AgentT", bound="Runnable[Any, Any]")
Handler = Callable[["ModelRequest[Any]"], "ModelResponse[Any]"]
AsyncHandler = Callable[["ModelRequest[Any]"], "Awaitable[ModelResponse[Any]]"]
Answered = ToolMessage | Command[Any]
Update = dict[str, Any]


class SteeringMiddleware(SteeringHandle[Run], AgentMiddleware[Any, Any, Any]):
    """Steers any number of agents and runs at once. Made by `rb.middleware(...)`.

    A context manager: inside `with mw:` it also sees runs that end by an exception, in this thread or task and those
    that LangChain starts (`mw.watch(agent)` sees them anywhere), and which run's tool called another agent. On leaving,
    runs that were started inside and are still open are finished as abandoned; when the last `with` ends, so are runs
    that were started in none. A cancelled run is open, one that waits for a human is paused.

    List a retrying middleware, and LangChain's prompt caching, before this one; with `second_look` also those that
    have an `after_agent` hook. A step takes one superstep more: an explicit `recursion_limit` has to leave room for it.
    """

    state_schema = SteeringState

    def __init__(self, lifecycle: Lifecycle) -> None:
        super().__init__()
        prepare_snapshots()  # here, because the first step may be on an event loop
        self.tools = []
        if lifecycle.counts_supersteps:  # LangGraph warns of the key where a middleware returns the whole state
            self.state_schema = CountingState
        self._lifecycle = lifecycle
        self._runs = lifecycle.runs

    @property
    def name(self) -> str:
        """The class and `agent_name`: the same in every process, since a checkpoint resumes at nodes named after it."""
        return self._lifecycle.name

    def watch(self, agent: AgentT) -> AgentT:
        """Return the agent with its failures watched, also without `with`: for agents that are built once."""
        return cast("AgentT", agent.with_config(callbacks=[WATCH]))

    # ------------------------------------------------------------ the hooks, each with its async twin

    def before_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(drive(self._lifecycle.start(state, config)))

    async def abefore_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._update(await adrive(self._lifecycle.start(state, config)))

    # The edges of both jumps are always there: an agent that is built without `stop_when` resumes the checkpoints of
    # one that was built with it, and a drawing of the agent is the same.

    @hook_config(can_jump_to=["end"])
    def before_model(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._begun(drive(self._lifecycle.decide(state, config)), config)

    @hook_config(can_jump_to=["end"])
    async def abefore_model(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._begun(await adrive(self._lifecycle.decide(state, config)), config)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        call = drive(self._lifecycle.apply(request))
        if call is None:
            return handler(request)
        call.start()
        try:
            response = handler(call.request)
        except BaseException as exc:
            call.raised(exc)
            raise
        return call.with_state(response)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        call = await adrive(self._lifecycle.apply(request))
        if call is None:
            return await handler(request)
        call.start()
        try:
            response = await handler(call.request)
        except BaseException as exc:
            call.raised(exc)
            raise
        return call.with_state(response)

    @hook_config(can_jump_to=["model"])
    def after_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._continued(drive(self._lifecycle.finish(state, config)))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(
        self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig = NO_CONFIG
    ) -> Update | None:
        return self._continued(await adrive(self._lifecycle.finish(state, config)))

    def _begun(self, decided: Decided | None, config: RunnableConfig) -> Update | None:
        if decided is None:
            return None
        if decided.decision.interrupt is not None:
            self._lifecycle.ask(decided, config)
        update = self._update(self._lifecycle.after(decided))
        stop = decided.decision.stop
        return update if stop is None else {**(update or {}), "messages": [stop_message(stop)], "jump_to": "end"}

    def _continued(self, second_look: Decided | None) -> Update | None:
        update = None if second_look is None else self._update(self._lifecycle.after(second_look))
        return None if update is None else {**update, "jump_to": "model"}

    def _update(self, carried: Carried | None) -> Update | None:
        return None if carried is None else {CHANNEL: {self.name: carried}}


class LimitingMiddleware(SteeringMiddleware):
    """Also refuses the calls of tools that a budget limits. Only then: LangChain wraps each call of a tool for it."""

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]) -> Answered:
        refused = drive(self._lifecycle.refusal(request))
        return handler(request) if refused is None else refused

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        refused = await adrive(self._lifecycle.refusal(request))
        return await handler(request) if refused is None else refused
