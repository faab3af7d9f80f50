"""Reads messages of Vercel's AI SDK and of Bedrock's Converse, and the sessions that coding agents save.

Sources: recordings of `ai` 6.0, of Strands 1.62 (whose messages are those of Converse), of pi 0.73, of Codex 0.171 and
of mini-swe-agent 2.4. What only other versions write is read by their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_int, first_text, openai, openai_chat
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage

from ._conversation import Dialect, Item, StepList, dialect_of, read_conversations
from ._files import Record
from ._messages import message_of, objects, value_of
from ._openai_responses import steps_of as steps_of_items
from ._run import Header, RecordedRun, Runs, reason, run_by_run, run_or_error


class OtherMessages:
    """Reads a list of messages as one run: each message of the assistant is a step, with the results of its calls."""

    def __init__(self, name: Dialect, title: str) -> None:
        self.name, self.title = name, title

    def sniff(self, value: JSON) -> bool:
        return dialect_of(value) == self.name

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_conversations(file, records, _steps)


def _steps(items: Iterable[Item]) -> StepList:
    found = StepList()
    for item in items:
        message = message_of(item, "")
        if message.role == "assistant":
            step = Step(thought=message.text, reasoning=message.reasoning, tool_calls=message.calls)
            found.begin(step, _usage(item))
            found.known(model=first_text(item, "model") or "")
        for result in message.results:
            found.add(result)
        if message.role == "user" and message.text:
            found.users.add(message.text)
    return found


def _usage(item: Item) -> Usage:
    """Return the tokens that pi counts, or Converse beside a message of Strands. The input lacks those of the cache."""
    beside = item.get("metadata")
    counts = item.get("usage") or (beside.get("usage") if isinstance(beside, dict) else None)
    read = first_int(counts, "cacheRead", "cacheReadInputTokens")
    written = first_int(counts, "cacheWrite", "cacheWriteInputTokens")
    whole = (first_int(counts, "input", "inputTokens") or 0) + (read or 0) + (written or 0)
    output = first_int(counts, "output", "outputTokens")
    return Usage(input=whole or None, output=output, cache_read=read, cache_write=written)


# --- sessions: each line is an entry, and a file one run


class Pi:
    """Reads the branch of a session that ends with its newest message, as one run."""

    name = "pi"
    title = "pi sessions"

    def sniff(self, value: JSON) -> bool:
        if not isinstance(value, dict):
            return False
        is_start = value.get("type") == "session" and "cwd" in value
        is_message = value.get("type") == "message" and isinstance(value.get("message"), dict)
        return is_start or (is_message and "parentId" in value)

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        entries: dict[str, Mapping[str, Any]] = {}
        lines, start, newest = list[int](), None, ""
        for record in records:
            if isinstance(record, RecordError):
                yield record
            elif isinstance(record.value, dict):
                lines.append(record.line)
                id = first_text(record.value, "id") or f"line {record.line}"
                if record.value.get("type") == "session":
                    start = id
                    continue
                entries[id] = record.value
                newest = id if isinstance(record.value.get("message"), dict) else newest
        branch: dict[str, Mapping[str, Any]] = {}
        while newest in entries and newest not in branch:
            branch[newest] = entries[newest]
            newest = first_text(entries[newest], "parentId") or ""
        messages = [held for entry in reversed(branch.values()) if isinstance(held := entry.get("message"), dict)]
        if lines:
            yield run_or_error(
                file, lines[0], lambda: _recorded(file, lines[0], _steps(messages), Header(run_id=start))
            )


def _recorded(file: str, line: int, found: StepList, header: Header) -> RecordedRun:
    known = {"task": header.task or found.users.task, "model": header.model or found.model}
    return header.model_copy(update=known).recorded(file, line, found.steps, found.usages)


class _Entry(BaseModel):
    type: str
    payload: dict[str, Any]


class Codex:
    """Reads a session of Codex (`rollout-*.jsonl`) as one run, by the items of the Responses API in it."""

    name = "codex"
    title = "Codex rollouts"

    def sniff(self, value: JSON) -> bool:
        return (
            isinstance(value, dict) and first_text(value, "type") in ENTRIES and isinstance(value.get("payload"), dict)
        )

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        entries, line = list[_Entry](), 0
        for record in records:
            if isinstance(record, RecordError):
                yield record
                continue
            try:
                entries.append(_Entry.model_validate(record.value))
                line = line or record.line
            except ValidationError as error:
                yield RecordError(file, record.line, reason(error))
        if entries:
            starts = [entry.payload for entry in entries if entry.type == "session_meta"]
            header = Header(run_id=first_text(starts[0], "id") if starts else None)
            yield run_or_error(
                file, line, lambda: _recorded(file, line, steps_of_items(_items(entries)).mapped(_of_command), header)
            )


ENTRIES = frozenset("session_meta response_item event_msg turn_context compacted world_state".split())
NOT_ASKED = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md instructions")
"""The beginnings of user messages that Codex itself writes; newer versions mark them."""


def _items(entries: Sequence[_Entry]) -> Iterator[Mapping[str, Any]]:
    """Yield the user's messages, the answers as the API returns them, with their tokens, and the results of tools."""
    answer: dict[str, Any] | None = None
    newest: dict[str, Any] = {}
    model, found = "", list[Mapping[str, Any]]()
    for entry in entries:
        item = entry.payload
        if entry.type == "turn_context":
            model = first_text(item, "model") or model
        elif (usage := _usage_in(entry)) is not None:
            newest.setdefault("usage", usage)
            answer = None
        elif entry.type != "response_item":
            continue
        elif openai.is_message(item) or openai.is_call(item) or openai.kind(item) == "reasoning":
            if answer is None:
                answer = newest = {"output": [], "model": model}
                found.append(answer)
            answer["output"].append(item)
        elif openai.is_output(item) or _is_asked(item):
            answer = None
            found.append(item)
    yield from found


def _usage_in(entry: _Entry) -> Mapping[str, Any] | None:
    """Return the tokens of the answer before, in the form of the API."""
    info = entry.payload.get("info")
    counts = entry.payload.get("usage") if entry.type == "token_usage_record" else None
    if entry.payload.get("type") == "token_count" and isinstance(info, dict):
        counts = info.get("last_token_usage")
    if not isinstance(counts, dict):
        return None
    cached = {
        "cached_tokens": counts.get("cached_input_tokens"),
        "cache_write_tokens": counts.get("cache_write_input_tokens"),
    }
    thought = {"reasoning_tokens": counts.get("reasoning_output_tokens")}
    return {**counts, "input_tokens_details": cached, "output_tokens_details": thought}


def _is_asked(item: Mapping[str, Any]) -> bool:
    if item.get("role") != "user":
        return False
    marks = item.get("internal_chat_message_metadata_passthrough")
    kinds = marks.get("content_item_kinds") if isinstance(marks, dict) else None
    if isinstance(kinds, list) and kinds:
        return any(str(kind).startswith("user") for kind in kinds)
    return not text_of(item.get("content")).lstrip().startswith(NOT_ASKED)


_run_ids = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?")
"""The first lines of what a command of Codex returns, which differ in each run of the same command."""
_exit_code = re.compile(r"\AProcess exited with code (-?\d{1,10})$", re.MULTILINE)


def _of_command(result: ToolResult) -> ToolResult:
    """Return the result of a command without its own marks, and as an error if its exit code is not 0."""
    output = _run_ids.sub("", result.output)
    code, held = _exit_code.match(output), value_of(output)
    metadata = held.get("metadata") if isinstance(held, dict) else None
    exit_code = int(code.group(1)) if code else first_int(metadata, "exit_code") if isinstance(metadata, dict) else None
    return replace(result, output=output, is_error=True if exit_code else result.is_error)


# --- trajectories


class _Trajectory(Header):
    trajectory_format: str
    info: dict[str, Any] = Field(default_factory=dict)
    messages: list[dict[str, Any]]


class MiniSwe:
    """Reads a trajectory of mini-swe-agent as one run. Its end by itself, `Submitted`, is no success; another fails."""

    name = "mini-swe-agent"
    title = "mini-swe-agent trajectories"

    def sniff(self, value: JSON) -> bool:
        return isinstance(value, dict) and str(value.get("trajectory_format")).startswith(self.name)

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return run_by_run(file, records, _trajectory)


def _trajectory(file: str, record: Record) -> RecordedRun | RecordError:
    run = _Trajectory.model_validate(record.value)
    ended = first_text(run.info, "exit_status")
    outcome = run.outcome or (f"failure: {ended}" if ended not in (None, "Submitted") else None)
    header = run.model_copy(update={"outcome": outcome})
    return _recorded(file, record.line, _of_shell(run.messages), header)


NOT_RUN = "action was not executed"
"""The text of mini-swe-agent in the place of the command that submits the result."""


def _of_shell(messages: Iterable[Mapping[str, Any]]) -> StepList:
    """Return the steps; with a model that calls no tools, a command is in its text, and its output a user message."""
    found = StepList()
    for message in messages:
        held = message.get("extra")
        extra = held if isinstance(held, dict) else {}
        role, failed = message.get("role"), extra.get("returncode") not in (None, 0)
        if role == "assistant":
            response = extra.get("response")
            answer = response if isinstance(response, dict) else {}
            step = openai_chat.answer_of(message)
            found.begin(
                replace(step, tool_calls=step.tool_calls or _commands(extra)), openai_chat.usage_of(answer.get("usage"))
            )
            found.known(model=first_text(answer, "model") or "")
        elif extra.get("exception_info") == NOT_RUN:
            continue
        elif role == "tool" or (role == "user" and "returncode" in extra):
            result = openai_chat.result_of(message, {})
            output = extra.get("raw_output")
            found.add(
                replace(
                    result,
                    output=output if isinstance(output, str) and output else result.output,
                    is_error=True if failed else None,
                )
            )
        elif role == "user":
            found.users.add(text_of(message.get("content")))
    return found


def _commands(extra: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    commands = (action.get("command") for action in objects(extra.get("actions")))
    return tuple(ToolCall(id="", name="bash", arguments={"command": command}) for command in commands if command)
