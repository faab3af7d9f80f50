"""Private evidence: its texts are kept apart from commands, logs and heads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from ..codec import blobs_of
from ..errors import Refused
from ..ports import Writing
from ..values import Command, ThreadEvent


def content_of(command: Command) -> str:
    """Return what identifies the content of a command: all that it asks for, but for private texts.

    Raises `Refused` for data that is no plain JSON.
    """
    try:
        return _content_of(command)
    except Exception as exc:
        why = f"its data is no plain JSON ({type(exc).__name__})"
        raise Refused(command.thread_id, command.trigger.value, why) from exc


def _content_of(command: Command) -> str:
    asked = {
        "thread": command.thread_id,
        "trigger": command.trigger.value,
        "actor": [command.actor.kind, command.actor.name],
        "data": _public(command.data),
    }
    text = json.dumps(asked, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str)
    return sha256(text.encode()).hexdigest()[:32]


def _public(value: object) -> object:
    """Return a command's data without private texts, from which nobody could guess them."""
    if isinstance(value, Mapping):
        private = value.get("private") is True
        return {str(name): "" if private and name == "text" else _public(each) for name, each in value.items()}
    return [_public(each) for each in value] if isinstance(value, list | tuple) else value


def without_private(data: Mapping[str, object], salt: Callable[[], str]) -> tuple[Mapping[str, object], dict[str, str]]:
    """Return a command's data with names in place of private texts, and the texts by their names."""
    blobs: dict[str, str] = {}

    def one(item: Any) -> Any:
        if not (isinstance(item, Mapping) and item.get("private") is True and item.get("text")):
            return item
        text = str(item["text"])
        name = _salted(salt(), text)
        blobs[name] = text
        return {**item, "text": "", "blob": name}

    def many(items: object) -> Any:
        return [one(item) for item in items] if isinstance(items, list | tuple) else items

    found: dict[str, Any] = dict(data)
    if "items" in found:
        found["items"] = many(found["items"])
    if isinstance(cause := found.get("cause"), Mapping) and "evidence" in cause:
        found["cause"] = {**cause, "evidence": many(cause["evidence"])}
    return (found if blobs else data), blobs


def keep_private(writing: Writing, blobs: Mapping[str, str], events: Iterable[ThreadEvent]) -> None:
    """Store the private texts that a command's events name; the limits of a log may have dropped others."""
    for name in {*blobs_of([event.data for event in events])} & {*blobs}:
        writing.put_blob(name, blobs[name])


def _salted(salt: str, text: str) -> str:
    """Return the name of a private text; nobody can find the text by trying, nor does another thread share it."""
    return sha256(f"{salt}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
