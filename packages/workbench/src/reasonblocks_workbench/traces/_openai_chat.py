"""Reads messages of the OpenAI Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_text, openai_chat
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON

from ._conversation import Item, StepList, dialect_of, read_conversations
from ._files import Record
from ._run import Runs


class OpenAIChat:
    """Reads a list of messages as one run: each message of the assistant is a step, with the results of its calls.

    The list is a file or a line of its own, or the value of `messages` in an object with the keys of a `Header`, as in
    files for fine-tuning. It may hold answers as the API returns them (`choices`, `usage`) in place of their messages.
    A file with one message or answer a line is one run, too.
    """

    name = "openai-chat"
    title = "OpenAI chat messages"

    def sniff(self, value: JSON) -> bool:
        return dialect_of(value) == self.name

    def lacks(self, value: JSON) -> str | None:
        single = isinstance(value, dict) and isinstance(value.get("role"), str) and dialect_of(value) is None
        return "single messages without a tool's call or result" if single else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_conversations(file, records, _steps)


def _steps(messages: Iterable[Item]) -> StepList:
    found = StepList()
    for given in messages:
        message = _message_of(given)
        role = message.get("role")
        if role == "assistant":
            usage = given.get("usage") or message.get("usage")
            found.begin(openai_chat.answer_of(message), openai_chat.usage_of(usage))
            found.known(model=first_text(given, "model") or "")
        elif isinstance(role, str) and role in openai_chat.RESULTS:
            found.add(openai_chat.result_of(message, {}))
        elif role == "user":
            found.users.add(text_of(message.get("content")))
    return found


def _message_of(given: Item) -> Mapping[str, Any]:
    """Return a message, or that of an answer's first choice; {} if the answer has none."""
    if "choices" not in given:
        return given
    choices = given["choices"]
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return {"role": "assistant", **message} if isinstance(message, dict) else {}
