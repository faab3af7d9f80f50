"""Finds the messages in a span, which instrumentations write in four ways.

Sources: the semantic conventions of OpenTelemetry for generative AI (`gen_ai.input.messages`, in development; before
1.37 the span events `gen_ai.choice` and others), those of OpenInference (`llm.output_messages.0.message.content`), and
OpenLLMetry's attributes (`gen_ai.completion.0.content`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reasonblocks.messages import first_text, langchain

from ._messages import Message, message_of, objects, value_of

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
VALUE = "output.value"
"""The output as the framework has it, in OpenInference."""
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
class Messages:
    """The messages that a call was given, and those that it returned."""

    given: tuple[Message, ...] = ()
    returned: tuple[Message, ...] = ()


def messages_in(attributes: Attributes, events: Sequence[tuple[str, Attributes]]) -> Messages:
    """Return a span's messages: those of the current conventions, else of the older ones.

    Those of the current conventions may be in several events, one for the given and one for the returned messages.
    """
    holders = (attributes, *(held for _, held in events))
    given, returned = (next((held[name] for held in holders if name in held), None) for name in (INPUT, OUTPUT))
    if given is not None or returned is not None:
        return Messages(given=_read(given), returned=_read(returned))
    answers = _flat(attributes, FLAT_OUTPUTS)
    found = Messages(given=_flat(attributes, FLAT_INPUTS), returned=_completed(answers, attributes.get(VALUE)))
    return found if found.given or found.returned else _of_events(events)


def _completed(answers: tuple[Message, ...], output: object) -> tuple[Message, ...]:
    """Return an answer with the texts that OpenInference records only in the framework's own output.

    AutoGen calls the text beside a call its `thought`; of LangChain's messages, reasoning is left out.
    """
    if (
        len(answers) != 1
        or (answers[0].text and answers[0].reasoning)
        or not isinstance(value := value_of(output), dict)
    ):
        return answers
    (answer,) = answers
    return (
        replace(
            answer,
            text=answer.text or first_text(value, "thought") or "",
            reasoning=answer.reasoning or langchain.reasoning_of(_generated(value)),
        ),
    )


def _generated(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the message in an output of LangChain's tracers; {} without one."""
    held: Any = output.get("generations")
    while isinstance(held, list) and held:
        held = held[0]
    for name in ("message", "kwargs"):
        held = held.get(name) if isinstance(held, Mapping) else None
    return held if isinstance(held, Mapping) else {}


def _read(given: object) -> tuple[Message, ...]:
    value = value_of(given)
    found = value if isinstance(value, list) else [value]
    return tuple(message_of(item) for item in found if isinstance(item, dict))


def _flat(attributes: Attributes, prefixes: Sequence[str]) -> tuple[Message, ...]:
    for prefix in prefixes:
        names = {name: value for name, value in attributes.items() if name.startswith(f"{prefix}.")}
        if names:
            items = _unflattened({name[len(prefix) + 1 :]: value for name, value in names.items()})
            role = "assistant" if prefix in FLAT_OUTPUTS else "user"
            return tuple(message_of(_inner(item), role) for item in objects(items))
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
            given.append(message_of(_opened(attributes), ROLES[name]))
        elif name == CHOICE:
            body = _opened(attributes)
            inner = body.get("message")
            held = inner if isinstance(inner, dict) else {} if inner is None else {"content": inner}
            returned.append(message_of({**body, **held}))
        elif name in CONTENT_EVENTS:
            read = _read(attributes.get(CONTENT_EVENTS[name]))
            (given if name.endswith("prompt") else returned).extend(read)
    return Messages(given=tuple(given), returned=tuple(returned))


def _opened(attributes: Attributes) -> dict[str, Any]:
    """Return an event's fields, those that hold JSON as its values."""
    fields = {name.removeprefix("gen_ai.event."): value for name, value in attributes.items()}
    return {name: value_of(value) for name, value in fields.items()}
