"""What the tests of the gateway need around it: the CLI with one tool, what a model says, and steering that speaks."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from reasonblocks import ReasonBlocks
from reasonblocks.types import Usage
from reasonblocks_claude_agent import SteeredClaudeClient, Steering
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Answer, Asked, ScriptedServer

TASK = "Fix the tests."
OWN, STRONG = "claude-sonnet-5-5", "claude-opus-5-5"


@tool("look", "Looks at a file", {"path": str})
async def look(given: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"{given['path']} is empty"}]}


def looks(count: int, reasoning: str = "") -> list[Turn]:
    """So many turns that call `look`, and one that ends."""
    usage = Usage(input=100, output=10)
    turns = [
        Turn(
            text=f"I look at file {at}.",
            reasoning=reasoning,
            usage=usage,
            tool_calls=(tool_call(f"toolu_{at}", "mcp__t__look", {"path": f"f{at}"}),),
        )
        for at in range(count)
    ]
    return [*turns, Turn(text="All seen.", usage=usage)]


def in_turn(turns: Sequence[Turn]) -> Answer:
    """Turn n answers an agent's request whose conversation holds n answers; the CLI's own get a word."""
    return lambda asked: turns[asked.answers] if is_agents(asked) else Turn(text="ok")


def is_agents(asked: Asked) -> bool:
    return bool(asked.body.get("tools")) and asked.stream


def options(server: ScriptedServer, home: Path, **env: str) -> ClaudeAgentOptions:
    """The CLI at home in an empty directory, in front of this server."""
    return ClaudeAgentOptions(
        model=OWN,
        system_prompt="You fix.",
        cwd=home,
        mcp_servers={"t": create_sdk_mcp_server("t", tools=[look])},
        allowed_tools=["mcp__t__look", "Task"],
        agents={"looker": AgentDefinition(description="looks", prompt="You look.", tools=["mcp__t__look"])},
        setting_sources=[],
        env={
            "ANTHROPIC_BASE_URL": server.anthropic_url,
            "ANTHROPIC_API_KEY": "dummy",
            "HOME": str(home),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **env,
        },
    )


async def ran(client: SteeredClaudeClient, prompt: str = TASK) -> ResultMessage:
    """A prompt's result, once everything was read."""
    await client.query(prompt)
    messages: list[Message] = [message async for message in client.receive_response()]
    return next(message for message in messages if isinstance(message, ResultMessage))


def client(rb: ReasonBlocks, given: ClaudeAgentOptions, **more: Any) -> SteeredClaudeClient:
    return SteeredClaudeClient(rb, given, mode="gateway", **more)


def session(
    answer: Answer, home: Path, rb: ReasonBlocks, prompts: Sequence[str] = (TASK,)
) -> tuple[Steering, list[Asked]]:
    """A session that has answered all prompts: what was steered, and the agent's requests."""

    async def work(server: ScriptedServer) -> Steering:
        async with client(rb, options(server, home)) as steered:
            for prompt in prompts:
                await ran(steered, prompt)
        return steered.steering

    with ScriptedServer(answer) as server:
        return asyncio.run(work(server)), of_the_agent(server)


def of_the_agent(server: ScriptedServer) -> list[Asked]:
    return [asked for asked in server.requests if is_agents(asked)]


def guided(requests: Sequence[Asked]) -> list[bool]:
    return ["[REASONBLOCKS]" in json.dumps(asked.body) for asked in requests]


def transcripts(home: Path) -> str:
    return "\n".join(path.read_text() for path in (home / ".claude" / "projects").rglob("*.jsonl"))


def is_scrubbed() -> bool:
    """Whether nothing of this process's environment leads a CLI elsewhere."""
    return os.environ.get("ANTHROPIC_BASE_URL", "http://127.0.0.1").startswith("http://127.0.0.1")
