"""Hangs hooks of ours into a caller's options, after his own; each answers in time, whatever becomes of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from reasonblocks._client import ReasonBlocks

from ._convert import HookOutput

HOOK_SECONDS = 2.0
"""What a hook of ours may take beside the steps that it judges: to wait for messages, and to switch the model."""
STEPS_OF_A_HOOK = 2
"""A prompt's hook judges the last step of the run before, if its result is late, and decides the first of its own."""
MATCHER_SECONDS = 60.0
"""The CLI's own patience with a hook: it ends a session, or blocks a prompt, whose hook takes longer."""
TIMES_OURS = 4
"""So many times our own time the CLI waits at least."""
Input = Mapping[str, Any]
Work = Callable[[Input], Awaitable[HookOutput]]
Callback = Callable[[Any, Any, Any], Awaitable[Any]]
"""`HookCallback` of the SDK, whose inputs are one union of all events."""


def hook_seconds(rb: ReasonBlocks) -> float:
    """The most that a hook of ours may take."""
    return HOOK_SECONDS + STEPS_OF_A_HOOK * rb.step_deadline_seconds


def guest(rb: ReasonBlocks, event: str, work: Work, most: float) -> Callback:
    """The hook that does this work, in so many seconds. Any fault or delay of ours is an empty answer."""

    async def callback(given: Any, tool_use_id: Any, hook_context: Any) -> HookOutput:
        with rb.guard(f"the hook {event}"):
            try:
                return await asyncio.wait_for(work(given), most)
            except (asyncio.TimeoutError, TimeoutError):
                return {}
        return {}

    return callback


def merged(rb: ReasonBlocks, options: ClaudeAgentOptions, ours: Mapping[str, Callback]) -> dict[Any, list[HookMatcher]]:
    """The caller's hooks, and after them ours, for which the CLI waits far longer than they take."""
    hooks: dict[Any, list[HookMatcher]] = {}
    hooks.update(options.hooks or {})
    timeout = max(MATCHER_SECONDS, TIMES_OURS * hook_seconds(rb))
    for event, callback in ours.items():
        hooks[event] = [*hooks.get(event, ()), HookMatcher(hooks=[callback], timeout=timeout)]
    return hooks
