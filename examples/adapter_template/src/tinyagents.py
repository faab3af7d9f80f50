"""A framework of one class, so that the template runs as it stands. Replace it with yours, and delete this file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    role: Literal["user", "assistant", "tool"]
    text: str
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    failed: bool | None = None
    tokens: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    model: str
    instructions: str | None
    messages: Sequence[Message]


@dataclass(eq=False)
class Run:
    """One execution. `messages` and `state` are saved when a run pauses, and loaded when it resumes."""

    id: str
    messages: list[Message]
    state: dict[str, Any] = field(default_factory=dict)
    waits: bool = False


Ask = Callable[[Request], Awaitable[Message]]
Tool = Callable[[Call], Awaitable[Message]]


class Hooks:
    """Hooks of a caller. One object serves all runs of an agent."""

    async def run_starts(self, agent: Agent, run: Run) -> None: ...

    async def run_ends(self, agent: Agent, run: Run, error: BaseException | None) -> None: ...

    async def around_call(self, agent: Agent, run: Run, request: Request, ask: Ask) -> Message:
        return await ask(request)

    async def around_tool(self, agent: Agent, run: Run, call: Call, tool: Tool) -> Message:
        return await tool(call)

    async def goes_on(self, agent: Agent, run: Run) -> bool:
        """Return True if the agent shall call its model again after an answer without tool calls."""
        return False


@dataclass
class Agent:
    """Calls its model and its tools in turn, until an answer has no tool call. `ask` serves every model by its name."""

    ask: Ask
    model: str
    tools: Mapping[str, Tool]
    instructions: str | None = None
    name: str = "agent"
    hooks: Hooks = field(default_factory=Hooks)
    attempts: int = 1
    waits_before: Callable[[Run], bool] = lambda run: False
    shortened: Callable[[Sequence[Message]], Sequence[Message]] = tuple
    """Selects the messages of a history that the model gets."""

    async def stream(self, run: Run) -> AsyncIterator[Message]:
        run.waits = False
        await self.hooks.run_starts(self, run)
        try:
            going = True
            while going:
                answer = await self._answer(run)
                run.messages.append(answer)
                yield answer
                for call in answer.calls:
                    result = await self.hooks.around_tool(self, run, call, self.tools[call.name])
                    run.messages.append(result)
                    yield result
                run.waits = bool(answer.calls) and self.waits_before(run)
                going = not run.waits and (bool(answer.calls) or await self.hooks.goes_on(self, run))
        except (Exception, asyncio.CancelledError) as exc:
            await self.hooks.run_ends(self, run, exc)
            raise
        await self.hooks.run_ends(self, run, None)

    async def run(self, run: Run) -> Run:
        async for _ in self.stream(run):
            pass
        return run

    def run_sync(self, run: Run) -> Run:
        return asyncio.run(self.run(run))

    async def _answer(self, run: Run) -> Message:
        request = Request(self.model, self.instructions, self.shortened(run.messages))
        for _ in range(self.attempts - 1):
            try:
                return await self.hooks.around_call(self, run, request, self.ask)
            except ConnectionError:
                continue
        return await self.hooks.around_call(self, run, request, self.ask)
