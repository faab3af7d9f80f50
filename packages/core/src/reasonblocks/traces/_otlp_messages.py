"""Reads the messages of a span: three ways to write them, one value.

Sources: the semantic conventions of OpenTelemetry for generative AI (`gen_ai.input.messages`, in development; before
1.37 the span events `gen_ai.choice` and others), those of OpenInference (`llm.output_messages.0.message.content`), and
OpenLLMetry's attributes (`gen_ai.completion.0.content`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._formats import plain, text_or_json
from ..types import JSON, ToolCall

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
CHOICE = "gen_ai.choice"
ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
"""Roles of the older span events."""
CONTENT_EVENTS = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
"""The oldest span events, and the attribute that holds their messages as JSON."""
FLAT_INPUTS = ("llm.input_messages", "gen_ai.prompt")
FLAT_OUTPUTS = ("llm.output_messages", "gen_ai.completion")
"""Prefixes of attributes whose names have the number of a message."""

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: its texts, its calls, and the results in it, as (call id, output)."""

    role: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The messages that a call was given, and those that it returned."""

    given: tuple[Message, ...] = ()
    returned: tuple[Message, ...] = ()


def messages_in(attributes: Attributes, events: Sequence[tuple[str, Attributes]]) -> Messages:
    """Return a span's messages: those of the current conventions, else of the older ones."""
    for holder in (attributes, *(held for _, held in events)):
        if INPUT in holder or OUTPUT in holder:
            return Messages(given=_read(holder.get(INPUT)), returned=_read(holder.get(OUTPUT)))
    found = Messages(given=_flat(attributes, FLAT_INPUTS), returned=_flat(attributes, FLAT_OUTPUTS))
    return found if found.given or found.returned else _of_events(events)


def value_of(text: object) -> JSON:
    """Return the JSON in a text; a text that holds none, and any other value, as it is."""
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            value: JSON = json.loads(text)
            return value
        except (ValueError, RecursionError):
            return text
    return plain(text)


def arguments_of(given: object) -> JSON:
    """Return a call's arguments; anything but an object under the key `input`."""
    value = value_of(given)
    return value if isinstance(value, dict) else {} if value in (None, "") else {"input": value}


def _read(given: object) -> tuple[Message, ...]:
    value = value_of(given)
    found = value if isinstance(value, list) else [value]
    return tuple(_message(item) for item in found if isinstance(item, dict))


def _message(item: Mapping[str, Any], role: str = "assistant") -> Message:
    parts = _list(item.get("parts")) or _list(item.get("contents")) or _list(item.get("content"))
    content = item.get("content")
    texts = [content] if isinstance(content, str) else _texts(parts, "text")
    role = item["role"] if isinstance(item.get("role"), str) else role
    calls = [part for part in parts if part.get("type") == "tool_call"] or _list(item.get("tool_calls"))
    return Message(
        role=role,
        text="\n".join(filter(None, texts)),
        reasoning="\n".join(filter(None, _texts(parts, "reasoning"))),
        calls=tuple(map(_call, calls)),
        results=tuple(_results(item, parts, role, texts)),
    )


def _list(value: object) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _texts(parts: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    """Return the texts of the parts of one kind; OpenInference nests them in `message_content`."""
    found = (part.get("message_content", part) for part in parts)
    held = (part for part in found if isinstance(part, Mapping) and part.get("type") == kind)
    return [text for part in held if isinstance(text := part.get("content", part.get("text")), str)]


def _call(given: Mapping[str, Any]) -> ToolCall:
    nested = given.get("tool_call")
    call = nested if isinstance(nested, Mapping) else given
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    return ToolCall(
        id=str(call.get("id") or ""), name=str(named.get("name") or ""), arguments=arguments_of(named.get("arguments"))
    )


def _results(
    item: Mapping[str, Any], parts: Iterable[Mapping[str, Any]], role: str, texts: Iterable[str]
) -> Iterator[tuple[str, str]]:
    answers = [part for part in parts if part.get("type") == "tool_call_response"]
    for part in answers:
        output = part.get("response", part.get("result"))
        yield str(part.get("id") or ""), text_or_json(plain(output))
    if role == "tool" and not answers:
        yield str(item.get("tool_call_id") or item.get("id") or ""), "\n".join(texts)


def _flat(attributes: Attributes, prefixes: Sequence[str]) -> tuple[Message, ...]:
    for prefix in prefixes:
        names = {name: value for name, value in attributes.items() if name.startswith(f"{prefix}.")}
        if names:
            items = _unflattened({name[len(prefix) + 1 :]: value for name, value in names.items()})
            role = "assistant" if prefix in FLAT_OUTPUTS else "user"
            return tuple(_message(_inner(item), role) for item in _list(items))
    return ()


def _inner(item: Mapping[str, Any]) -> Mapping[str, Any]:
    message = item.get("message")
    return message if isinstance(message, Mapping) else item


MAX_PARTS = 12
"""Dots of an attribute's name that are read; the conventions use at most eight."""


def _unflattened(names: Attributes) -> Any:
    """Return nested values for dotted names; numbers become positions in lists."""
    tree: dict[str, Any] = {}
    for name, value in names.items():
        *path, last = name.split(".", MAX_PARTS)
        at = tree
        for part in path:
            held = at.setdefault(part, {})
            if not isinstance(held, dict):
                held = at[part] = {}
            at = held
        at.setdefault(last, value)
    return _as_lists(tree)


def _as_lists(tree: object) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() and key.isascii() for key in tree):
        return [_as_lists(tree[key]) for key in sorted(tree, key=lambda key: (len(key), key))]
    return {key: _as_lists(value) for key, value in tree.items()}


def _of_events(events: Sequence[tuple[str, Attributes]]) -> Messages:
    given: list[Message] = []
    returned: list[Message] = []
    for name, attributes in events:
        if name in ROLES:
            given.append(_message(_opened(attributes), ROLES[name]))
        elif name == CHOICE:
            body = _opened(attributes)
            inner = body.get("message")
            returned.append(_message({**body, **inner} if isinstance(inner, dict) else body))
        elif name in CONTENT_EVENTS:
            read = _read(attributes.get(CONTENT_EVENTS[name]))
            (given if name.endswith("prompt") else returned).extend(read)
    return Messages(given=tuple(given), returned=tuple(returned))


def _opened(attributes: Attributes) -> dict[str, Any]:
    """Return an event's fields, those that hold JSON as its values."""
    fields = {name.removeprefix("gen_ai.event."): value for name, value in attributes.items()}
    return {name: value_of(value) for name, value in fields.items()}
