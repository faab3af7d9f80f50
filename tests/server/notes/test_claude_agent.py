"""A note that a person posts to a real server is told to a live session of the Claude Agent SDK's CLI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.notes.world import SAID, Operator, carrying

pytest.importorskip("claude_agent_sdk", reason="needs the Claude Agent SDK")


@pytest.fixture(autouse=True)
def _scrubbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from tests.claude_agent.environment import scrubbed_environment

    with scrubbed_environment(tmp_path_factory.mktemp("home")):
        yield


def test_a_live_session_is_told_once(operator: Operator) -> None:
    """Through hooks, the note is in the session's transcript: each later request has it there, once."""
    from reasonblocks_claude_agent import SteeredClaudeClient
    from tests.claude_agent.world import CLI, ask, in_time, in_turn, looks, place

    if not CLI.exists():
        pytest.skip("the SDK is installed without its CLI")
    run_id, told, rb = "claude", [], operator.rb()

    async def look(arguments: Any) -> dict[str, Any]:
        if arguments["at"] == 1:
            told.append(await asyncio.to_thread(operator.say, run_id))
        return {"content": [{"type": "text", "text": f"{arguments['at']} is empty"}]}

    async def session(here: Any) -> SteeredClaudeClient:
        async with SteeredClaudeClient(rb, here.options(), run_id=run_id) as client:
            await ask(client)
        return client

    with place(in_turn(*looks(4)), look) as here:
        client = in_time(session(here))
        requests = [json.dumps(asked.body) for asked in here.asked()]
    rb.close()
    assert carrying(requests) == [0, 0, 1, 1, 1]
    assert SAID in requests[2]
    (note_id,) = told
    operator.check_told(run_id, note_id, client.steering.step_log, 2)
