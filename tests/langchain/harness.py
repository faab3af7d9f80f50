"""The conformance suite's way into a real `create_agent` agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ModelRetryMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from reasonblocks import ReasonBlocks
from reasonblocks.render import FRAME
from reasonblocks.types import AdapterCaps, StepLogEntry, ToolResult
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import Ran, Script, Seen, Turn
from tests.langchain.scripted import ScriptedModel
from tests.whole import WHOLE

Made = Callable[..., SteeringMiddleware]
"""Makes a middleware as `middleware` does."""


class ScriptedTool(BaseTool):
    """Gives back what the script says for a call's id."""

    description: str = "scripted"
    results: Mapping[str, ToolResult]

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> ToolMessage:
        result = self.results[input["id"]]
        status: Any = "error" if result.is_error else "success"
        return ToolMessage(content=result.output, tool_call_id=input["id"], name=self.name, status=status)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> ToolMessage:
        return self.invoke(input, config, **kwargs)


def _answers(messages: Sequence[BaseMessage]) -> int:
    return sum(isinstance(message, AIMessage) for message in messages)


def _raw(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> str:
    """A request as canonical JSON; the ids of messages are random."""
    dumped = [{**message.model_dump(), "id": message.id is not None} for message in messages]
    return json.dumps({"messages": dumped, "keywords": kwargs}, sort_keys=True)


def _answer(turn: Turn) -> AIMessage:
    thinking: list[Any] = [{"type": "thinking", "thinking": turn.reasoning}, {"type": "text", "text": turn.text}]
    usage = turn.usage
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return AIMessage(
        content=thinking if turn.reasoning else turn.text,
        tool_calls=[{"id": one.id, "name": one.name, "args": one.arguments} for one in turn.tool_calls],
        usage_metadata={
            "input_tokens": usage.input or 0,
            "output_tokens": usage.output or 0,
            "total_tokens": usage.total or 0,
            "input_token_details": {"cache_read": read, "cache_creation": written},
        },
    )


class Forgetting(AgentMiddleware[Any, Any]):
    """A caller's own middleware, which keeps the task and the newest step."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        messages = state["messages"]
        newest = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=1)
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), messages[0], *messages[newest:]]}


ROLES = {"human": "user", "ai": "assistant"}


class World:
    """A script's model and tools on LangChain, and what the model saw."""

    def __init__(self, script: Script, *others: Script, hold_at: int | None = None, forgets: bool = False) -> None:
        self.script = script
        self._by_task = {one.task: one for one in (script, *others)}
        self.seen: list[Seen] = []
        self.held = asyncio.Event()
        self._hold_at = hold_at
        self._forgets = forgets
        self._failures = {at: turn.failures for at, turn in enumerate(script.turns)}

    def agent(self, mw: SteeringMiddleware | None, *, tools: Sequence[Any] = (), **options: Any) -> Any:
        failures = max(turn.failures for turn in self.script.turns)
        retry = [ModelRetryMiddleware(max_retries=failures, initial_delay=0.0, on_failure="error")] if failures else []
        return create_agent(
            self.model(self.script.model),
            tools=[*tools, *(ScriptedTool(name=name, results=self._results) for name in self._tools(tools))],
            system_prompt=self.script.system_prompt,
            middleware=[*retry, *[Forgetting()] * self._forgets, *([mw] if mw else [])],
            name=self.script.agent_name,
            **options,
        )

    @property
    def _results(self) -> dict[str, ToolResult]:
        return {key: result for script in self._by_task.values() for key, result in script.results.items()}

    def _tools(self, given: Sequence[Any]) -> list[str]:
        return [name for name in self.script.tools if name not in {one.name for one in given}]

    def model(self, name: str) -> ScriptedModel:
        return HeldModel(script=lambda messages: self.say(name, messages, {}), model_name=name, world=self)

    async def hold(self, messages: Sequence[BaseMessage]) -> None:
        if _answers(messages) == self._hold_at:
            self.held.set()
            await asyncio.Event().wait()

    def say(self, model: str, messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> Any:
        system = messages[0].text if messages[0].type == "system" else ""
        said = [message for message in messages if message.type != "system"]
        roles = tuple(ROLES.get(message.type, message.type) for message in said)
        at = len(self.seen) if self._forgets else _answers(messages)
        texts = tuple(one.text for one in said)
        self.seen.append(Seen(model=model, system=system, texts=texts, roles=roles, raw=_raw(messages, kwargs)))
        task = next(message.text for message in messages if message.type == "human")
        turn = self._by_task.get(task.partition(f"\n\n{FRAME}")[0], self.script).turns[at]
        if self._failures[at]:
            self._failures[at] -= 1
            return ConnectionError("try again")
        return turn.error or _answer(turn)


class HeldModel(ScriptedModel):
    """Never answers the call that its world holds."""

    world: Any

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Any:
        return self.world.say(self.model_name, messages, kwargs)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await self.world.hold(messages)
        return await super()._agenerate(messages, *args, **kwargs)


async def _acall(agent: Any, mode: str, given: Any, config: Any) -> None:
    if mode == "ainvoke":
        await agent.ainvoke(given, config)
    else:
        async for _ in agent.astream(given, config, stream_mode=["values", "messages", "updates"]):
            pass


def _call(agent: Any, mode: str, given: Any, config: Any) -> None:
    if mode in ("ainvoke", "astream"):
        asyncio.run(_acall(agent, mode, given, config))
    elif mode == "invoke":
        agent.invoke(given, config)
    else:
        for _ in agent.stream(given, config, stream_mode=["values", "messages", "updates"]):
            pass


def _question(script: Script) -> dict[str, Any]:
    return {"messages": [("user", script.task)]}


class _Line:
    """Runs of one script, one after the other, in one checkpointer."""

    def __init__(
        self, rb: ReasonBlocks, world: World, mode: str, *, pausing: bool = False, made: Made = middleware
    ) -> None:
        self._rb, self._world, self._mode, self._made = rb, world, mode, made
        self._options: dict[str, Any] = {"checkpointer": InMemorySaver()}
        self._make()
        if pausing:
            self._options["interrupt_before"] = [f"{self._mw.name}.before_model"]
            self._make()

    def _make(self) -> None:
        self._mw = self._made(self._rb, run_id=self._world.script.run_id)
        self._agent = self._mw.watch(self._world.agent(self._mw, **self._options))

    def run(self, thread: str, resume_at: Sequence[int]) -> Ran:
        config = {"configurable": {"thread_id": thread}}
        self._world.seen = []
        error = _error(self._agent, self._mode, _question(self._world.script), config)
        logs, parts = [self._mw.step_log], 1
        while error is None and (state := self._agent.get_state(config)).next:
            if _answers(state.values["messages"]) in resume_at:
                self._make()
                parts += 1
            error = _error(self._agent, self._mode, None, config)
            logs.append(self._mw.step_log)
        history = tuple(message.text for message in self._agent.get_state(config).values["messages"])
        return _ran(self._mw, list(self._mw.runs)[-1], self._world, logs, history, error, parts)


class LangChainHarness:
    """Runs scripts on `create_agent` agents, in each way that they can be called."""

    modes: tuple[str, ...] = ("invoke", "ainvoke", "stream", "astream") if WHOLE else ("invoke", "astream")
    caps = AdapterCaps()

    def __init__(self, made: Made = middleware) -> None:
        self._made = made

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        world = World(script)
        line = _Line(rb, world, mode, pausing=bool(resume_at), made=self._made)
        with _models(world):
            return [line.run(str(at), resume_at) for at in range(times)]

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        world = World(script)
        _call(world.agent(None), mode, _question(script), {})
        return world.seen

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        world = World(script, forgets=True)
        return _Line(rb, world, mode, made=self._made).run("0", ())

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        world, mw = World(*scripts), middleware(rb)
        agent = mw.watch(world.agent(mw))
        calls = [(_question(script), {"metadata": {"reasonblocks_run_id": script.run_id}}) for script in scripts]

        async def together() -> None:
            await asyncio.gather(*(_acall(agent, mode, *call) for call in calls))

        if mode in ("ainvoke", "astream"):
            asyncio.run(together())
        else:
            with ThreadPoolExecutor(len(scripts)) as pool:
                list(pool.map(lambda call: _call(agent, mode, *call), calls))
        return [_ran(mw, script.run_id, world) for script in scripts]

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        world, mw = World(script), middleware(rb, run_id=script.run_id)
        await world.agent(mw).ainvoke(_question(script))
        return _ran(mw, script.run_id, world)

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        outside, inside = World(outer), World(inner)
        mw = middleware(rb)
        child = inside.agent(mw)
        named = {"metadata": {"reasonblocks_run_id": inner.run_id}}

        @tool
        def delegate(task: str) -> str:
            """Hands a task over."""
            child.invoke(_question(inner), named)
            return "inner is done"

        agent = mw.watch(outside.agent(mw, tools=[delegate]))
        _call(agent, mode, _question(outer), {"metadata": {"reasonblocks_run_id": outer.run_id}})
        return _ran(mw, outer.run_id, outside), _ran(mw, inner.run_id, inside)

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        async def cancelled() -> tuple[SteeringMiddleware, World]:
            world, mw = World(script, hold_at=at), middleware(rb, run_id=script.run_id)
            task = asyncio.ensure_future(mw.watch(world.agent(mw)).ainvoke(_question(script)))
            await world.held.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return mw, world

        mw, world = asyncio.run(cancelled())
        return _ran(mw, script.run_id, world, error=asyncio.CancelledError())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        mw = self._made(rb)
        messages: list[AnyMessage] = [HumanMessage("Look at every file.", id="q")]
        state: Any = {"messages": messages}
        runtime: Any = None
        state |= mw.before_agent(state, runtime) or {}
        model = ScriptedModel(script=lambda messages: "", model_name="agent-model")

        def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse([AIMessage("I look at the next file and note what it says.", id=f"a{len(messages)}")])

        def step(call: int) -> None:
            state.update(mw.before_model(state, runtime) or {})
            response: Any = mw.wrap_model_call(ModelRequest(model=model, messages=messages, state=state), answer)
            state.update(response.command.update)
            messages.extend(response.model_response.result)

        return step


def _ran(
    mw: SteeringMiddleware,
    run_id: str,
    world: World,
    logs: Sequence[Sequence[StepLogEntry]] = (),
    history: tuple[str, ...] = (),
    error: BaseException | None = None,
    parts: int = 1,
) -> Ran:
    run = mw.runs[run_id]
    entries = {entry.step: entry for log in (*logs, run.step_log) for entry in log}
    return Ran(
        run_id=run_id,
        seen=tuple(world.seen),
        log=list(entries.values()),
        final=run.final,
        outcome=run.outcome,
        history=history,
        error=error,
        parent_run_id=run.run.parent_run_id,
        parent_call_id=run.run.parent_call_id,
        parts=parts,
        snapshot=dict(run.trace.snapshot()),
    )


def _error(agent: Any, mode: str, given: Any, config: Any) -> BaseException | None:
    try:
        _call(agent, mode, given, config)
    except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
        return exc
    return None


@contextmanager
def _models(world: World) -> Iterator[None]:
    """Identifiers of models are built as the script's own, by LangChain's own factory's name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("langchain.chat_models.init_chat_model", world.model)
        yield
