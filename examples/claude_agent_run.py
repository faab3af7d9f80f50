"""A session of the Claude Agent SDK whose agent repeats a failing test run and gets guidance.

`python examples/claude_agent_run.py` runs it on the CLI that the SDK brings, against a scripted provider, offline. It
needs `reasonblocks-claude-agent` and `reasonblocks-testing`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SdkMcpTool, create_sdk_mcp_server
from loop_agent import DESCRIPTIONS, PARAMETERS, SCRIPT, SYSTEM_PROMPT, TASK, TOOLS

from reasonblocks import ReasonBlocks
from reasonblocks_claude_agent import SteeredClaudeClient
from reasonblocks_testing import Script
from reasonblocks_testing.server import ScriptedServer

PREFIX = "mcp__repository__"
"""The CLI, and so the model, puts this before the names of the tools of the server `repository`."""
KEPT = frozenset({"PATH", "LANG", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR"})


def as_tool(name: str, work: Callable[..., str]) -> SdkMcpTool[Any]:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": work(**arguments)}]}

    return SdkMcpTool(name=name, description=DESCRIPTIONS[name], input_schema=dict(PARAMETERS[name]), handler=run)


OPTIONS = ClaudeAgentOptions(
    model="claude-sonnet-5-5",
    system_prompt=SYSTEM_PROMPT,
    tools=[],
    mcp_servers={"repository": create_sdk_mcp_server("repository", tools=[*map(as_tool, TOOLS, TOOLS.values())])},
    allowed_tools=[f"{PREFIX}{name}" for name in TOOLS],
    setting_sources=[],
    include_partial_messages=True,  # gives the step log its token counts
)


async def main() -> None:
    rb = ReasonBlocks()
    answer: str | None = None
    with (
        ScriptedServer(in_cli_words(SCRIPT)) as server,
        offline(server) as options,
    ):  # with a real provider, leave out both
        async with SteeredClaudeClient(rb, options) as client:  # in place of ClaudeSDKClient(options)
            await client.query(TASK)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    answer = message.result

    (run,) = client.steering.runs.values()
    for entry in run.step_log:
        print(f"call {entry.step}: {entry.fsm_state}")
        for text in entry.intervention_texts:
            print(textwrap.indent(text, "  | "))
        print(f"  -> {', '.join(entry.tool_calls) or answer}")
    print(f"{run.outcome}: {len(run.step_log)} calls")


# --- offline


def in_cli_words(script: Script) -> Script:
    """Return the script with the CLI's names of the tools."""
    turns = (
        replace(turn, tool_calls=tuple(replace(call, name=f"{PREFIX}{call.name}") for call in turn.tool_calls))
        for turn in script.turns
    )
    return replace(script, turns=tuple(turns))


@contextmanager
def offline(server: ScriptedServer) -> Iterator[ClaudeAgentOptions]:
    """Yield options for a session with this server and a temporary home folder.

    The SDK passes the whole environment of its process to the CLI, so your keys are removed from it meanwhile.
    """
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ.clear()
        os.environ.update({name: value for name, value in before.items() if name.upper() in KEPT})
        env = {
            "HOME": home,
            "USERPROFILE": home,
            "CLAUDE_CONFIG_DIR": home,
            "ANTHROPIC_BASE_URL": server.anthropic_url,
            "ANTHROPIC_API_KEY": "not needed",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        try:
            yield replace(OPTIONS, env=env, cwd=home)
        finally:
            os.environ.clear()
            os.environ.update(before)


if __name__ == "__main__":
    asyncio.run(main())
