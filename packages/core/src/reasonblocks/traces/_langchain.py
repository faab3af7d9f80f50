"""LangChain messages as `messages_to_dict` writes them, read without LangChain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..exceptions import RecordError
from ..types import JSON, Step, ToolCall, ToolResult, Usage
from ._files import Record
from ._run import Header, RecordedRun, reason

_Content: TypeAlias = "str | list[str | dict[str, Any]]"


class _Call(BaseModel):
    id: str | None = None
    name: str | None = None
    args: Any = Field(default_factory=dict)  # an object; text where the model's JSON was invalid


class _InputDetails(BaseModel):
    cache_read: int | None = None
    cache_creation: int | None = None


class _OutputDetails(BaseModel):
    reasoning: int | None = None


class _Tokens(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: _InputDetails | None = None
    output_token_details: _OutputDetails | None = None


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: _Content = ""
    name: str | None = None
    tool_calls: list[_Call] = []
    invalid_tool_calls: list[_Call] = []
    tool_call_id: str | None = None
    status: str | None = None
    usage_metadata: _Tokens | None = None
    response_metadata: dict[str, Any] = {}
    additional_kwargs: dict[str, Any] = {}


class _Message(BaseModel):
    type: str
    data: _Data


class _Run(Header):
    messages: list[_Message]


_messages = TypeAdapter(list[_Message])


class LangChainMessages:
    """A list of messages is one run, also with several human turns; its task is the first human message.

    The list stands alone, in a file or on a line, or under the key `messages` beside what our own format says of a run.
    """

    name = "LangChain messages (messages_to_dict)"

    def sniff(self, value: JSON) -> bool:
        messages = value.get("messages") if isinstance(value, dict) else value
        first = messages[0] if isinstance(messages, list) and messages else None
        return isinstance(first, dict) and isinstance(first.get("type"), str) and isinstance(first.get("data"), dict)

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Iterator[RecordedRun | RecordError]:
        for record in records:
            yield record if isinstance(record, RecordError) else _run(file, record)


def _run(file: str, record: Record) -> RecordedRun | RecordError:
    try:
        run = _Run.model_validate(_with_header(record.value))
    except ValidationError as error:
        return RecordError(file, record.line, reason(error))
    turns = _turns(run.messages)
    known = run.model_copy(update={"task": run.task or _task(run.messages), "model": run.model or _model(run.messages)})
    return known.recorded(file, record.line, tuple(map(_step, turns)), tuple(_usage(turn.said) for turn in turns))


def _with_header(value: JSON) -> JSON:
    return {"messages": value} if isinstance(value, list) else value


@dataclass(slots=True)
class _Turn:
    """A message of the model and what its calls gave back; built while the list is read."""

    said: _Data
    calls: tuple[ToolCall, ...]
    results: list[ToolResult] = field(default_factory=list)


def _turns(messages: list[_Message]) -> list[_Turn]:
    """One turn a message of the model. A result goes to the newest turn that made its call, or else to the last."""
    turns: list[_Turn] = []
    made: dict[str, tuple[_Turn, ToolCall]] = {}
    for message in messages:
        if message.type in ("ai", "AIMessageChunk"):
            turns.append(_Turn(message.data, _calls(message.data)))
            made.update({call.id: (turns[-1], call) for call in turns[-1].calls})
        elif message.type in ("tool", "ToolMessageChunk", "function") and turns:
            turn, call = made.get(message.data.tool_call_id or "", (turns[-1], None))
            turn.results.append(_result(message.data, call))
    return turns


def _calls(said: _Data) -> tuple[ToolCall, ...]:
    good = [ToolCall(id=call.id or "", name=call.name or "", arguments=call.args) for call in said.tool_calls]
    bad = [
        ToolCall(id=call.id or "", name=call.name or "", arguments={"input": call.args})
        for call in said.invalid_tool_calls
    ]
    return (*good, *bad)


def _result(data: _Data, call: ToolCall | None) -> ToolResult:
    return ToolResult(
        call_id=data.tool_call_id or "",
        name=data.name or (call.name if call else ""),
        output=_text(data.content),
        # "success" is what every result starts with, also that of a tool which returns its error as text
        is_error=True if data.status == "error" else None,
    )


def _step(turn: _Turn) -> Step:
    return Step(
        thought=_text(turn.said.content),
        reasoning=_reasoning(turn.said),
        tool_calls=turn.calls,
        tool_results=tuple(turn.results),
    )


def _text(content: _Content) -> str:
    """The visible text, the blocks one below the other. Images and the like have none."""
    if isinstance(content, str):
        return content
    return "\n".join(text for text in map(_block_text, content) if text)


def _block_text(block: str | dict[str, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") in ("text", "output_text") else block.get("refusal")
    return text if isinstance(text, str) else ""


def _reasoning(said: _Data) -> str:
    """From content blocks, or from beside the content, where some providers put it."""
    blocks = [block for block in said.content if isinstance(block, dict)]
    texts = [text for text in map(_block_reasoning, blocks) if text]
    return "\n".join(texts) or _reasoning_beside(said.additional_kwargs)


def _block_reasoning(block: dict[str, Any]) -> str:
    text = block.get("thinking") or block.get("reasoning") or block.get("reasoning_content")
    if isinstance(text, dict):  # Bedrock
        text = text.get("text")
    return text if isinstance(text, str) else _summary(block.get("summary"))


def _reasoning_beside(extra: dict[str, Any]) -> str:
    apart, nested = extra.get("reasoning_content"), extra.get("reasoning")
    if isinstance(apart, str):
        return apart
    return _summary(nested.get("summary")) if isinstance(nested, dict) else ""


def _summary(parts: object) -> str:
    """OpenAI's form: a list of summary texts."""
    found = parts if isinstance(parts, list) else []
    return "\n".join(str(part["text"]) for part in found if isinstance(part, dict) and part.get("text"))


def _usage(said: _Data) -> Usage:
    tokens = said.usage_metadata
    if tokens is None:
        return Usage()
    read, written = tokens.input_token_details, tokens.output_token_details
    return Usage(
        input=tokens.input_tokens,
        output=tokens.output_tokens,
        cache_read=read.cache_read if read else None,
        cache_write=read.cache_creation if read else None,
        reasoning=written.reasoning if written else None,
    )


def _task(messages: list[_Message]) -> str:
    return next((_text(message.data.content) for message in messages if message.type.lower().startswith("human")), "")


def _model(messages: list[_Message]) -> str:
    """The model that the first message of one says it came from."""
    for message in messages:
        said = message.data.response_metadata
        name = said.get("model_name") or said.get("model")
        if isinstance(name, str):
            return name
    return ""
