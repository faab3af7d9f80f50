"""Recognises the dialect of a list of messages, and collects its steps. Shared by the readers of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from reasonblocks.adapters import user_text
from reasonblocks.exceptions import RecordError
from reasonblocks.messages.content import KINDS, TEXTS, UNTYPED
from reasonblocks.types import JSON, Step, ToolResult, Usage

from ._files import Record
from ._messages import decode_output
from ._run import MESSAGE_KEYS, Header, RecordedRun, Runs, messages_of, reason, with_messages

Item: TypeAlias = "Mapping[str, Any]"
"""A message, an item of a conversation, or an answer as its API returns it."""
Dialect: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "ai-sdk", "bedrock"]

# --- the dialect

FOREIGN = frozenset(
    "steps event run_type resourceSpans schema_version sessionId trajectory_format payload parentId".split()
)
"""Keys of other formats' records, which may hold messages, too."""
CHAT_FIELDS = ("tool_calls", "function_call", "refusal", "reasoning_content")
CHAT_ROLES = ("tool", "function")
RESPONSES_TYPES = frozenset({"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "compaction"})
PARTS: Mapping[str, Dialect] = {
    **dict.fromkeys(("image_url", "input_audio", "file"), "openai-chat"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "openai-responses"),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"), "anthropic"),
    **dict.fromkeys(("image", "document", "web_search_tool_result"), "anthropic"),
    **dict.fromkeys(("tool-call", "tool-result"), "ai-sdk"),
}
"""The types of content parts that only one dialect has."""
BEDROCK = frozenset({"toolUse", "toolResult", "reasoningContent"})
"""Keys of parts without a type that only Bedrock's Converse has."""


def dialect_of(value: JSON) -> Dialect | None:
    """Return the dialect of a record of messages, or of a record that is a message or an answer; None for any other.

    The first message that only one dialect has decides. A list of messages that any of them could have is a chat. A
    single message that any of them could have is none: a later record decides.
    """
    if isinstance(value, dict) and FOREIGN.intersection(value):
        return None
    items = messages_of(value)
    if items is None:
        return _evidence(value)
    found: Dialect | None = next(filter(None, map(_evidence, items)), None)
    if found is None and any(map(_is_message, items)):
        return "openai-chat"
    return found


def _is_message(item: JSON) -> bool:
    return isinstance(item, dict) and isinstance(item.get("role"), str) and "content" in item


def _evidence(item: JSON) -> Dialect | None:
    """Return the only dialect that has this message or answer; None if several may have it, or none."""
    if not isinstance(item, dict):
        return None
    choices = item.get("choices")
    if isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices):
        return "openai-chat"
    if isinstance(item.get("output"), list) and item.get("object") == "response":
        return "openai-responses"
    kind = item.get("type")
    if isinstance(kind, str) and (kind in RESPONSES_TYPES or kind.endswith(("_call", "_call_output"))):
        return "openai-responses"
    return _evidence_of_message(item) if isinstance(item.get("role"), str) else None


def _evidence_of_message(message: Mapping[str, JSON]) -> Dialect | None:
    content, typed = message.get("content"), message.get("type") == "message"
    parts = [part for part in (content if isinstance(content, list) else ()) if isinstance(part, dict)]
    kinds = [kind for part in parts if isinstance(kind := part.get("type"), str)]
    if any("type" not in part and BEDROCK & part.keys() for part in parts):
        return "bedrock"
    if any(kind in PARTS and PARTS[kind] == "ai-sdk" for kind in kinds):
        return "ai-sdk"
    if message["role"] in CHAT_ROLES or any(name in message for name in CHAT_FIELDS):
        return "openai-chat"
    if "stop_reason" in message:
        return "anthropic"
    if typed and isinstance(content, str):
        return "openai-responses"
    return next((PARTS[kind] for kind in kinds if kind in PARTS), None)


# --- the steps


@dataclass(slots=True)
class UserTexts:
    """The user's messages, while a conversation is read: the first one is its task."""

    task: str = ""
    _new: list[str] = field(default_factory=list)
    _has_begun: bool = False

    def add(self, text: str) -> None:
        if self.task:
            self._new.append(text)
        self.task = self.task or text

    def before_answer(self) -> str:
        """Return what the user has said since the answer before; "" for the first answer, before which all is task."""
        text = user_text(self._new) if self._has_begun else ""
        self._new, self._has_begun = [], True
        return text


@dataclass(slots=True)
class StepList:
    """The steps of a conversation, while it is read.

    A result joins the newest step that made its call, else the last step; one before any step is left out.
    """

    users: UserTexts = field(default_factory=UserTexts)
    model: str = ""
    _steps: list[Step] = field(default_factory=list)
    _usages: list[Usage] = field(default_factory=list)
    _results: list[list[ToolResult]] = field(default_factory=list)
    _callers: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Of each call id the newest step, and the tool's name; under "" the last step, and the name of its only call."""

    def begin(self, step: Step, usage: Usage) -> None:
        """Add the step that an answer began, with the results that it has already."""
        at = len(self._steps)
        self._steps.append(replace(step, user_text=self.users.before_answer()))
        self._usages.append(usage)
        self._results.append(list(step.tool_results))
        self._callers.update({call.id: (at, call.name) for call in step.tool_calls})
        self._callers[""] = at, step.tool_calls[0].name if len(step.tool_calls) == 1 else ""

    def add(self, result: ToolResult) -> None:
        """Add a tool's result to its step, with the tool's name."""
        at, name = self._callers.get(result.call_id, (len(self._steps) - 1, ""))
        if at >= 0:
            self._results[at].append(replace(decode_output(result), name=result.name or name))

    def known(self, *, model: str = "") -> None:
        """Note the model, unless an earlier message has named one."""
        self.model = self.model or model

    def mapped(self, change: Callable[[ToolResult], ToolResult]) -> StepList:
        """Return the list itself, with its results changed."""
        self._results = [list(map(change, results)) for results in self._results]
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(replace(step, tool_results=tuple(found)) for step, found in zip(self._steps, self._results))

    @property
    def usages(self) -> tuple[Usage, ...]:
        return tuple(self._usages)


# --- the runs

ReadItems: TypeAlias = "Callable[[Iterable[Item]], StepList]"


class _Run(Header):
    messages: list[dict[str, Any]]


def read_conversations(file: str, records: Iterable[Record | RecordError], read_items: ReadItems) -> Runs:
    """Read records of messages.

    Each record is a run, but consecutive records of one message or answer each are one run together.
    """
    together: list[Record] = []
    for record in records:
        if isinstance(record, Record) and _is_item(record.value):
            together.append(record)
            continue
        if isinstance(record, Record):
            yield from _joined(file, together, read_items)
            together = []
            yield from _read(file, record.line, record.value, read_items)
        else:
            yield record
    yield from _joined(file, together, read_items)


def _is_item(value: JSON) -> bool:
    if not isinstance(value, dict) or any(key in value for key in MESSAGE_KEYS):
        return False
    return any(key in value for key in ("role", "type", *ANSWERS))


ANSWERS = ("choices", "output")
"""The keys that hold the model's messages in an answer of the Chat Completions API, and of the Responses API."""


def _joined(file: str, records: list[Record], read_items: ReadItems) -> Iterator[RecordedRun | RecordError]:
    if records:
        yield from _read(file, records[0].line, [record.value for record in records], read_items)


def _read(file: str, line: int, value: JSON, read_items: ReadItems) -> Iterator[RecordedRun | RecordError]:
    """Yield the run of a record, and an error if some of its blocks were not understood."""
    yield _run(file, line, value, read_items)
    kinds = Counter(map(_kind, blocks := _blocks(value)))
    unknown = {kind: count for kind, count in kinds.items() if kind not in UNDERSTOOD}
    if unknown:
        named = ", ".join(map(repr, list(unknown)[:KINDS_NAMED]))
        reason = f"{sum(unknown.values()):,} of {len(blocks):,} blocks were not understood (such as {named})"
        nearest = dialect_of(value) or "the chosen format"
        yield RecordError(file, line, f"{reason}; the run lacks them, because {nearest} is only the nearest format")


KINDS_NAMED = 3
UNDERSTOOD = frozenset(
    {*PARTS, *TEXTS, *KINDS, *UNTYPED, *BEDROCK, "redacted_thinking", "reasoning", "text", "cachePoint", "cache_point"}
)
"""Types of blocks that are read, or known to hold nothing that is; of a block without a type, its only key."""


def _blocks(value: JSON) -> list[dict[str, JSON]]:
    contents = [item.get("content") for item in messages_of(value) or () if isinstance(item, dict)]
    return [part for content in contents if isinstance(content, list) for part in content if isinstance(part, dict)]


def _kind(part: dict[str, JSON]) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else next(iter(part)) if len(part) == 1 else ", ".join(part)


def _run(file: str, line: int, value: JSON, read_items: ReadItems) -> RecordedRun | RecordError:
    if messages_of(value) is None:
        return RecordError(file, line, "contains no list of messages")
    try:
        run = _Run.model_validate(with_messages(value))
        answer = [value] if isinstance(value, dict) and any(key in value for key in ANSWERS) else []
        found = read_items([*run.messages, *answer])
        steps, usages = found.steps, found.usages
    except ValidationError as error:
        return RecordError(file, line, reason(error))
    except RecursionError:
        return RecordError(file, line, "is nested too deeply")
    known = {"task": run.task or found.users.task, "model": run.model or found.model}
    return run.model_copy(update=known).recorded(file, line, steps, usages)
