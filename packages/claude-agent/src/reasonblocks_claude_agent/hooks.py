"""Hooks of ours in a caller's options, after his own, and how a decision reaches the model through their answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import Newest
from reasonblocks.types import StepDecision, StepOutcome

from .convert import HookOutput, context

HOOK_SECONDS = 2.0
"""Time of a hook beside the steps that it judges: to wait for messages, and to switch the model."""
STEPS_OF_A_HOOK = 2
"""A prompt's hook judges the last step of the run before, if its result is late, and decides the first of its own."""
MATCHER_SECONDS = 60.0
"""The CLI's usual time-out of a hook: it ends a session, or blocks a prompt, whose hook takes longer."""
TIMES_OURS = 4
"""The CLI waits for at least so many times our own limit."""
Input = Mapping[str, Any]
Work = Callable[[Input], Awaitable[HookOutput]]
Callback = Callable[[Any, Any, Any], Awaitable[Any]]
"""`HookCallback` of the SDK, whose inputs are one union of all events."""
MAX_AGENTS = 256
TAIL = 262_144
"""Bytes that are read from the end of a transcript, where the text for the newest request is."""


def hook_seconds(rb: ReasonBlocks) -> float:
    """Return the time limit of a hook of ours."""
    return HOOK_SECONDS + STEPS_OF_A_HOOK * rb.step_deadline_seconds


def guest(rb: ReasonBlocks, event: str, work: Work, most: float) -> Callback:
    """Return a hook that calls `work` for at most this many seconds. A fault or delay of ours gives an empty answer."""

    async def callback(given: Any, tool_use_id: Any, hook_context: Any) -> HookOutput:
        with rb.guard(f"the hook {event}"):
            try:
                return await asyncio.wait_for(work(given), most)
            except (asyncio.TimeoutError, TimeoutError):
                return {}
        return {}

    return callback


def merged(rb: ReasonBlocks, options: ClaudeAgentOptions, ours: Mapping[str, Callback]) -> dict[Any, list[HookMatcher]]:
    """Return the caller's hooks and, after them, ours: the CLI waits for those far longer than they take."""
    hooks: dict[Any, list[HookMatcher]] = {}
    hooks.update(options.hooks or {})
    timeout = max(MATCHER_SECONDS, TIMES_OURS * hook_seconds(rb))
    for event, callback in ours.items():
        hooks[event] = [*hooks.get(event, ()), HookMatcher(hooks=[callback], timeout=timeout)]
    return hooks


class Delivery(Protocol):
    """Delivers decisions to the model."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        """Return the answer of this event's hook, which was called with `given`. None: no request is expected."""

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        """Return the outcome with what was measured of the request on its way."""

    def refusal(self, decision: StepDecision) -> int:
        """Return the status of `REFUSALS` with which the provider refused the decision's request; 0 otherwise."""


def ends_with(transcript: object, text: str) -> bool:
    """Return True if the text is at the end of the CLI's transcript."""
    encoded = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    with suppress(OSError), open(str(transcript or ""), "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        return bool(text) and encoded in file.read()
    return False


class HookDelivery:
    """Delivers guidance in hook answers. Their text stays in the CLI's transcript; hooks see nothing of requests."""

    def __init__(self) -> None:
        self._newest: Newest[str, int] = Newest(MAX_AGENTS)
        """The newest call of each agent that has its guidance: the transcript has it."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        agent_id = str(given.get("agent_id") or "")
        if decision is None or (decision.replayed and self._is_in_transcript(agent_id, given, decision)):
            return {}
        self._newest.keep(agent_id, decision.step)
        return context(event, decision)

    def _is_in_transcript(self, agent_id: str, given: Mapping[str, Any], decision: StepDecision) -> bool:
        """Return True if the transcript, of this session or of the resumed one, has the guidance."""
        sent = self._newest.get(agent_id) == decision.step
        return sent or ends_with(given.get("transcript_path"), decision.guidance)

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        return outcome

    def refusal(self, decision: StepDecision) -> int:
        return 0
