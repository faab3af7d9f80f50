"""Our `query` is a session of its own, here one that is played back. No CLI is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from claude_agent_sdk import ResultMessage

from reasonblocks_claude_agent import query
from tests.claude_agent.replay import Replay, turn
from tests.claude_agent.world import TASK, everything, first_of, in_time
from tests.steered import steering


async def _prompts(*prompts: str) -> AsyncIterator[dict[str, Any]]:
    for prompt in prompts:
        yield {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}


@pytest.mark.parametrize("streamed", [True, False])
def test_query_gives_the_messages_of_a_steered_session(streamed: bool) -> None:
    cli = Replay(turn(1))

    async def asked() -> list[Any]:
        return await everything(query(steering(), prompt=_prompts(TASK) if streamed else TASK, transport=cli))

    messages = in_time(asked())
    assert (cli.prompts, isinstance(messages[-1], ResultMessage)) == ([TASK], True)
    assert [event for event, _ in cli.told] == ["UserPromptSubmit", "PostToolBatch"]


def test_a_query_that_is_not_read_to_its_end_leaves_no_task_behind() -> None:
    async def left() -> set[Any]:
        before = asyncio.all_tasks()
        messages = query(steering(), prompt=TASK, transport=Replay(turn(1)))
        await first_of(messages)
        await messages.aclose()  # type: ignore[attr-defined]  # it is a generator
        return asyncio.all_tasks() - before

    assert in_time(left()) == set()
