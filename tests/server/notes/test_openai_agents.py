"""A note that a person posts to a real server is told to a live agent of the OpenAI Agents SDK, in one request."""

from __future__ import annotations

import json

import pytest

from reasonblocks import ReasonBlocks
from tests.server.notes.world import SAID, Operator, carrying

pytest.importorskip("agents", reason="needs the OpenAI Agents SDK")


@pytest.mark.parametrize("way", ["run/responses", "run_streamed/chat"])
def test_a_live_agent_is_told_once(operator: Operator, way: str) -> None:
    from agents import function_tool

    from reasonblocks_openai_agents import steering_of
    from tests.openai_agents.world import fixer, in_turn, looks, place

    run_id, told = f"openai-{way.replace('/', '-')}", []

    @function_tool
    def look(path: str) -> str:
        """Looks at a file; the operator writes while the agent looks at the second one."""
        if path == "f1":
            told.append(operator.say(run_id))
        return f"{path} is empty"

    rb: ReasonBlocks = operator.rb()
    with place(in_turn(*looks(5)), way) as here:
        result = here.run(rb, fixer(tools=[look]), run_id=run_id)
        requests = [json.dumps(asked.body) for asked in here.requests]
    rb.close()
    assert carrying(requests) == [0, 0, 1, 0, 0, 0]
    assert SAID in requests[2]
    assert SAID not in json.dumps(result.to_input_list()), "the note stays out of the history"
    (note_id,) = told
    operator.check_told(run_id, note_id, steering_of(result).step_log, 2)
