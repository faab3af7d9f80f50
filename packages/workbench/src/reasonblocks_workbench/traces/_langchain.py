"""Reads LangChain messages as `messages_to_dict` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, Field

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import langchain
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON, Step

from ._conversation import UserTexts
from ._files import Record
from ._messages import decode_output
from ._run import Header, RecordedRun, Runs, messages_of, run_by_run, with_messages


class _Call(BaseModel):
    id: str | None = None
    name: str | None = None
    args: Any = Field(default_factory=dict)  # an object; text where the model's JSON was invalid


class _InputDetails(BaseModel, extra="allow"):
    cache_read: int | None = None
    cache_creation: int | None = None


class _OutputDetails(BaseModel):
    reasoning: int | None = None


class _Tokens(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: _InputDetails | None = None
    output_token_details: _OutputDetails | None = None


class MessageData(BaseModel):
    """The fields of a message that are read, whatever its type."""

    content: str | list[str | dict[str, Any]] = ""
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
    data: MessageData


class _Run(Header):
    messages: list[_Message]


class LangChainMessages:
    """Reads a list of messages as one run, even with several human messages; its task is the first of them.

    The list is a file or a line of its own, or the value of `messages` in an object with the keys of a `Header`.
    """

    name = "langchain"
    title = "LangChain messages (messages_to_dict)"

    def sniff(self, value: JSON) -> bool:
        first = _first(value)
        return isinstance(first.get("type"), str) and isinstance(first.get("data"), dict)

    def lacks(self, value: JSON) -> str | None:
        first = _first(value)
        return "no 'data' in the messages" if str(first.get("type")) in _TYPES and "data" not in first else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return run_by_run(file, records, _run)


_TYPES = langchain.ANSWERS | langchain.RESULTS | langchain.HUMANS | {"system"}


def _first(value: JSON) -> Mapping[str, JSON]:
    """Return the first message, {} without one."""
    first = next(iter(messages_of(value) or ()), None)
    return first if isinstance(first, dict) else {}


def _run(file: str, record: Record) -> RecordedRun | RecordError:
    run = _Run.model_validate(with_messages(record.value))
    exchanges = _exchanges(run.messages)
    steps = tuple(map(_step, exchanges))
    usages = tuple(langchain.usage_of(exchange.answer) for exchange in exchanges)
    known = {"task": run.task or _task(run.messages), "model": run.model or _model(run.messages)}
    return run.model_copy(update=known).recorded(file, record.line, steps, usages)


@dataclass(slots=True)
class _Exchange:
    """A message of the model and the results of its calls; built while the list is read."""

    answer: MessageData
    user_text: str
    results: list[MessageData] = field(default_factory=list)


def _step(exchange: _Exchange) -> Step:
    step = langchain.answer_of(exchange.answer, exchange.results)
    return replace(step, tool_results=tuple(map(decode_output, step.tool_results)), user_text=exchange.user_text)


def _exchanges(messages: list[_Message]) -> list[_Exchange]:
    """Return one exchange per message of the model. A result joins the newest that made its call, else the last one."""
    exchanges: list[_Exchange] = []
    callers: dict[str, _Exchange] = {}
    users = UserTexts()
    for message in messages:
        data = message.data
        if message.type in langchain.ANSWERS:
            exchanges.append(_Exchange(data, users.before_answer()))
            callers.update(dict.fromkeys(langchain.call_ids_of(data), exchanges[-1]))
        elif message.type in langchain.RESULTS and exchanges:
            callers.get(data.tool_call_id or "", exchanges[-1]).results.append(data)
        elif message.type in langchain.HUMANS and not langchain.is_made(data):
            users.add(text_of(data.content))
    return exchanges


def _task(messages: list[_Message]) -> str:
    contents = (message.data.content for message in messages if message.type in langchain.HUMANS)
    return text_of(next(contents, ""))


def _model(messages: list[_Message]) -> str:
    """Return the first model that a message names."""
    return next(filter(None, (langchain.model_of(message.data) for message in messages)), "")
