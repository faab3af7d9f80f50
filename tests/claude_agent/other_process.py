"""A part of a session in a process of its own: `python -m tests.claude_agent.other_process FILE URL PART`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from claude_agent_sdk import HookMatcher

from reasonblocks_claude_agent import SteeredClaudeClient
from reasonblocks_testing.server import ScriptedServer
from tests.claude_agent.world import TASK, Place, ask
from tests.steered import steering

STOPS_BEFORE = 3
"""The call at which the first part is left."""


async def first(here: Place, snapshots: dict[str, Any]) -> SteeredClaudeClient:
    """Until a hook holds the CLI, which is left there."""
    reached, batches = asyncio.Event(), []

    async def hold(given: Any, tool_use_id: Any, hook_context: Any) -> Any:
        batches.append(given)
        if len(batches) == STOPS_BEFORE:
            reached.set()
            await asyncio.Event().wait()
        return {}

    options = here.options(hooks={"PostToolBatch": [HookMatcher(hooks=[hold])]})
    async with SteeredClaudeClient(steering(), options, snapshots=snapshots, run_id="run") as client:
        await client.query(TASK)
        await reached.wait()
        while client.steering.trace.state.calls <= STOPS_BEFORE:
            await asyncio.sleep(0)
    return client


async def rest(here: Place, snapshots: dict[str, Any]) -> SteeredClaudeClient:
    options = here.options(resume=next(iter(snapshots)))
    async with SteeredClaudeClient(steering(), options, snapshots=snapshots, run_id="run") as client:
        await ask(client, "Go on.")
    return client


def main(file: Path, url: str, part: str) -> None:
    snapshots = json.loads(file.read_text()) if file.exists() else {}
    here = Place(cast(ScriptedServer, SimpleNamespace(anthropic_url=url)))  # the server is another process's
    client = asyncio.run((first if part == "first" else rest)(here, snapshots))
    file.write_text(json.dumps(snapshots))
    view = client.steering.runs["run"]
    log = [[entry.step, entry.gate_decision, list(entry.intervention_texts)] for entry in view.step_log]
    print(json.dumps({"outcome": view.outcome, "log": log}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
