"""Reads items of the OpenAI Responses API, such as those of the Agents SDK's `to_input_list()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_text, openai
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON, Usage

from ._conversation import Item, StepList, dialect_of, read_conversations
from ._files import Record
from ._run import Runs


class OpenAIResponses:
    """Reads a list of items as one run: the model's items between two inputs are a step, with the results of its calls.

    The list is a file or a line of its own, or the value of `messages` or `input` in an object with the keys of a
    `Header`. It may hold answers as the API returns them (`output`, `usage`) in place of their items: each is a step. A
    file with one item or answer a line is one run, too.
    """

    name = "openai-responses"
    title = "OpenAI Responses items (to_input_list)"

    def sniff(self, value: JSON) -> bool:
        return dialect_of(value) == self.name

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_conversations(file, records, steps_of)


def steps_of(items: Iterable[Item]) -> StepList:
    found = StepList()
    for part in _parts(items):
        if isinstance(part, list):
            found.begin(openai.answer_of(part), Usage())
        elif isinstance(part.get("output"), list) and not openai.is_output(part) and not openai.is_call(part):
            found.begin(openai.answer_of(part["output"]), openai.usage_of(part.get("usage")))
            found.known(model=first_text(part, "model") or "")
        elif openai.is_output(part):
            found.add(openai.result_of(part))
        elif part.get("role") == "user":
            found.users.add(text_of(part.get("content")))
    return found


def _parts(items: Iterable[Item]) -> Iterator[Item | list[Item]]:
    """Yield the items in order, those of one answer as a list. Items that are neither do not divide an answer."""
    answer: list[Item] = []
    for item in items:
        if openai.is_message(item) or openai.is_call(item) or openai.kind(item) == "reasoning":
            answer.append(item)
        elif openai.is_output(item) or "role" in item or isinstance(item.get("output"), list):
            if answer:
                yield answer
            answer = []
            yield item
    if answer:
        yield answer
