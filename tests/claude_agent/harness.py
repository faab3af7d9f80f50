"""The conformance suite's way into sessions of the real CLI, against a model provider on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    SdkMcpTool,
    TextBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
)

from reasonblocks import ReasonBlocks
from reasonblocks.types import JSON, AdapterCaps, StepLogEntry, ToolResult
from reasonblocks_claude_agent import SteeredClaudeClient, claude_hooks
from reasonblocks_claude_agent._client import Mode
from reasonblocks_claude_agent._sessions import AgentRun
from reasonblocks_claude_agent._steering import HOOKS_CAPS
from reasonblocks_claude_agent.gateway import GATEWAY_CAPS
from reasonblocks_testing import Ran, Script, Seen, Turn
from reasonblocks_testing.server import Asked, ProviderError, ScriptedServer
from tests.whole import WHOLE

AT_ONCE = 32 if WHOLE else 8
"""How many CLIs that scenario takes: each has 230 MB and half a core."""
OF_THE_CLI = ("No response requested.", "API Error")
"""How answers begin that an older CLI puts itself into the transcript of a session that was left."""
SERVER = "tools"
INNER_TASK = "Look at the file."
PREFIX = f"mcp__{SERVER}__"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "ENABLE_TOOL_SEARCH": "false",  # else the CLI adds words of its own to the errors of tools
    "MAX_MCP_OUTPUT_TOKENS": "10000000",
}
AFTER = r"(?:\n\n(?:Today's date is |You are powered by the model |<total_tokens>)[^\n]*)*"
TOLD = re.compile(rf"\A.*?hook additional context: (.*?)(?:\n</system-reminder>)?{AFTER}\Z", re.DOTALL)
"""A hook's text as the CLI puts it into a request, with what it says before and after it."""


class Tools:
    """Give back what a script says for their calls, in the order of the calls."""

    def __init__(self, *scripts: Script) -> None:
        self._waiting: dict[str, deque[ToolResult]] = {}
        for turn in (turn for script in scripts for turn in script.turns):
            results = {result.call_id: result for result in turn.results}
            for call in turn.tool_calls:
                self._waiting.setdefault(call.name, deque()).append(results[call.id])

    @property
    def names(self) -> list[str]:
        return [f"{PREFIX}{name}" for name in self._waiting]

    @property
    def server(self) -> Any:
        return create_sdk_mcp_server(SERVER, tools=[self._tool(name) for name in self._waiting])

    def _tool(self, name: str) -> SdkMcpTool[Any]:
        async def give(arguments: Any) -> dict[str, Any]:
            result = self._waiting[name].popleft()
            return {"content": [{"type": "text", "text": result.output}], "is_error": bool(result.is_error)}

        anything = {"type": "object", "properties": {}, "additionalProperties": True}
        return SdkMcpTool(name=name, description="scripted", input_schema=anything, handler=give)


def in_cli_words(script: Script) -> Script:
    """The script of a model that knows the tools by the CLI's names for them."""
    turns = (
        replace(turn, tool_calls=tuple(replace(call, name=f"{PREFIX}{call.name}") for call in turn.tool_calls))
        for turn in script.turns
    )
    return replace(script, turns=tuple(turns))


def of_the_agent(server: ScriptedServer, script: Script) -> list[Asked]:
    """The requests of a script's agent: the CLI has some of its own, to see whether a model is there."""
    return [asked for asked in server.requests if script.task in asked.opening]


def seen_in(asked: Asked) -> Seen:
    """What is new in a request: what the CLI was told before stands in all that follow."""
    new: list[tuple[str, str]] = []
    for message in reversed(asked.body["messages"]):
        if message["role"] == "assistant":
            if is_said(message["content"]):
                break
            continue
        new[:0] = list(_said(message["content"], message["role"]))
    texts, roles = tuple(TOLD.sub(r"\1", text) for _, text in new), tuple(role for role, _ in new)
    return Seen(model=asked.model, system=asked.system, texts=texts, roles=roles, raw=raw(asked))


def raw(asked: Asked) -> str:
    """The whole request. Two sessions of the CLI that do the same differ in their ids alone."""
    return json.dumps(asked.body).replace(asked.headers["x-claude-code-session-id"], "<session>")


def _said(content: Any, role: str) -> Iterator[tuple[str, str]]:
    """Each text, after its role."""
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "tool_result":
            yield from _said(block.get("content") or "", "tool")
        elif block["type"] == "text":
            yield role, block["text"]


def answers(asked: Asked) -> int:
    """What the model has answered before, in a session that was resumed."""
    said = (message["content"] for message in asked.body["messages"] if message["role"] == "assistant")
    return sum(map(is_said, said))


def is_said(content: Any) -> bool:
    """Whether an answer is the model's: an older CLI writes one of its own into a session that was left."""
    _, text = next(_said(content, "assistant"), ("", ""))
    return not text.startswith(OF_THE_CLI)


class Leaving:
    """A model that is out of reach while a session is left: the CLI asks it once more, whatever its hooks say."""

    def __init__(self, script: Script) -> None:
        self.now = False
        self.unheard: list[Asked] = []
        self._script = script

    def answer(self, asked: Asked) -> Turn:
        if self.now:
            self.unheard.append(asked)
            raise ProviderError("nobody is here", status=400)  # which the CLI does not ask again
        return self._script.turns[answers(asked)]


def options_of(script: Script, server: ScriptedServer, tools: Tools, **more: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        model=script.model,
        system_prompt=script.system_prompt,
        tools=[],
        mcp_servers={SERVER: tools.server},
        allowed_tools=tools.names,
        setting_sources=[],
        include_partial_messages=True,  # else nobody says how many tokens were written
        env={**QUIET, "ANTHROPIC_BASE_URL": server.anthropic_url, "ANTHROPIC_API_KEY": "none"},
        **more,
    )


@dataclass(slots=True)
class Session:
    """One script in one session of the CLI."""

    rb: ReasonBlocks
    script: Script
    server: ScriptedServer
    mode: Mode = "hooks"
    run_id: str | None = None
    resume_at: Sequence[int] = ()
    leaving: Leaving | None = None
    logs: list[StepLogEntry] = field(default_factory=list)
    client: SteeredClaudeClient | None = None
    parts: int = 1

    async def to_its_end(self) -> Ran:
        """All of it; before the calls of `resume_at` the CLI is left, and another one goes on with its session."""
        tools, snapshots, session_id, prompt = Tools(self.script), dict[str, Any](), None, self.script.task
        for done, call in zip((0, *self.resume_at), (*self.resume_at, None)):
            stop = _Stop(call, done)
            options = options_of(self.script, self.server, tools, resume=session_id, hooks=stop.hooks)
            self.client = SteeredClaudeClient(
                self.rb,
                options,
                snapshots=snapshots,
                mode=self.mode,
                run_id=self.run_id,
                agent_name=self.script.agent_name,
            )
            async with self.client as client:
                await client.query(prompt)
                await stop.or_end(client, self.leaving)
                self.parts += stop.reached
                session_id = stop.session_id
                self.logs += client.steering.step_log
            if self.leaving is not None:
                self.leaving.now = False
            snapshots, prompt = json.loads(json.dumps(snapshots)), "Go on."
        return self.ran()

    def ran(self, error: BaseException | None = None) -> Ran:
        assert self.client is not None
        unheard = self.leaving.unheard if self.leaving else []
        requests = [
            asked for asked in of_the_agent(self.server, self.script) if not any(asked is one for one in unheard)
        ]
        return replace(ran(self.client.steering._runs.newest, requests, self.logs, error), parts=self.parts)


class _Stop:
    """Leaves a session when the tools before a call are done: a hook of ours holds the CLI there."""

    def __init__(self, call: int | None, done: int) -> None:
        self._call = call
        self._at = done
        """Calls that are answered."""
        self._reached = asyncio.Event()
        self.session_id: str | None = None
        self.hooks: Any = {
            "UserPromptSubmit": [HookMatcher(hooks=[self._prompted])],
            "PostToolBatch": [HookMatcher(hooks=[self._batch])],
        }

    @property
    def reached(self) -> bool:
        return self._reached.is_set()

    async def _prompted(self, given: Any, tool_use_id: Any, context: Any) -> Any:
        self.session_id = given["session_id"]
        return {}

    async def _batch(self, given: Any, tool_use_id: Any, context: Any) -> Any:
        """Ours has decided the call when the session is left: what the CLI waits for never comes."""
        self._at += 1
        if self._at == self._call:
            self._reached.set()
            await asyncio.Event().wait()
        return {}

    async def or_end(self, client: SteeredClaudeClient, leaving: Leaving | None) -> None:
        reading = asyncio.ensure_future(_read(client))
        reached = asyncio.ensure_future(self._reached.wait())
        done, waiting = await asyncio.wait((reading, reached), return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if reading in done:
            reading.result()
        elif leaving is not None:
            leaving.now = True
            while (client.steering.trace.state.calls) <= (self._call or 0):
                await asyncio.sleep(0)  # our own hook runs beside the one that holds the CLI


async def _read(client: ClaudeSDKClient) -> None:
    async for _ in client.receive_response():
        pass


def ran(
    run: AgentRun | None,
    requests: Sequence[Asked],
    logs: Sequence[StepLogEntry] = (),
    error: BaseException | None = None,
) -> Ran:
    assert run is not None
    return Ran(
        run_id=run.run_id,
        seen=tuple(map(seen_in, requests)),
        log=list({entry.step: entry for entry in (*logs, *run.session.step_log)}.values()),
        final=run.session.final,
        outcome=run.session.outcome,
        error=error,
        parent_run_id=run.session.run.parent_run_id,
        parent_call_id=run.session.run.parent_call_id,
        snapshot=dict(run.session.trace.snapshot()),
    )


class ClaudeHarness:
    """Runs scripts in sessions of the CLI that the SDK brings."""

    def __init__(self, mode: Mode = "hooks") -> None:
        self.mode: Mode = mode
        self.modes: tuple[str, ...] = (mode,)
        self.caps: AdapterCaps = HOOKS_CAPS if mode == "hooks" else GATEWAY_CAPS

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        ids = (script.run_id, *(f"{script.run_id}.{at}" for at in range(2, times + 1)))
        return [self._run(rb, script, mode, run_id, resume_at) for run_id in ids]

    def _run(self, rb: ReasonBlocks, script: Script, mode: str, run_id: str, resume_at: Sequence[int]) -> Ran:
        leaving = Leaving(in_cli_words(script))
        with ScriptedServer(leaving.answer if resume_at else in_cli_words(script)) as server:
            session = Session(rb, script, server, self.mode, run_id, resume_at, leaving)
            return asyncio.run(session.to_its_end())

    def run_unsteered(self, script: Script, mode: str) -> list[Seen]:
        async def alone(server: ScriptedServer) -> None:
            async with ClaudeSDKClient(options_of(script, server, Tools(script))) as client:
                await client.query(script.task)
                await _read(client)

        with ScriptedServer(in_cli_words(script)) as server:
            asyncio.run(alone(server))
            return [seen_in(asked) for asked in of_the_agent(server, script)]

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        raise NotImplementedError("the CLI keeps the history")

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        async def together(server: ScriptedServer) -> list[Ran]:
            sessions = [Session(rb, script, server, self.mode, script.run_id) for script in scripts]
            return await asyncio.gather(*(session.to_its_end() for session in sessions))

        with ScriptedServer([in_cli_words(script) for script in scripts]) as server:
            return asyncio.run(together(server))

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        with ScriptedServer(in_cli_words(script)) as server:
            return await Session(rb, script, server, self.mode, script.run_id).to_its_end()

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        """The agent's tool is another agent of the CLI's, in the foreground."""
        asked_for: JSON = {
            "description": "look",
            "prompt": INNER_TASK,
            "subagent_type": "inner",
            "run_in_background": False,
        }
        calls = tuple(replace(call, name="Task", arguments=asked_for) for call in outer.turns[0].tool_calls)
        outer = replace(outer, turns=(replace(outer.turns[0], tool_calls=calls, results=()), *outer.turns[1:]))
        inner_words = in_cli_words(inner)

        def answer(asked: Asked) -> Turn:
            return (inner_words if INNER_TASK in asked.opening else outer).turns[asked.answers]

        async def nested(server: ScriptedServer) -> tuple[Ran, Ran]:
            session, tools = Session(rb, outer, server, self.mode, outer.run_id), Tools(inner)
            agent = AgentDefinition(description="looks", prompt="You look.", tools=tools.names)
            options = replace(
                options_of(outer, server, tools, agents={"inner": agent}),
                tools=["Task"],
                allowed_tools=["Task", *tools.names],
            )
            async with SteeredClaudeClient(rb, options, mode=session.mode, run_id=outer.run_id) as client:
                await client.query(outer.task)
                await _read(client)
                steering = client.steering
            requests = [asked for asked in server.requests if INNER_TASK in asked.opening]
            session.client = client
            return session.ran(), ran(steering._session.children.newest, requests)

        with ScriptedServer(answer) as server:
            return asyncio.run(nested(server))

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        steering = claude_hooks(rb, ClaudeAgentOptions(model="agent-model"))
        calls, loop = steering.callbacks, asyncio.new_event_loop()
        session = {"session_id": "s"}

        async def one(call: int) -> None:
            if not call:
                await calls["UserPromptSubmit"]({**session, "prompt": "Look at every file."}, None, {})
            used = ToolUseBlock(id=f"c{call}", name=f"{PREFIX}read", input={"file": call})
            text = TextBlock(text="I look at the next file and note what it says.")
            await steering.saw(AssistantMessage(content=[text, used], model="agent-model", message_id=f"m{call}"))
            done = {"tool_name": used.name, "tool_input": used.input, "tool_use_id": used.id, "tool_response": "ok"}
            await calls["PostToolUse"]({**session, **done}, used.id, {})
            await calls["PostToolBatch"]({**session, "tool_calls": [done]}, None, {})

        def step(call: int) -> None:
            loop.run_until_complete(one(call))

        weakref.finalize(step, loop.close)
        return step

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        async def cancelled() -> Ran:
            loop, held, let_go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

            def answer(asked: Asked) -> Turn:
                if asked.answers == at and script.task in asked.opening:
                    loop.call_soon_threadsafe(held.set)
                    let_go.wait(60)
                    raise ProviderError("nobody is here", status=400)
                return in_cli_words(script).turns[asked.answers]

            with ScriptedServer(answer) as server:
                session = Session(rb, script, server, self.mode, script.run_id)
                task = asyncio.ensure_future(session.to_its_end())
                await held.wait()
                task.cancel()
                for _ in range(10):  # then nobody reads what the CLI says; the SDK waits 5 s for one that waits itself
                    await asyncio.sleep(0)
                let_go.set()
                (error,) = await asyncio.gather(task, return_exceptions=True)
                assert isinstance(error, asyncio.CancelledError)
                return session.ran(error)

        return asyncio.run(cancelled())
