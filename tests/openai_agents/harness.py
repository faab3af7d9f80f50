"""The conformance suite's way into real agents of the SDK, against a model provider on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelRetrySettings,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
    Usage,
    function_tool,
    retry_policies,
)
from agents.items import ModelResponse
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs
from agents.tool_context import ToolContext
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import RoutedModels, RunOptions
from reasonblocks.messages.content import text_of
from reasonblocks.types import AdapterCaps, StepLogEntry, ToolResult
from reasonblocks_openai_agents import SteeredRun, openai_run, openai_run_streamed, openai_run_sync, steering_of
from reasonblocks_openai_agents._config import Steering, new_run
from reasonblocks_openai_agents._hooks import HooksOfRun
from reasonblocks_openai_agents._model import as_model
from reasonblocks_testing import Ran, Script, Seen, Turn
from reasonblocks_testing.server import Asked, ScriptedServer
from tests.openai_agents.world import body_of, plain_requests
from tests.whole import WHOLE

Result = RunResult | RunResultStreaming
INNER = "inner-model"


TELLS_ERRORS = "error" in ToolErrorFormatterArgs.__dataclass_fields__
"""Older versions know a tool that raised by their own text alone, which then stands in the place of the script's."""


class ToolFailed(Exception):
    """What a scripted tool raises, for a result that is an error."""


def tool(name: str, results: Mapping[str, ToolResult], paused: frozenset[str] = frozenset()) -> FunctionTool:
    """Gives back what the script says for a call's id; asks for an approval of the calls in `paused`."""

    async def scripted(context: ToolContext[Any]) -> str:
        result = results[context.tool_call_id]
        if result.is_error:
            raise ToolFailed(result.output)
        return result.output

    async def asks(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return call_id in paused

    # The SDK asks before any call whose arguments it had to change, and this tool takes none of them.
    return function_tool(scripted, name_override=name, strict_mode=False, needs_approval=asks if paused else False)


def _said(args: ToolErrorFormatterArgs[Any]) -> str | None:
    """The script's text alone, where the SDK lets a caller say it."""
    error = getattr(args, "error", None)
    return str(error) if isinstance(error, ToolFailed) else None


@contextmanager
def own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop for this thread, `Runner.run_sync`'s too: a client belongs to the loop of its first request."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def one_loop_for_two() -> Iterator[None]:
    """Let `Runner.run_sync` run once more on a loop, for a second look: it shuts the loop's generators down each time.

    Not for threads.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asynchronous generator .* was scheduled after", ResourceWarning)
        yield


@dataclass(frozen=True, slots=True)
class Way:
    """How the SDK is called: which of its three functions, and over which API."""

    function: str
    api: str

    @classmethod
    def of(cls, mode: str) -> Way:
        return cls(*mode.split("/"))

    def client(self, server: ScriptedServer) -> AsyncOpenAI:
        plain = DefaultAsyncHttpxClient(verify=False)  # loading certificates holds the event loop for some 0.1 s
        return AsyncOpenAI(base_url=server.openai_url, api_key="none", max_retries=0, http_client=plain)

    def config(self, client: AsyncOpenAI) -> RunConfig:
        provider = OpenAIProvider(openai_client=client, use_responses=self.api == "responses")
        return RunConfig(model_provider=provider, tool_error_formatter=_said, tracing_disabled=True)

    async def acall(self, rb: ReasonBlocks, agent: Agent[Any], asked: Any, **options: Any) -> Result:
        if self.function == "run":
            return await openai_run(rb, agent, asked, **options)
        result = openai_run_streamed(rb, agent, asked, **options)
        async for _ in result.stream_events():
            pass
        return result

    def call(
        self, rb: ReasonBlocks, loop: asyncio.AbstractEventLoop, agent: Agent[Any], asked: Any, **options: Any
    ) -> Result:
        if self.function == "run_sync":
            return openai_run_sync(rb, agent, asked, **options)
        return loop.run_until_complete(self.acall(rb, agent, asked, **options))

    def call_plain(self, loop: asyncio.AbstractEventLoop, agent: Agent[Any], asked: Any, **options: Any) -> Result:
        """Call the SDK's own `Runner`."""
        if self.function == "run_sync":
            return Runner.run_sync(agent, asked, **options)

        async def call() -> Result:
            if self.function == "run":
                return await Runner.run(agent, asked, **options)
            result = Runner.run_streamed(agent, asked, **options)
            async for _ in result.stream_events():
                pass
            return result

        return loop.run_until_complete(call())


def agent_of(*scripts: Script, paused: frozenset[str] = frozenset(), tools: Sequence[Any] = ()) -> Agent[Any]:
    """An agent for these scripts; of the first one come its prompt and its model."""
    script = scripts[0]
    results = {key: result for one in scripts for key, result in one.results.items()}
    names = [name for name in script.tools if name not in {one.name for one in tools}]
    failures = max(turn.failures for turn in script.turns)
    retry = ModelRetrySettings(
        max_retries=failures, backoff={"initial_delay": 0.0, "jitter": False}, policy=retry_policies.http_status([500])
    )
    return Agent(
        name=script.agent_name,
        instructions=script.system_prompt,
        model=script.model,
        model_settings=ModelSettings(retry=retry if failures else None, include_usage=True),
        tools=[*tools, *(tool(name, results, paused) for name in names)],
    )


def forgetting(given: CallModelData[Any]) -> ModelInputData:
    """A caller's own filter, which keeps the task and the newest step."""
    items = given.model_data.input
    newest = len(items)
    while newest and _kind(items[newest - 1]) == "function_call_output":
        newest -= 1
    while newest and _kind(items[newest - 1]) in ("assistant", "function_call", "reasoning"):
        newest -= 1
    return ModelInputData(input=[items[0], *items[max(1, newest) :]], instructions=given.model_data.instructions)


def _kind(item: Any) -> str:
    return str(item.get("role") or item.get("type"))


@dataclass(slots=True)
class _Run:
    """One run of a script and its parts: what waits for an approval goes on with everything made anew."""

    rb: ReasonBlocks
    way: Way
    script: Script
    server: ScriptedServer
    resume_at: Sequence[int] = ()
    forgets: bool = False
    logs: list[StepLogEntry] = field(default_factory=list)
    agent: Agent[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.agent = self._made()

    def to_its_end(self, run_id: str) -> Ran:
        before = len(self.server.requests)
        asked: Any = self.script.task
        options: dict[str, Any] = {"run_id": run_id}
        parts = 1
        while True:
            # A loop for each: `Runner.run_sync` leaves one on which Python warns of every further async generator.
            with own_loop() as loop, one_loop_for_two():
                run, result, error = self._part(loop, asked, options)
                self.logs += run.step_log
                if result is None or not result.interruptions:
                    history = _texts(result) if result else ()
                    done = _ran(run, self.server.requests[before:], self.logs, history, error)
                    return replace(done, parts=parts, agent_model=str(self.agent.model))
                parts += 1
                self.agent = self._made()
                asked = loop.run_until_complete(self._approved(result))
                options = {"snapshot": json.loads(json.dumps(run.snapshot()))}

    def _part(
        self, loop: asyncio.AbstractEventLoop, asked: Any, options: dict[str, Any]
    ) -> tuple[SteeredRun, Result | None, BaseException | None]:
        client = self.way.client(self.server)
        config = replace(self.way.config(client), call_model_input_filter=forgetting if self.forgets else None)
        given = {**options, "run_config": config, "max_turns": len(self.script.turns) + 1}
        try:
            result = self.way.call(self.rb, loop, self.agent, asked, **given)
            return steering_of(result), result, None
        except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
            return steering_of(exc), None, exc
        finally:
            loop.run_until_complete(client.close())

    def _made(self) -> Agent[Any]:
        return agent_of(self.script, paused=self._paused)

    @property
    def _paused(self) -> frozenset[str]:
        before = [self.script.turns[call - 1] for call in self.resume_at]
        return frozenset(call.id for turn in before for call in turn.tool_calls[:1])

    async def _approved(self, result: Result) -> RunState[Any, Any]:
        kept = json.loads(json.dumps(result.to_state().to_json()))
        state = await RunState.from_json(self.agent, kept)
        for one in state.get_interruptions():
            state.approve(one)
        return state


def _texts(result: Result) -> tuple[str, ...]:
    items: list[Any] = result.to_input_list()
    return tuple(text_of(item.get("content") or item.get("output") or "") for item in items)


class OpenAIHarness:
    """Runs scripts on agents of the SDK, in each way that it can be called, over both APIs."""

    modes: tuple[str, ...] = (
        tuple(f"{how}/{api}" for how in ("run", "run_sync", "run_streamed") for api in ("responses", "chat"))
        if WHOLE
        else ("run/responses", "run_streamed/chat")
    )
    caps = AdapterCaps(tool_errors=TELLS_ERRORS)

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        with ScriptedServer(script) as server, plain_requests():
            ids = (script.run_id, *(f"{script.run_id}.{at}" for at in range(2, times + 1)))
            if resume_at:
                return [_Run(rb, Way.of(mode), script, server, resume_at).to_its_end(run_id) for run_id in ids]
            runs = _Run(rb, Way.of(mode), script, server)
            return [runs.to_its_end(run_id) for run_id in ids]

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        way = Way.of(mode)
        with ScriptedServer(script) as server, plain_requests(), own_loop() as loop:
            client = way.client(server)
            way.call_plain(loop, agent_of(script), script.task, run_config=way.config(client))
            loop.run_until_complete(client.close())
            return [_seen(one) for one in server.requests]

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        turns = iter(script.turns)
        with ScriptedServer(lambda asked: next(turns)) as server:
            return _Run(rb, Way.of(mode), script, server, forgets=True).to_its_end(script.run_id)

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        way, agent = Way.of(mode), agent_of(*scripts)

        async def together(server: ScriptedServer) -> list[Result]:
            async with way.client(server) as client:
                config = way.config(client)
                runs = (way.acall(rb, agent, one.task, run_id=one.run_id, run_config=config) for one in scripts)
                return await asyncio.gather(*runs)

        def alone(server: ScriptedServer, script: Script) -> Result:
            with own_loop() as loop:
                client = way.client(server)
                given = {"run_id": script.run_id, "run_config": way.config(client)}
                result = way.call(rb, loop, agent, script.task, **given)
                loop.run_until_complete(client.close())
                return result

        with ScriptedServer(scripts) as server:
            if way.function == "run_sync":
                with ThreadPoolExecutor(len(scripts)) as pool:
                    results = list(pool.map(lambda script: alone(server, script), scripts))
            else:
                results = asyncio.run(together(server))
            return [_ran(steering_of(result), server.requests) for result in results]

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        way = Way.of(self.modes[0])
        with ScriptedServer(script) as server:
            async with way.client(server) as client:
                result = await openai_run(rb, agent_of(script), script.task, run_config=way.config(client))
            return _ran(steering_of(result), server.requests)

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        way = Way.of(mode)

        async def task(options: Any) -> str:
            return inner.task

        child = agent_of(inner)
        child.model = INNER
        delegate = child.as_tool("delegate", "Hands a task over.", parameters=_Task, input_builder=task)

        def answer(asked: Asked) -> Turn:
            return (inner if asked.model == INNER else outer).turns[asked.answers]

        with own_loop() as loop, ScriptedServer(answer) as server:
            client = way.client(server)
            agent = agent_of(outer, tools=[delegate])
            result = way.call(rb, loop, agent, outer.task, run_id=outer.run_id, run_config=way.config(client))
            loop.run_until_complete(client.close())
            outside = steering_of(result)
            (inside,) = outside.children
            return _ran(outside, server.requests), _ran(inside, server.requests)

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        way = Way.of(self.modes[0])

        async def cancelled() -> Ran:
            loop, held, let_go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

            def answer(asked: Asked) -> Turn:
                if asked.answers == at:
                    loop.call_soon_threadsafe(held.set)
                    let_go.wait(60)
                return script.turns[asked.answers]

            async def seen(client: AsyncOpenAI) -> asyncio.CancelledError:
                try:
                    await openai_run(rb, agent_of(script), script.task, run_config=way.config(client))
                except asyncio.CancelledError as exc:
                    return exc
                raise AssertionError("the run was not cancelled")

            with ScriptedServer(answer) as server:
                async with way.client(server) as client:
                    task = asyncio.ensure_future(seen(client))
                    await held.wait()
                    task.cancel()
                    error = await task
                let_go.set()
                return _ran(steering_of(error), server.requests, error=error)

        return asyncio.run(cancelled())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        agent = Agent(name="fixer", instructions="Look at every file.", model="agent-model")
        options = RunOptions()
        run = new_run(rb, options, agent_name="fixer", task="Look.", model="agent-model")
        steering = Steering(rb=rb, options=options, config=RunConfig(), routed=RoutedModels(as_model), run=run)
        hooks = HooksOfRun(run, steering.for_tool, None)
        ask = steering.run_config.call_model_input_filter
        items: list[Any] = [{"role": "user", "content": "Look at every file."}]
        answer = _response("I look at the next file and note what it says.")
        assert ask is not None

        async def one() -> None:
            given = ModelInputData(input=list(items), instructions="Look at every file.")
            asked: Any = ask(CallModelData(model_data=given, agent=agent, context=None))
            await asked
            await hooks.on_llm_end(RunContextWrapper(None), agent, answer)
            items.extend(answer.to_input_items())

        loop = asyncio.new_event_loop()

        def step(call: int) -> None:
            loop.run_until_complete(one())

        weakref.finalize(step, loop.close)
        return step


class _Task(BaseModel):
    task: str


def _response(text: str) -> ModelResponse:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    message = ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


def _seen(asked: Asked) -> Seen:
    return replace(asked.seen, raw=body_of(asked))


def _ran(
    run: SteeredRun,
    requests: Sequence[Asked],
    logs: Sequence[StepLogEntry] = (),
    history: tuple[str, ...] = (),
    error: BaseException | None = None,
) -> Ran:
    return Ran(
        run_id=run.run_id,
        seen=tuple(map(_seen, requests)),
        log=list({entry.step: entry for entry in (*logs, *run.step_log)}.values()),
        final=run.final,
        outcome=run.outcome,
        history=history,
        error=error,
        parent_run_id=run.session.run.parent_run_id,
        parent_call_id=run.session.run.parent_call_id,
        snapshot=run.snapshot(),
    )
