"""Sets up the agents of the tests: the CLI, a provider on loopback, a client and tools."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import claude_agent_sdk
import pytest
from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage, SdkMcpTool

from reasonblocks import ReasonBlocks
from reasonblocks.types import Usage
from reasonblocks_claude_agent import SteeredClaudeClient, Steering
from reasonblocks_claude_agent._client import Mode
from reasonblocks_testing import ScriptedReasonBlocks, Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer
from tests.claude_agent.harness import QUIET, TOLD, answers

TASK = "Fix the failing tests."
PROMPTS = (TASK, "And now the linter.")
PROMPT = "You fix bugs."
ON_CI = os.environ.get("CI") == "true"  # read before the tests' environment is scrubbed
CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
LOOK = "mcp__t__look"
SECONDS = 60
T = TypeVar("T")
Answer: TypeAlias = Callable[[Asked], Turn]
INSIDE = "Look inside."
AGENT: dict[str, Any] = {
    "tools": ["Task"],
    "allowed_tools": ["Task", LOOK],
    "agents": {"inner": AgentDefinition(description="looks", prompt="You look.", tools=[LOOK])},
}


both_modes = pytest.mark.parametrize("mode", ["hooks", "gateway"])


@pytest.fixture
def cli() -> None:
    """The CLI that the SDK's wheel brings. Where it is not, the test is skipped; on CI it fails."""
    if not CLI.exists():
        (pytest.fail if ON_CI else pytest.skip)("the SDK is installed without its CLI")


# ------------------------------------------------------------ what the model says


def look(at: int, *more: int, who: str = "", **options: Any) -> Turn:
    """Calls the tool, once for each number."""
    calls = tuple(tool_call(f"{who}c{one}", LOOK, {"at": one}) for one in (at, *more))
    return Turn(text=f"{who}I look a {at}. time.", tool_calls=calls, usage=Usage(input=100 + at, output=10), **options)


def looks(calls: int, who: str = "") -> tuple[Turn, ...]:
    """Turns that call the tool, and the answer, which calls none."""
    return (*(look(at, who=who) for at in range(calls)), Turn(text=f"{who}It is done.", usage=Usage(input=9, output=1)))


def in_turn(*turns: Turn) -> Answer:
    """The turns, by the number of answers that the conversation holds; then the last one for ever."""
    return lambda asked: turns[min(answers(asked), len(turns) - 1)]


def by_opening(openings: Mapping[str, Answer], otherwise: Answer) -> Answer:
    """Another agent's answer where a word of its own opens the conversation.

    What runs in the background is answered only after the agent that started it was asked again: on a busy machine it
    may otherwise be over before, and the CLI then reports both in one turn.
    """
    asked_again = threading.Event()
    asked_again.set()

    def answer(asked: Asked) -> Turn:
        found = next((one for word, one in openings.items() if word in asked.task), None)
        if found is not None:
            asked_again.wait(SECONDS / 2)
            return found(asked)
        turn = otherwise(asked)
        if starts_in_background(turn):
            asked_again.clear()
        else:
            asked_again.set()
        return turn

    return answer


def starts_in_background(turn: Turn) -> bool:
    """Return True if the turn starts an agent in the background."""
    arguments = [call.arguments for call in turn.tool_calls]
    return any(isinstance(given, dict) and given.get("run_in_background") is True for given in arguments)


# ------------------------------------------------------------ sessions of the CLI


async def give(arguments: Any) -> dict[str, Any]:
    """The tool: it fails at a number below zero."""
    return {"content": [{"type": "text", "text": f"{arguments['at']} is empty"}], "is_error": arguments["at"] < 0}


@dataclass(slots=True)
class Place:
    """A provider, and the options of sessions that ask it."""

    server: ScriptedServer
    tool: Callable[[Any], Any] = give
    env: dict[str, str] = field(default_factory=dict)

    def options(self, **more: Any) -> ClaudeAgentOptions:
        given: dict[str, Any] = {
            "model": "agent-model",
            "system_prompt": PROMPT,
            "tools": [],
            "mcp_servers": {"t": claude_agent_sdk.create_sdk_mcp_server("t", tools=[self._tool])},
            "allowed_tools": [LOOK],
            "setting_sources": [],
            "env": {**QUIET, **self.env, "ANTHROPIC_BASE_URL": self.server.anthropic_url, "ANTHROPIC_API_KEY": "none"},
        }
        return ClaudeAgentOptions(**{**given, **more})

    @property
    def _tool(self) -> SdkMcpTool[Any]:
        schema = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
        return SdkMcpTool(name="look", description="Looks.", input_schema=schema, handler=self.tool)

    def asked(self, word: str = TASK) -> list[Asked]:
        """The requests of the agent whose conversation this opens: the CLI has some of its own."""
        return [asked for asked in self.server.requests if word in asked.task]


@contextmanager
def place(answer: Answer, tool: Callable[[Any], Any] = give) -> Iterator[Place]:
    with ScriptedServer(answer) as server:
        yield Place(server, tool)


@asynccontextmanager
async def session(here: Place, rb: ScriptedReasonBlocks, **options: Any) -> AsyncIterator[SteeredClaudeClient]:
    async with SteeredClaudeClient(rb, here.options(**options), run_id="run") as client:
        yield client


def in_time(work: Coroutine[Any, Any, T]) -> T:
    """What it gives, in a loop of its own; nothing here takes a minute."""

    async def run() -> T:
        return await asyncio.wait_for(work, SECONDS)

    return asyncio.run(run())


async def ask(client: ClaudeSDKClient, prompt: str = TASK) -> list[Message]:
    """All messages up to the result."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def one_run(
    here: Place, rb: ScriptedReasonBlocks, prompts: Sequence[str] = (TASK,), **options: Any
) -> SteeredClaudeClient:
    """The client, when its session has answered all prompts and is closed."""

    async def run() -> SteeredClaudeClient:
        async with session(here, rb, **options) as client:
            for prompt in prompts:
                await ask(client, prompt)
        return client

    return in_time(run())


async def asked_in_turn(client: ClaudeSDKClient, prompts: Sequence[str] = (TASK,)) -> list[list[Message]]:
    """The messages of each prompt, one prompt after the other."""
    return [await ask(client, prompt) for prompt in prompts]


def run_in(here: Place, rb: ReasonBlocks, mode: Mode, prompts: Sequence[str] = (TASK,), **more: Any) -> Steering:
    """The steering of a session that has answered all prompts."""

    async def run() -> Steering:
        async with SteeredClaudeClient(rb, here.options(**more), mode=mode, run_id="run") as client:
            await asked_in_turn(client, prompts)
        return client.steering

    return in_time(run())


@asynccontextmanager
async def hooked(steering: Steering, passed_on: bool) -> AsyncIterator[ClaudeSDKClient]:
    """The SDK's own client with our hooks; its messages are passed on, or nobody reads them for us."""

    class Passing(ClaudeSDKClient):
        async def receive_messages(self) -> AsyncIterator[Message]:
            async for message in super().receive_messages():
                if passed_on:
                    await steering.saw(message)
                yield message

    async with Passing(steering.options) as client:
        yield client


def outcomes(steering: Steering) -> dict[str, str | None]:
    return {run_id: view.outcome for run_id, view in steering.runs.items()}


# ------------------------------------------------------------ what was said


async def everything(messages: AsyncIterator[T]) -> list[T]:
    return [message async for message in messages]


async def first_of(messages: AsyncIterator[T]) -> T:
    return await messages.__anext__()


def result_in(messages: Sequence[Message]) -> ResultMessage:
    (result,) = (message for message in messages if isinstance(message, ResultMessage))
    return result


def told(asked: Asked) -> list[str]:
    """Every guidance in a request, in order."""
    return [TOLD.sub(r"\1", text) for text in asked.texts if "[REASONBLOCKS]" in text]
