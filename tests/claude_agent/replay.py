"""Plays the CLI's side of a session, line by line as the CLI speaks, where no CLI is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from claude_agent_sdk import Transport

Line: TypeAlias = dict[str, Any]
SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The CLI asks the hooks of an event, and goes on when all of them have answered."""

    event: str
    given: Line = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """The CLI waits here for something that a test lets happen."""

    event: asyncio.Event


Move: TypeAlias = "Line | Hook | Until"


class Replay(Transport):
    """Each prompt plays the next turn. `answers` are what hooks said, by event; `models` are those that were set."""

    def __init__(self, *turns: Sequence[Move]) -> None:
        self.prompts: list[str] = []
        self.answers: list[tuple[str, Any]] = []
        self.models: list[str | None] = []
        self.interrupted = False
        self._turns = list(turns)
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._hooks: dict[str, list[str]] = {}
        self._playing: set[asyncio.Task[None]] = set()

    @property
    def told(self) -> list[tuple[str, str]]:
        """The guidance, by the event whose hook gave it."""
        said = ((event, answer.get("hookSpecificOutput", {})) for event, answer in self.answers)
        return [(event, one["additionalContext"]) for event, one in said if "additionalContext" in one]

    async def connect(self) -> None:
        self._lines = asyncio.Queue()

    async def write(self, data: str) -> None:
        line = json.loads(data)
        if line["type"] == "control_request":
            self._lines.put_nowait(self._answered(line["request_id"], self._control(line["request"])))
        elif line["type"] == "control_response":
            response = line["response"]
            self._asked.pop(response["request_id"]).set_result(response.get("response", response))
        elif line["type"] == "user":
            self.prompts.append(line["message"]["content"])
            task = asyncio.ensure_future(self._play(self._turns.pop(0)))
            self._playing.add(task)
            task.add_done_callback(self._playing.discard)

    def _control(self, request: Line) -> Line:
        if request["subtype"] == "initialize":
            hung = (request.get("hooks") or {}).items()
            self._hooks = {event: [one for m in ms for one in m["hookCallbackIds"]] for event, ms in hung}
        elif request["subtype"] == "set_model":
            self.models.append(request["model"])
        elif request["subtype"] == "interrupt":
            self.interrupted = True
        return {}

    async def _play(self, turn: Sequence[Move]) -> None:
        for move in turn:
            if isinstance(move, Hook):
                said = await asyncio.gather(*(self._ask(one, move) for one in self._hooks.get(move.event, ())))
                self.answers += [(move.event, answer) for answer in said]
            elif isinstance(move, Until):
                await move.event.wait()
            else:
                self._lines.put_nowait(move)

    async def _ask(self, callback: str, hook: Hook) -> Any:
        request_id = f"ask{len(self.answers)}-{callback}-{len(self._asked)}"
        given = {"hook_event_name": hook.event, "session_id": SESSION, "cwd": "/", **hook.given}
        request = {"subtype": "hook_callback", "callback_id": callback, "input": given, "tool_use_id": None}
        self._asked[request_id] = asyncio.get_running_loop().create_future()
        self._lines.put_nowait({"type": "control_request", "request_id": request_id, "request": request})
        return await self._asked[request_id]

    @staticmethod
    def _answered(request_id: str, response: Line) -> Line:
        said = {"subtype": "success", "request_id": request_id, "response": response}
        return {"type": "control_response", "response": said}

    async def read_messages(self) -> AsyncIterator[Line]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def end_input(self) -> None:
        self._lines.put_nowait(None)

    async def close(self) -> None:
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)
        self._lines.put_nowait(None)

    def is_ready(self) -> bool:
        return True


# ------------------------------------------------------------ what the CLI says


def init(model: str = "agent-model") -> Line:
    return {"type": "system", "subtype": "init", "session_id": SESSION, "model": model}


def answer(message_id: str, *blocks: Line, owner: str | None = None, model: str = "agent-model") -> Iterator[Line]:
    """A model's answer: a message a block."""
    for block in blocks:
        message = {"id": message_id, "role": "assistant", "model": model, "content": [block]}
        usage = {"input_tokens": 100, "output_tokens": 1}
        yield {
            "type": "assistant",
            "message": {**message, "usage": usage},
            "parent_tool_use_id": owner,
            "session_id": SESSION,
        }


def text(said: str) -> Line:
    return {"type": "text", "text": said}


def call(at: int, who: str = "") -> Line:
    return {"type": "tool_use", "id": f"{who}c{at}", "name": "mcp__t__look", "input": {"at": at}}


def looked(at: int, who: str = "", owner: str | None = None, agent: Line | None = None) -> list[Move]:
    """The model calls the tool, and it gives back what it found."""
    used, told = call(at, who), agent or {}
    done = {"tool_name": used["name"], "tool_input": used["input"], "tool_use_id": used["id"], **told}
    result = {"type": "tool_result", "tool_use_id": used["id"], "content": f"{at} is empty"}
    return [
        *answer(f"{who}m{at}", text(f"{who}I look a {at}. time."), used, owner=owner),
        Hook(event="PostToolUse", given={**done, "tool_response": f"{at} is empty", "duration_ms": 3}),
        {"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": owner},
        Hook(event="PostToolBatch", given={"tool_calls": [{**done, "tool_response": f"{at} is empty"}], **told}),
    ]


def prompted(prompt: str = "Fix the failing tests.") -> list[Move]:
    return [Hook(event="UserPromptSubmit", given={"prompt": prompt}), init()]


def done(said: str = "It is done.") -> list[Move]:
    """The last answer, which calls no tool, and the result."""
    stop = Hook(event="Stop", given={"last_assistant_message": said, "stop_hook_active": False})
    return [*answer(f"last {said}", text(said)), stop, result()]


def result(subtype: str = "success", is_error: bool = False, **more: Any) -> Line:
    counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
    return {"type": "result", "subtype": subtype, "is_error": is_error, "session_id": SESSION, **counts, **more}


def interrupted(where: str = "aborted_tools") -> Line:
    """The result of a turn that its user cut short."""
    return result("error_during_execution", is_error=True, terminal_reason=where)


def turn(looks: int = 2, prompt: str = "Fix the failing tests.", who: str = "") -> list[Move]:
    """A whole run: it looks so many times."""
    return [*prompted(prompt), *(move for at in range(looks) for move in looked(at, who)), *done(f"{who}It is done.")]
