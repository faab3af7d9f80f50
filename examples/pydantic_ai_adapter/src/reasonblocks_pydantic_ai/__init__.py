"""Connects the hooks of pydantic-ai to a steering session for each run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import (
    AgentRunResult,
    CallToolsNode,
    DeferredToolRequests,
    ModelRequestNode,
    RunContext,
    UsageLimitExceeded,
    models,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_graph import End

from reasonblocks.adapters import (
    REFUSALS,
    HeldRun,
    RunKeywords,
    Runs,
    SteeringHandle,
    call_key,
    decode,
    failure_of,
    model_name,
    ms_since,
    split_keywords,
    status_of,
)
from reasonblocks.types import Step, StepDecision, StepInput, StepOutcome

from ._convert import completed_step, outcome_of, steered, task_of, without_foreign_thinking

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reasonblocks import ReasonBlocks, SteeringSession
    from reasonblocks.adapters import RunOptions

__all__ = ["Steering", "pydantic_ai"]

TOOL: ContextVar[tuple[str, str] | None] = ContextVar("reasonblocks_pydantic_ai_tool", default=None)
"""The ids of the current run and tool call, which are the parents of a run that the tool starts."""


def pydantic_ai(
    rb: ReasonBlocks, *, snapshot: Mapping[str, Any] | None = None, **options: Unpack[RunKeywords]
) -> Steering:
    """Return a capability for `Agent(capabilities=[...])` or for one run. It may serve many runs at once.

    `snapshot` is the result of `.trace.snapshot()` when a run paused for an approval; the first run resumes from it.
    Raises `ConfigError` for a wrong option, `SnapshotError` for a snapshot that cannot be read.
    """
    wanted, _ = split_keywords("pydantic_ai", options, ["snapshot"])
    wanted.check(rb, snapshot)
    if snapshot is not None:
        decode(snapshot)  # raises here; within a run the error would only be logged
    return Steering(rb, wanted, snapshot)


class Steering(SteeringHandle[HeldRun], AbstractCapability[Any]):
    """Capability that `rb.pydantic_ai(...)` returns: gives each run its own hooks, and the user access to all runs."""

    def __init__(self, rb: ReasonBlocks, options: RunOptions, snapshot: Mapping[str, Any] | None) -> None:
        self._rb = rb
        self._options = options
        self._snapshot = snapshot
        self._runs = Runs(options.run_id)
        self._built: dict[str, Model] = {}

    @classmethod
    def get_serialization_name(cls) -> None:
        return None  # it holds a client, so an agent's specification cannot name it

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        if not self._rb.disabled:
            with self._rb.guard("starting a run"):
                run = self._runs.add(HeldRun(self._session(ctx)))
                return SteeredRun(self._rb.model_routing, run.session, self._built)
        return self

    def _session(self, ctx: RunContext[Any]) -> SteeringSession:
        parent, call = TOOL.get() or (None, None)
        snapshot, self._snapshot = self._snapshot, None
        return self._options.session(
            self._rb,
            framework="pydantic-ai",
            run_id=self._runs.new_id(None if self._options.run_id else ctx.run_id),
            agent_name=ctx.agent.name if ctx.agent else None,
            task=task_of(ctx),
            model=ctx.model.model_name,
            snapshot=snapshot,
            parent_run_id=parent,
            parent_call_id=call,
            session_id=ctx.conversation_id,
            route_names={state: model_name(model) for state, model in self._rb.model_routing.items()},
        )


class SteeredRun(AbstractCapability[Any]):
    """The hooks of one run. Its calls do not overlap; each has one attempt or more."""

    def __init__(self, routing: Mapping[str, object], session: SteeringSession, built: dict[str, Model]) -> None:
        self._routing = routing
        self._session = session
        self._built = built
        self._decision: StepDecision | None = None
        self._model = ""
        self._attempts = 0
        self._started: float | None = None
        """The start of the current call."""

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:
        """Finish or pause the session. A cancelled run stays open: it is neither a success nor a failure."""
        try:
            result: AgentRunResult[Any] = await handler()
        except BaseException as exc:
            self._failed(exc)
            if isinstance(exc, Exception):
                await self._session.afinish(f"failure: {type(exc).__name__}", completed=self._last_step(ctx.messages))
            raise
        if isinstance(result.output, DeferredToolRequests):
            self._session.pause()
        else:
            await self._session.afinish(completed=self._last_step(result.all_messages()))
        return result

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        """Steer one call: decide before its first attempt, and record it after the last."""
        self._decision, self._attempts, self._model = None, 0, request_context.model.model_name
        with self._session.guard("deciding a call"):
            given = self._given(ctx, request_context.messages, self._model)
            self._decision = await self._session.abegin_step(given)  # a `RunStopped` passes, and ends the run
        if model := await self._routed():
            request_context = replace(request_context, model=model, model_id=None)
        self._started = time.perf_counter()
        try:
            response: ModelResponse = await handler(request_context)
        except Exception as exc:  # a stream that breaks off cancels this hook; `wrap_run` gets its error
            self._failed(exc)
            raise
        with self._session.guard("recording an answer"):
            self._ended(outcome_of(response, model=self._model, latency_ms=ms_since(self._started)))
        return response

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add guidance to the request of one attempt. Only changes made here stay out of the message history."""
        self._attempts += 1
        self._model = request_context.model.model_name
        if self._decision is not None and not self._session.observes:
            with self._session.guard("placing guidance"):
                request = steered(request_context, self._decision)
                return without_foreign_thinking(request, self._model) if self._routing else request
        return request_context

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Continue a run whose end is in doubt with a request of its own, which holds the doubt only when it is sent.

        The last node of `run_stream` is not asked about: its output has been handed over.
        """
        ends = isinstance(node, CallToolsNode) and isinstance(result, End)
        if ends and self._session.wants_second_look and not isinstance(result.data.output, DeferredToolRequests):
            with self._session.guard("taking a second look"):
                given = self._given(ctx, ctx.messages, ctx.model.model_name)
                if _within_limits(ctx) and await self._session.asecond_look(given) is not None:
                    return ModelRequestNode[Any, Any](ModelRequest(parts=[]))
        return result

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        before = TOOL.set((self._session.run.run_id, call.tool_call_id))
        try:
            return await handler(args)
        finally:
            TOOL.reset(before)

    def _given(self, ctx: RunContext[Any], messages: Sequence[ModelMessage], model: str) -> StepInput:
        return StepInput(
            key=call_key(self._session.trace.state),
            completed=completed_step(messages) if self._session.trace.state.calls else None,
            default_model=model,
            agent_name=ctx.agent.name if ctx.agent else None,
        )

    async def _routed(self) -> Model | None:
        """Return the mapped model of this call. An identifier's is built once, in a thread: it may import a package."""
        route = self._decision.route if self._decision else None
        if route is None:
            return None
        with self._session.routing(route):
            wanted: Any = self._routing[route]
            if not isinstance(wanted, str | Model):
                raise TypeError(f"{wanted!r} is no model: map a state to an identifier or to a pydantic-ai Model")
            if isinstance(wanted, str) and wanted not in self._built:
                self._built[wanted] = await asyncio.to_thread(models.infer_model, wanted)
            return self._built[wanted] if isinstance(wanted, str) else wanted
        return None

    def _failed(self, error: BaseException) -> None:
        if self._started is not None:
            self._ended(failure_of(error, model=self._model, latency_ms=ms_since(self._started)))
            if self._decision is not None and (status := status_of(error)) in REFUSALS:
                self._session.withdraw(self._decision, status)

    def _ended(self, outcome: StepOutcome) -> None:
        self._started = None
        if self._decision is not None:
            self._session.end_step(self._decision, replace(outcome, attempts=max(1, self._attempts)))

    def _last_step(self, messages: Sequence[ModelMessage]) -> Step | None:
        """Return the last step; None if the last call was not answered, since the step before it is judged already."""
        with self._session.guard("reading the last step"):
            return completed_step(messages) if self._session.trace.state.pending else None
        return None


def _within_limits(ctx: RunContext[Any]) -> bool:
    """Return True if the caller's limits allow one more request."""
    try:
        if ctx.usage_limits is not None:
            ctx.usage_limits.check_before_request(ctx.usage)
    except UsageLimitExceeded:
        return False
    return True
