"""Reads messages of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterable

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import anthropic, first_text
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON, Usage

from ._conversation import Item, StepList, dialect_of, read_conversations
from ._files import Record
from ._run import Runs


class AnthropicMessages:
    """Reads a list of messages as one run: each message of the assistant is a step, with the results of its calls.

    The list is a file or a line of its own, or the value of `messages` in an object with the keys of a `Header`. Its
    messages may be answers as the API returns them, with their `usage`. A file with one message a line is one run, too.
    """

    name = "anthropic"
    title = "Anthropic messages"

    def sniff(self, value: JSON) -> bool:
        return dialect_of(value) == self.name

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_conversations(file, records, _steps)


def _steps(messages: Iterable[Item]) -> StepList:
    found = StepList()
    for message in messages:
        blocks = anthropic.blocks_of(message)
        if message.get("role") == "assistant":
            found.begin(anthropic.answer_of(blocks), _usage(message))
            found.known(model=first_text(message, "model") or "")
        elif message.get("role") == "user":
            results = [block for block in blocks if anthropic.kind(block) == "tool_result"]
            for block in results:
                found.add(anthropic.result_of(block))
            if not results or found.users.task:  # a text beside a result is no task
                found.users.add(text_of([block for block in blocks if not _is_reminder(block)]))
    return found


REMINDER = "<system-reminder>"
"""The beginning of the texts that Claude Code adds to its user's messages."""


def _is_reminder(block: Item) -> bool:
    return str(block.get("text") or "").lstrip().startswith(REMINDER)


def _usage(message: Item) -> Usage:
    usage = message.get("usage")
    return anthropic.usage_of(usage if isinstance(usage, dict) else None)
