"""A chat model that says what a script tells it, and remembers every request that it got."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

Turn: TypeAlias = "str | AIMessage | BaseException"
Script: TypeAlias = "Callable[[Sequence[BaseMessage]], Turn]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as the model got it."""

    messages: tuple[BaseMessage, ...]
    tools: tuple[str, ...]

    @property
    def system(self) -> Any:
        """The content of the system message, None without one."""
        first = self.messages[0]
        return first.content if isinstance(first, SystemMessage) else None

    @property
    def text(self) -> str:
        """Everything that it read, in one text."""
        return "\n".join(message.text for message in self.messages)


def by_position(*turns: Turn) -> Script:
    """Turn k answers a conversation of k answers, so that many runs may share one model."""

    def script(messages: Sequence[BaseMessage]) -> Turn:
        return turns[sum(isinstance(message, AIMessage) for message in messages)]

    return script


def in_order(*turns: Turn) -> Script:
    """Turn k answers call k, whatever was asked; the last one again and again."""
    left, lock = list(turns), threading.Lock()

    def script(_: Sequence[BaseMessage]) -> Turn:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return script


def calls(tool: str, thought: str = "", *, id: str = "", **arguments: Any) -> AIMessage:
    """A turn that calls one tool."""
    call_id = id or f"{tool}-{abs(hash((thought, tuple(arguments.items()))))}"
    return AIMessage(content=thought, tool_calls=[{"name": tool, "args": arguments, "id": call_id}])


class ScriptedModel(BaseChatModel):
    """Real in all that LangChain asks of a chat model: tools, streaming, async."""

    script: Script = Field(exclude=True)
    model_name: str = "scripted-1"
    provider: str = "scripted"
    usage: bool = True
    _seen: list[Seen] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[Seen]:
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(ls_provider=self.provider, ls_model_name=self.model_name, ls_model_type="chat")

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        names = tuple(tool["name"] if isinstance(tool, dict) else tool.name for tool in tools)
        return self.bind(tool_names=names, tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        said = self._say(messages, kwargs)
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._say(messages, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._say(messages, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Turn:
        """Return the answer to a request; `kwargs` are its keywords besides the messages."""
        return self.script(messages)

    def _say(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        copies = tuple(message.model_copy(deep=True) for message in messages)
        self._seen.append(Seen(messages=copies, tools=tuple(kwargs.get("tool_names", ()))))
        turn = self._turn(messages, kwargs)
        if isinstance(turn, BaseException):
            raise turn
        said = AIMessage(content=turn) if isinstance(turn, str) else turn.model_copy(deep=True)
        said.response_metadata = {"model_name": self.model_name, **said.response_metadata}
        if self.usage and said.usage_metadata is None:
            usage: Any = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
            said.usage_metadata = usage
        return said


def _chunks(said: AIMessage) -> Iterator[ChatGenerationChunk]:
    """A word at a time, the calls and the usage with the last one."""
    words = said.content.split(" ") if isinstance(said.content, str) else []
    for word in words[:-1]:
        yield ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
    last = words[-1] if words else said.content
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content=last,
            tool_call_chunks=[_call_chunk(call, at) for at, call in enumerate(said.tool_calls)],
            usage_metadata=said.usage_metadata,
            response_metadata=said.response_metadata,
            additional_kwargs=said.additional_kwargs,
        )
    )


def _call_chunk(call: Any, at: int) -> ToolCallChunk:
    return tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=at)
