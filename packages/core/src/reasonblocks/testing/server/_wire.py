"""How the parts of a provider's API look that all three share: content, arguments, deltas, events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._asked import Json, Speaker

PIECES = 3
"""Into how many deltas a streamed text is cut, if it is long enough."""

_SPEAKERS: Mapping[str, Speaker] = {"system": "system", "developer": "system", "assistant": "model"}


def speaker(message: Json) -> Speaker:
    return _SPEAKERS.get(message.get("role", ""), "user")


def texts_of(content: Any) -> tuple[str, ...]:
    """The texts of a message's content, which is text or a list of blocks; blocks without a text are left out."""
    if isinstance(content, str):
        return (content,)
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
    return tuple(text for text in texts if isinstance(text, str))


def output_of(content: Any) -> tuple[str, ...]:
    """A tool's output as one text: what is neither text nor blocks is shown as JSON."""
    if content is None or isinstance(content, (str, list)):
        return ("\n".join(texts_of(content)),)
    return (json.dumps(content),)


def pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def arguments_text(arguments: Any) -> str:
    """A tool call's arguments as OpenAI sends them. A string goes out as it is: a script can send broken JSON."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def named_event(event: Json) -> bytes:
    """A server-sent event that carries its type as its name, too."""
    return f"event: {event['type']}\n".encode() + data_event(event)


def data_event(event: Json) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"  # ASCII: clients differ in what ends a line for them
