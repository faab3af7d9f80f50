"""How long hooks of ours may take follows from the step's deadline, and the CLI waits far longer. No CLI is needed."""

from __future__ import annotations

import asyncio

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from reasonblocks_claude_agent import claude_hooks
from reasonblocks_claude_agent._steering import RESULT_SECONDS, ROUTE_SECONDS, THOUGHT_SECONDS
from reasonblocks_claude_agent.hooks import guest, hook_seconds
from tests.claude_agent.world import in_time
from tests.steered import steering

DEADLINES = [1, 800, 5_000, 60_000]
each_deadline = pytest.mark.parametrize("milliseconds", DEADLINES)


@each_deadline
def test_a_hook_has_time_for_all_that_it_waits_for(milliseconds: int) -> None:
    step, most = milliseconds / 1_000, hook_seconds(steering(step_deadline_ms=milliseconds))
    prompt, batch = RESULT_SECONDS + 2 * step, THOUGHT_SECONDS + step + ROUTE_SECONDS
    assert max(prompt, batch) < most


@each_deadline
def test_the_cli_waits_far_longer_than_our_hooks_take(milliseconds: int) -> None:
    rb = steering(step_deadline_ms=milliseconds)
    matchers = [one for ours in (claude_hooks(rb).options.hooks or {}).values() for one in ours]
    assert all(one.timeout and one.timeout >= max(60, 4 * hook_seconds(rb)) for one in matchers)


def test_a_callers_own_hooks_keep_their_timeout() -> None:
    mine = HookMatcher(hooks=[], timeout=7)
    hooks = claude_hooks(steering(), ClaudeAgentOptions(hooks={"Stop": [mine]})).options.hooks or {}
    assert hooks["Stop"][0].timeout == 7


def test_a_hook_that_takes_too_long_answers_nothing() -> None:
    async def never(given: object) -> dict[str, object]:
        await asyncio.Event().wait()
        return {"never": True}

    async def asked() -> object:
        return await guest(steering(), "Stop", never, 0.001)({}, None, {})

    assert in_time(asked()) == {}
