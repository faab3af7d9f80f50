"""What the CLI makes of guidance: in the very next request, kept in its transcript once, never in the system prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from claude_agent_sdk import ToolResultBlock, UserMessage

from tests.claude_agent.world import ask, cli, in_time, in_turn, looks, one_run, place, session
from tests.claude_agent.world import told as told_in
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
RULE_SAID = "[REASONBLOCKS]\n- Check before you say that it is done."
STEP_0_SAID = "[REASONBLOCKS]\nStep 0 looked again. Read what it said."
STEP_3_SAID = "[REASONBLOCKS]\nStep 3 looked again. Read what it said."


def test_guidance_is_in_the_very_next_request_and_stays_once() -> None:
    with place(in_turn(*looks(5))) as here:
        one_run(here, steering())
        assert [told_in(asked) for asked in here.asked()] == [
            [RULE_SAID],
            *[[RULE_SAID, STEP_0_SAID]] * 3,
            *[[RULE_SAID, STEP_0_SAID, STEP_3_SAID]] * 2,
        ]


def test_nothing_of_ours_is_in_the_system_prompt() -> None:
    with place(in_turn(*looks(2))) as here:
        one_run(here, steering())
        assert not any("REASONBLOCKS" in json.dumps(asked.body.get("system")) for asked in here.server.requests)


def test_the_transcript_has_each_guidance_once(scrubbed: Path) -> None:
    with place(in_turn(*looks(3))) as here:
        (session_id,) = {run.run.session_id for run in one_run(here, steering()).steering.runs.values()}
    (file,) = (scrubbed / ".claude" / "projects").rglob(f"{session_id}.jsonl")
    told = [
        line
        for line in file.read_text().splitlines()
        if json.loads(line)["type"] == "attachment" and "REASONBLOCKS" in line
    ]
    assert [("Check before" in line, "Step 0" in line) for line in told] == [(True, False), (False, True)]


def test_a_tool_that_the_user_denies_is_a_result_and_the_run_goes_on() -> None:
    with place(in_turn(*looks(1))) as here:

        async def run() -> tuple[list[bool | None], list[str | None]]:
            async with session(here, steering(), allowed_tools=[], disallowed_tools=[], permission_mode="dontAsk") as c:
                messages = await ask(c)
                blocks = [b for m in messages if isinstance(m, UserMessage) for b in m.content]
                errors = [b.is_error for b in blocks if isinstance(b, ToolResultBlock)]
                return errors, [view.outcome for view in c.steering.runs.values()]

        assert in_time(run()) == ([True], ["success"])
        assert [len(told_in(asked)) for asked in here.asked()] == [1, 2]
