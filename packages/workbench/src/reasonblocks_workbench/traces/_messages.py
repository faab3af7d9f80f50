"""Reads one message of a model, a user or a tool, in any shape in which a tracing tool records it.

The shapes are those of OpenTelemetry (`parts`), of OpenInference (`message_content`), of LangChain (`args`), and of the
providers' APIs: OpenAI's chat messages (`tool_calls[].function`), Anthropic's blocks (`tool_use`, `tool_result`), and
those of Amazon Bedrock's Converse (`toolUse`, `toolResult`), which Strands records, too; then those of Vercel's AI SDK
4 to 6 (`tool-call`, `tool-result`) and of pi 0.73 (`toolCall`, the role `toolResult`).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from reasonblocks.messages import first_text, langchain, plain
from reasonblocks.messages.content import is_content, output_of, text_of
from reasonblocks.types import JSON, ToolCall, ToolResult
from reasonblocks.util.json import replace_surrogates

CALLS = ("tool_call", "tool_use", "tool-call", "toolCall")
RESULTS = ("tool_call_response", "tool_result", "tool-result")
"""Values of `type` of the parts of a message that are calls and results."""
RESULT_ROLES = ("tool", "toolResult")
THOUGHTS = {"reasoning": ("content", "reasoning", "text"), "thinking": ("thinking",)}
"""Values of `type` of the parts that are reasoning, and the fields that hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: its texts, its calls, and the results in it, which name no tool."""

    role: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


class Asked:
    """Finds the answer that made a call, by the call's id. Some models use the same ids in each answer."""

    def __init__(self, answers: Iterable[Iterable[ToolCall]]) -> None:
        self._made: dict[str, list[tuple[int, ToolCall]]] = {}
        for at, calls in enumerate(answers):
            for call in calls:
                self._made.setdefault(call.id, []).append((at, call))

    def find(self, call_id: str, newest: int) -> tuple[int, ToolCall] | None:
        """Return the last answer up to `newest` that made the call, else the first after it; None without an id."""
        made = self._made.get(call_id, []) if call_id else []
        return made[max(0, bisect_right(made, newest, key=itemgetter(0)) - 1)] if made else None


def value_of(text: object) -> JSON:
    """Return the JSON in a text; a text that holds none, and any other value, as it is."""
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            value: JSON = json.loads(text)
            return replace_surrogates(value) if "\\u" in text else value
        except (ValueError, RecursionError):
            return text
    return plain(text)


def arguments_of(given: object) -> JSON:
    """Return a call's arguments; anything but an object under the key `input`."""
    value = value_of(given)
    return value if isinstance(value, dict) else {} if value in (None, "") else {"input": value}


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; [] for anything else."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def message_of(item: Mapping[str, Any], role: str = "assistant") -> Message:
    """Return a recorded message. `role` is used if the message names none."""
    held = [item[name] for name in ("parts", "contents", "content") if isinstance(item.get(name), list)]
    content = [_inner(part) for listed in held for part in listed] or item.get("content")
    parts = objects(content)
    role = item["role"] if isinstance(item.get("role"), str) else role
    calls = [part for part in parts if part.get("type") in CALLS] or objects(item.get("tool_calls"))
    return Message(
        role=role,
        text=text_of(content),
        reasoning="\n".join(filter(None, map(_thought, parts))),
        calls=tuple(map(_call, calls)),
        results=tuple(_results(item, content, role)),
    )


def _inner(part: Any) -> Any:
    """Return a part as a block with a `type`, as Anthropic's are."""
    if not isinstance(part, Mapping):
        return part
    if isinstance(held := part.get("message_content"), Mapping):
        return {**part, **held}  # a call is beside the content
    if isinstance(held := part.get("toolUse"), Mapping):
        return {**held, "type": "tool_use", "id": held.get("toolUseId")}
    if isinstance(held := part.get("toolResult"), Mapping):
        error = {"is_error": held.get("status") == "error"}
        return {**error, "type": "tool_result", "tool_use_id": held.get("toolUseId"), "content": held.get("content")}
    held = part.get("reasoningContent") or (part.get("content") if part.get("type") == "reasoningContent" else None)
    text = held.get("reasoningText") if isinstance(held, Mapping) else None
    return {"type": "thinking", "thinking": text.get("text")} if isinstance(text, Mapping) else part


def _thought(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    fields = THOUGHTS.get(kind, ()) if isinstance(kind, str) else ()
    return first_text(part, *fields) or ""


def _call(given: Mapping[str, Any]) -> ToolCall:
    nested = given.get("tool_call")
    call = nested if isinstance(nested, Mapping) else given
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    arguments = next((named[name] for name in ("arguments", "input", "args") if name in named), None)
    id, name = call.get("id") or call.get("toolCallId"), named.get("name") or named.get("toolName")
    return ToolCall(id=_text(id), name=_text(name), arguments=arguments_of(arguments))


def _results(item: Mapping[str, Any], content: object, role: str) -> Iterator[ToolResult]:
    answers = [part for part in objects(content) if part.get("type") in RESULTS]
    for part in answers:
        output = next((part[name] for name in ("response", "result", "output", "content") if name in part), None)
        yield _result(part, output)
    if role in RESULT_ROLES and not answers:
        yield _result({"tool_use_id": item.get("tool_call_id"), **item}, content)


def _result(part: Mapping[str, Any], output: object) -> ToolResult:
    failed = True in (part.get("is_error"), part.get("isError"))
    if isinstance(output, Mapping) and output.keys() == {"type", "value"}:  # Vercel's
        failed = failed or str(output["type"]).startswith("error")
        output = output["value"]
    call_id = next(filter(None, (part.get(name) for name in ("tool_use_id", "toolCallId", "id"))), None)
    is_error = True if failed else None
    return ToolResult(call_id=_text(call_id), name="", output=recorded_output(output), is_error=is_error)


HELD = ("output", "update", "messages", "data", "kwargs")
"""The fields in which LangChain's tracers record a message: a tool's output, the update of a `Command` and the messages
in it, and the message's own fields, as `messages_to_dict` writes them, or the arguments of its constructor.
"""


def tool_message(output: JSON) -> Mapping[str, Any] | None:
    """Return the fields of LangChain's `ToolMessage` in a tool's recorded output; None if it is something else."""
    held: Any = output
    for _ in HELD:
        if isinstance(held, list) and held:
            held = held[-1]
        if not isinstance(held, Mapping):
            return None
        if held.get("type") in langchain.RESULTS and "content" in held:
            return held
        held = next((held[name] for name in HELD if isinstance(held.get(name), (Mapping, list))), None)
    return None


def recorded_output(output: object) -> str:
    """Return the text of a tool's recorded result, whose parts may be recorded as their JSON."""
    held = value_of(output)
    return output_of(held if is_content(held) else output)


def decode_output(result: ToolResult) -> ToolResult:
    """Return a result with the text of its content, if its output is the JSON of that: some MCP clients write it so."""
    held = value_of(result.output)
    if not is_content(held):
        return result
    failed = isinstance(held, dict) and True in (held.get("isError"), held.get("is_error"))
    return replace(result, output=output_of(held), is_error=True if failed else result.is_error)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
