"""Codebase memory in sessions of the real CLI: one session notes something, and the next one reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeSDKClient, McpServerConfig

pytest.importorskip("detect_secrets")

from reasonblocks.memory import CodebaseMemory
from reasonblocks.types import ToolCall
from reasonblocks_claude_agent import memory_server
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked
from tests.claude_agent.world import TASK, Place, ask, cli, in_time, in_turn, place
from tests.whole import in_whole

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
NOTE = "The integration tests need the flag --with-redis"
STORE, RECALL, FORGET = (f"mcp__reasonblocks__memory_{name}" for name in ("store", "recall", "forget"))


def calls(*made: ToolCall) -> Any:
    """The script of a model that makes these calls in one turn, and then ends."""
    return in_turn(Turn(text="I look into the memory.", tool_calls=made), Turn(text="It is done."))


def session(here: Place, server: McpServerConfig) -> list[Asked]:
    """Run one session with the tools of the server; return the agent's requests."""
    allowed = [STORE, RECALL, FORGET]
    options = here.options(mcp_servers={"reasonblocks": server}, allowed_tools=allowed)

    async def run() -> None:
        async with ClaudeSDKClient(options) as client:
            await ask(client)

    in_time(run())
    return here.asked(TASK)


def recalled_in_the_second_session(server: McpServerConfig) -> Sequence[str]:
    """Store in one session and recall in another; return the texts of the last request."""
    with place(calls(tool_call("s", STORE, {"content": NOTE, "finding_type": "command"}))) as here:
        session(here, server)
    with place(calls(tool_call("r", RECALL, {"query": "how do I run the integration tests"}))) as here:
        return session(here, server)[-1].texts


@pytest.fixture
def memory(tmp_path: Path) -> CodebaseMemory:
    return CodebaseMemory("acme/search", store=tmp_path / "patterns.db", root=tmp_path)


def test_a_note_reaches_the_model_in_the_next_session(memory: CodebaseMemory) -> None:
    with memory:
        texts = recalled_in_the_second_session(memory_server(memory))
    assert [text for text in texts if f"    {NOTE}" in text.splitlines()] != []


@in_whole
def test_a_model_reads_why_a_call_failed(memory: CodebaseMemory) -> None:
    with (
        memory,
        place(calls(tool_call("r", RECALL, {"top_k": 5}), tool_call("f", FORGET, {"finding_id": "x"}))) as here,
    ):
        texts = session(here, memory_server(memory))[-1].texts
    assert [text for text in texts if "'query' is a required property" in text] != []
    assert [text for text in texts if "There is no note x" in text] != []


@in_whole
def test_the_cli_runs_our_server_as_a_process(memory: CodebaseMemory, tmp_path: Path) -> None:
    pytest.importorskip("mcp_types", reason="needs mcp 2")
    arguments = ["-m", "reasonblocks", "memory", "serve", "acme/search", "--store", str(tmp_path / "patterns.db")]
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    texts = recalled_in_the_second_session({"type": "stdio", "command": sys.executable, "args": arguments, "env": env})
    assert [text for text in texts if f"    {NOTE}" in text.splitlines()] != []
    with memory:
        assert [finding.content for finding in memory.list_all()] == [NOTE]
