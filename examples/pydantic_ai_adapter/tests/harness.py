"""The harness: runs scripts on real pydantic-ai agents, whose model is a function, without a network."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    Tool,
    ToolFailed,
    models,
)
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestContext, StreamedResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from reasonblocks import ReasonBlocks
from reasonblocks.render import FRAME
from reasonblocks.types import AdapterCaps, StepLogEntry, ToolResult
from reasonblocks_pydantic_ai import Steering, pydantic_ai
from reasonblocks_testing import Ran, Script, Seen, Turn

NO_LIMITS = UsageLimits(request_limit=None)  # the default limit is 50 calls


def texts_of(message: ModelMessage) -> list[str]:
    """Return the texts of a message, guidance at the tail included."""
    return [text for _, text in said(message)]


def said(message: ModelMessage) -> list[tuple[str, str]]:
    """Return each role and its text."""
    if isinstance(message, ModelResponse):
        return [("assistant", message.text or "")]
    shown = [part for part in message.parts if isinstance(part, UserPromptPart | BaseToolReturnPart)]
    return [
        ("tool", part.model_response_str(wrap_if_error=False))
        if isinstance(part, BaseToolReturnPart)
        else ("user", str(part.content))
        for part in shown
    ]


def whole(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    """Return the messages as plain JSON, without the ids and times that the framework makes."""
    made = ("timestamp", "run_id", "conversation_id")
    plain: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    for item in (*plain, *(part for message in plain for part in message["parts"])):
        item.update((name, None) for name in made if name in item)
    return plain


def answers(messages: Sequence[ModelMessage]) -> int:
    return sum(isinstance(message, ModelResponse) for message in messages)


def response(turn: Turn) -> ModelResponse:
    used = turn.usage
    parts: list[ModelResponsePart] = [
        *([ThinkingPart(content=turn.reasoning)] if turn.reasoning else []),
        *([TextPart(content=turn.text)] if turn.text else []),
        *(ToolCallPart(one.name, json.dumps(one.arguments), one.id) for one in turn.tool_calls),
    ]
    if used.total is None:
        return ModelResponse(parts=parts, usage=RequestUsage(unmeasured_requests=1))
    usage = RequestUsage(
        input_tokens=used.input or 0,
        output_tokens=used.output or 0,
        cache_read_tokens=used.cache_read or 0,
        cache_write_tokens=used.cache_write or 0,
    )
    return ModelResponse(parts=parts, usage=usage)


def task_in(texts: Sequence[str]) -> str:
    """Return the task, without guidance that has joined it."""
    return texts[0].partition(f"\n\n{FRAME}")[0]


class ScriptedModel(FunctionModel):
    """`FunctionModel` that streams the answer of its function, token counts included."""

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[StreamedResponse]:
        whole = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(whole, model_request_parameters=model_request_parameters, replay_events=True)


def newest_step(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep only the task and the newest step; a history processor as a caller would write it."""
    newest = max((at for at, message in enumerate(messages) if isinstance(message, ModelResponse)), default=1)
    return [messages[0], *messages[newest:]]


class Retrying(AbstractCapability[Any]):
    """A caller's own capability, which retries a failed call a number of times."""

    def __init__(self, times: int) -> None:
        self._times = times

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        if request_context.attempt <= self._times:
            raise RetryModelRequest
        raise error


class World:
    """The scripted model and tools in the framework's types, and the requests that the model received."""

    def __init__(
        self, *scripts: Script, hold_at: int | None = None, pause_at: Sequence[int] = (), forgets: bool = False
    ) -> None:
        self.script = scripts[0]
        self._by_task = {script.task: script for script in scripts}
        self._results: Mapping[str, ToolResult] = {
            key: result for script in scripts for key, result in script.results.items()
        }
        self._failures = {at: turn.failures for at, turn in enumerate(self.script.turns)}
        self._hold_at = hold_at
        self._forgets = forgets
        self._paused = {call.id for at in pause_at for call in self.script.turns[at - 1].tool_calls[:1]}
        self.held = asyncio.Event()
        self.seen: list[Seen] = []

    def model(self, name: str) -> Model:
        async def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            at = len(self.seen) if self._forgets else answers(messages)
            if at == self._hold_at:
                self.held.set()
                await asyncio.Event().wait()
            roles, texts = zip(*(one for message in messages for one in said(message)), strict=True)
            raw = json.dumps([name, *whole(messages), repr(info)])
            self.seen.append(Seen(model=name, system=info.instructions or "", texts=texts, roles=roles, raw=raw))
            return self._answer(at, self._by_task.get(task_in(texts), self.script))

        return ScriptedModel(say, model_name=name)

    @contextmanager
    def identifiers(self) -> Iterator[None]:
        """Return the scripted model for any identifier, in place of the framework's own factory."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(models, "infer_model", lambda of: of if isinstance(of, Model) else self.model(of))
            yield

    def agent(self, *steering: Steering, **tools: Callable[..., Any]) -> Agent[None, Any]:
        failures = max(self._failures.values())
        own = [Retrying(failures)] if failures else []
        scripted = [Tool(self._tool, name=name) for name in self.script.tools if name not in tools]
        return Agent(
            self.model(self.script.model),
            name=self.script.agent_name,
            instructions=self.script.system_prompt,
            output_type=[str, DeferredToolRequests],
            tools=[*scripted, *(Tool(tool, name=name) for name, tool in tools.items())],
            capabilities=[*own, *[ProcessHistory(newest_step)] * self._forgets, *steering],
        )

    def _answer(self, at: int, script: Script) -> ModelResponse:
        turn = script.turns[at]
        if self._failures[at]:
            self._failures[at] -= 1
            raise ConnectionError("try again")
        if turn.error is not None:
            raise turn.error
        return response(turn)

    async def _tool(self, ctx: RunContext[None], attempt: Any = None, **others: Any) -> str:
        call = ctx.tool_call_id or ""
        if call in self._paused and not ctx.tool_call_approved:
            raise ApprovalRequired
        result = self._results[call]
        if result.is_error:
            raise ToolFailed(result.output)
        return result.output


Asked = dict[str, Any]
"""Arguments of an agent's methods, beside the prompt."""


async def acall(agent: Agent[None, Any], mode: str, prompt: str | None, **given: Any) -> Any:
    """Return the result; an exception of the agent is raised."""
    given = {"usage_limits": NO_LIMITS, **given}
    if mode == "run":
        return await agent.run(prompt, **given)
    result = None
    async with agent.run_stream_events(prompt, **given) as events:
        async for event in events:
            result = getattr(event, "result", result)
    return result


@contextmanager
def own_loop() -> Iterator[None]:
    """Provide an event loop for `run_sync`, and close it; the one that `run_sync` creates stays open, which warns."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def call(agent: Agent[None, Any], mode: str, prompt: str | None, **given: Any) -> Any:
    if mode == "run_sync":
        with own_loop():
            return agent.run_sync(prompt, usage_limits=NO_LIMITS, **given)
    return asyncio.run(acall(agent, mode, prompt, **given))


class PydanticAIHarness:
    """Runs scripts on pydantic-ai agents, in each mode."""

    modes: tuple[str, ...] = ("run", "run_sync", "run_stream_events")
    caps = AdapterCaps()

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        world = World(script, pause_at=resume_at)
        if resume_at:
            return [self._in_parts(rb, world, mode)]
        steering = pydantic_ai(rb, run_id=script.run_id)
        agent = world.agent(steering)
        with world.identifiers():
            return [self._once(steering, agent, world, mode) for _ in range(times)]

    def _once(self, steering: Steering, agent: Agent[None, Any], world: World, mode: str) -> Ran:
        before = len(world.seen)
        error: Exception | None = None
        history: tuple[str, ...] = ()
        try:
            history = _written(call(agent, mode, world.script.task).all_messages())
        except Exception as exc:  # noqa: BLE001 - a harness returns any exception of the agent
            error = exc
        ran = _ran(steering, list(steering.runs)[-1], world.seen[before:], history=history, error=error)
        return replace(ran, agent_model=agent.model.model_name if isinstance(agent.model, Model) else None)

    def _in_parts(self, rb: ReasonBlocks, world: World, mode: str) -> Ran:
        """Run each part with a new agent, a new capability and a history read back from JSON."""
        log: list[StepLogEntry] = []
        given: Asked = {}
        snapshot: dict[str, Any] | None = None
        for part in count(1):
            steering = pydantic_ai(rb, run_id=world.script.run_id, snapshot=snapshot)
            with world.identifiers():
                result = call(world.agent(steering), mode, None if given else world.script.task, **given)
            log += steering.step_log
            if not isinstance(result.output, DeferredToolRequests):
                ran = _ran(steering, world.script.run_id, world.seen, log, _written(result.all_messages()))
                return replace(ran, parts=part)
            snapshot = json.loads(json.dumps(steering.trace.snapshot()))
            given = {
                "message_history": ModelMessagesTypeAdapter.validate_json(result.all_messages_json()),
                "deferred_tool_results": DeferredToolResults(
                    approvals={one.tool_call_id: True for one in result.output.approvals}
                ),
            }
        raise AssertionError("a run ends")

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        world = World(script)
        call(world.agent(), mode, script.task)
        return world.seen

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        world, steering = World(script, forgets=True), pydantic_ai(rb, run_id=script.run_id)
        return self._once(steering, world.agent(steering), world, mode)

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        world, steering = World(*scripts), pydantic_ai(rb)
        agent = world.agent(steering)

        async def together() -> None:
            await asyncio.gather(*(acall(agent, mode, one.task, run_id=one.run_id) for one in scripts))

        if mode == "run_sync":
            with ThreadPoolExecutor(len(scripts)) as pool:
                list(pool.map(lambda one: call(agent, mode, one.task, run_id=one.run_id), scripts))
        else:
            asyncio.run(together())
        return [_ran(steering, script.run_id, world.seen) for script in scripts]

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        world, steering = World(script), pydantic_ai(rb, run_id=script.run_id)
        await world.agent(steering).run(script.task)
        return _ran(steering, script.run_id, world.seen)

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        steering = pydantic_ai(rb)
        outside, inside = World(outer), World(inner)
        child = inside.agent(steering)

        async def delegate(task: str) -> str:
            await child.run(inner.task, run_id=inner.run_id)
            return "inner is done"

        call(outside.agent(steering, delegate=delegate), mode, outer.task, run_id=outer.run_id)
        return _ran(steering, outer.run_id, outside.seen), _ran(steering, inner.run_id, inside.seen)

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        async def cancelled() -> Ran:
            world, steering = World(script, hold_at=at), pydantic_ai(rb, run_id=script.run_id)
            task = asyncio.ensure_future(world.agent(steering).run(script.task))
            await world.held.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return _ran(steering, script.run_id, world.seen, error=asyncio.CancelledError())

        return asyncio.run(cancelled())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        steering = pydantic_ai(rb)
        model = TestModel(model_name="agent-model")
        ctx: Any = RunContext(deps=None, model=model, usage=RequestUsage(), prompt="Look at every file.")  # type: ignore[arg-type]
        messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(content="Look at every file.")])]
        said = ModelResponse(parts=[TextPart(content="I look at the next file and note what it says.")])
        run = asyncio.run(steering.for_run(ctx))

        async def one() -> None:
            request = ModelRequestContext(
                model=model,
                messages=list(messages),
                model_settings=None,
                model_request_parameters=models.ModelRequestParameters(),
            )

            async def handler(given: ModelRequestContext) -> ModelResponse:
                await run.prepare_model_request(ctx, given)
                return said

            await run.wrap_model_request(ctx, request_context=request, handler=handler)
            messages.extend([said, ModelRequest(parts=[UserPromptPart(content="Go on.")])])

        loop = asyncio.new_event_loop()

        def step(call: int) -> None:
            loop.run_until_complete(one())

        weakref.finalize(step, loop.close)
        return step


def _written(messages: Sequence[ModelMessage]) -> tuple[str, ...]:
    """Return all texts that the framework keeps, instructions recorded with a request included."""
    recorded = [message.instructions or "" for message in messages if isinstance(message, ModelRequest)]
    return (*recorded, *(text for message in messages for text in texts_of(message)))


def _ran(
    steering: Steering,
    run_id: str,
    seen: Sequence[Seen],
    log: Sequence[StepLogEntry] = (),
    history: tuple[str, ...] = (),
    error: BaseException | None = None,
) -> Ran:
    run = steering.runs[run_id]
    return Ran(
        run_id=run_id,
        seen=tuple(seen),
        log=list({entry.step: entry for entry in (*log, *run.step_log)}.values()),
        final=run.final,
        outcome=run.outcome,
        history=history,
        error=error,
        parent_run_id=run.run.parent_run_id,
        parent_call_id=run.run.parent_call_id,
        snapshot=dict(run.trace.snapshot()),
    )
