"""Stores what only the message stream reports: each agent's newest answer, and the results of its tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from claude_agent_sdk import (
    AssistantMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    ToolResultBlock,
    UserMessage,
)

from reasonblocks.adapters import Newest
from reasonblocks.messages.claude_code import result_of
from reasonblocks.types import Step, ToolResult

from .convert import answer_of

MAX_RESULTS = 1_024
MAX_AGENTS = 256
MAIN = None
"""The owner of the main agent's messages; a subagent's is the call that started it."""


@dataclass(slots=True)
class Answer:
    """One model answer: a message for each content block, all with one id."""

    message_id: str | None
    messages: list[AssistantMessage] = field(default_factory=list)
    output_tokens: int | None = None

    @property
    def step(self) -> Step:
        return answer_of(self.messages)

    @property
    def call_ids(self) -> set[str]:
        return {call.id for call in self.step.tool_calls}


class Stream:
    """The reports of one session's messages. Belongs to the session's event loop."""

    def __init__(self) -> None:
        self._answers: Newest[str | None, Answer] = Newest(MAX_AGENTS)
        self._results: Newest[str, ToolResult] = Newest(MAX_RESULTS)
        self._started: Newest[str, str] = Newest(MAX_AGENTS)
        self._changed = asyncio.Event()
        self.is_read = False
        """True if anybody passes the session's messages on."""
        self._is_partial = False
        """True if partial messages are reported, which have an answer's output tokens."""
        self.background: frozenset[str] = frozenset()
        """The tasks that run beside the session's turns, by id."""
        self._unreported: set[str] = set()
        """Finished tasks whose end the CLI has yet to report in a prompt of its own."""

    def saw(self, message: object) -> None:
        self.is_read = True
        if isinstance(message, AssistantMessage):
            self._saw_answer(message)
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    self.tells(result_of(block))
        elif isinstance(message, TaskStartedMessage) and message.tool_use_id:
            self._started.keep(message.task_id, message.tool_use_id)
        elif isinstance(message, TaskNotificationMessage):
            self._task_ended(message)
        elif isinstance(message, SystemMessage) and message.subtype == "background_tasks_changed":
            self.background = frozenset(str(task.get("task_id")) for task in message.data.get("tasks") or ())
        elif isinstance(message, StreamEvent):
            self._saw_event(message)
        self._changed.set()

    def tells(self, result: ToolResult) -> None:
        """Merge a tool's result into what is known of it: the stream has the text, a hook the time."""
        before = self._results.get(result.call_id)
        if before is not None:
            result = ToolResult(
                call_id=result.call_id,
                name=result.name or before.name,
                output=result.output or before.output,
                is_error=result.is_error or before.is_error,
                duration_ms=result.duration_ms or before.duration_ms,
            )
        self._results.keep(result.call_id, result)

    @property
    def results(self) -> dict[str, ToolResult]:
        return dict(self._results)

    @property
    def to_come(self) -> frozenset[str]:
        """Return the tasks whose end the agent has not been told of."""
        return self.background | self._unreported

    def prompted(self, task_id: str) -> None:
        """Note that a prompt of the CLI has reported the end of this task."""
        self._unreported.discard(task_id)

    def newest(self, owner: str | None) -> Answer | None:
        return self._answers.get(owner)

    def caller_of(self, agent_id: str) -> str | None:
        """Return the tool call that started a subagent."""
        return self._started.get(agent_id)

    def with_calls(self, call_ids: Collection[str]) -> Answer | None:
        """Return the answer that made all of these calls."""
        return next((answer for answer in self._answers.values() if answer.call_ids >= set(call_ids)), None)

    async def wait_for(self, call_ids: Collection[str], seconds: float) -> Answer | None:
        """Return the answer that made these calls, which may still be on its way; None after `seconds`."""
        return await self._wait(lambda: self.with_calls(call_ids), seconds)

    async def wait_for_last(self, before: Answer | None, seconds: float) -> Answer | None:
        """Return the main agent's answer after `before`, once it is complete or `seconds` have passed, if it is there.

        It is the last of its turn, so its text completes it, or its number of tokens if partial messages report that.
        """

        def complete() -> Answer | None:
            answer = self._after(before)
            if answer is None or not answer.step.thought:
                return None
            return answer if answer.output_tokens is not None or not self._is_partial else None

        return await self._wait(complete, seconds) or self._after(before)

    def _after(self, before: Answer | None) -> Answer | None:
        answer = self.newest(MAIN)
        return None if answer is before else answer

    async def _wait(self, find: Callable[[], Answer | None], seconds: float) -> Answer | None:
        """Return what `find` finds after a message at the latest; None after `seconds`."""
        ends = asyncio.get_running_loop().time() + seconds
        while (found := find()) is None:
            left = ends - asyncio.get_running_loop().time()
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except (asyncio.TimeoutError, TimeoutError):
                return find()
        return found

    def _saw_answer(self, message: AssistantMessage) -> None:
        owner = message.parent_tool_use_id
        answer = self._answers.get(owner)
        if answer is None or answer.message_id != message.message_id or message.message_id is None:
            tokens = answer.output_tokens if answer and answer.message_id is None and not answer.messages else None
            answer = self._answers.keep(owner, Answer(message.message_id, output_tokens=tokens))
        answer.messages.append(message)

    def _task_ended(self, message: TaskNotificationMessage) -> None:
        """Note a task whose end the CLI will report to the agent: a background task that was not stopped."""
        if message.task_id in self.background and message.status != "stopped":
            self._unreported.add(message.task_id)

    def _saw_event(self, message: StreamEvent) -> None:
        """Keep the number of output tokens, which only partial messages report."""
        self._is_partial = True
        usage = message.event.get("usage") if message.event.get("type") == "message_delta" else None
        answer = self._answers.get(message.parent_tool_use_id)
        if answer is not None and isinstance(usage, dict) and isinstance(usage.get("output_tokens"), int):
            answer.output_tokens = usage["output_tokens"]
