"""What one request asks of the model, in the same words for every API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, takewhile
from typing import Any, Literal, TypeAlias

from .._harness import Seen

ApiName: TypeAlias = Literal["responses", "chat", "messages"]
Json: TypeAlias = dict[str, Any]
"""A JSON object whose shape is the provider's own."""
NewId: TypeAlias = Callable[[str], str]
"""Makes an id with this prefix that the server has not given before."""
Speaker: TypeAlias = Literal["system", "user", "model", "tool"]


class ProviderError(Exception):
    """An HTTP error that the provider answers, as `Turn.error` or raised by an answer.

    Any other exception is answered with status 400, on which clients do not try again.
    """

    def __init__(self, message: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A part of a request: who speaks, and the texts. `call_id` is that of a tool's output."""

    speaker: Speaker
    texts: tuple[str, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a chain of responses, or a conversation, has seen before a request."""

    answers: int = 0
    opening: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it arrived.

    `system` is the system prompt: instructions, and system and developer messages before anything else, joined by blank
    lines. `texts` are the texts after it, in order: user texts, assistant texts ("" for an answer without one), tool
    outputs. `roles` holds the role of each ("user", "assistant", "tool", "system"). `answers` is how many answers of
    the model the conversation holds, those of a chain included. `opening` is the texts of the conversation's first user
    message. `tool_outputs` is by call id, `headers` by lower-case name.
    """

    api: ApiName
    model: str
    system: str
    texts: tuple[str, ...]
    roles: tuple[str, ...]
    answers: int
    opening: tuple[str, ...]
    stream: bool
    tool_outputs: Mapping[str, str]
    body: Json
    headers: Mapping[str, str]

    @property
    def task(self) -> str:
        """The conversation's first user message."""
        return "\n\n".join(self.opening)

    @property
    def seen(self) -> Seen:
        return Seen(model=self.model, system=self.system, texts=self.texts, roles=self.roles)


def asked_of(api: ApiName, body: Json, headers: Mapping[str, str], items: Sequence[Item], past: Past) -> Asked:
    prompt = [text for item in takewhile(_is_system, items) for text in item.texts]
    said = list(dropwhile(_is_system, items))
    groups = [(by_model, list(group)) for by_model, group in groupby(said, lambda item: item.speaker == "model")]
    users = (item.texts for item in said if item.speaker == "user")
    return Asked(
        api=api,
        model=str(body.get("model", "")),
        system="\n\n".join(prompt),
        texts=tuple(text for by_model, group in groups for text, _ in _texts(by_model, group)),
        roles=tuple(role for by_model, group in groups for _, role in _texts(by_model, group)),
        answers=past.answers + sum(by_model for by_model, _ in groups),
        opening=past.opening or next(users, ()),
        stream=bool(body.get("stream")),
        tool_outputs={item.call_id: "\n".join(item.texts) for item in said if item.speaker == "tool"},
        body=body,
        headers=headers,
    )


def _is_system(item: Item) -> bool:
    return item.speaker == "system"


def _texts(by_model: bool, group: Sequence[Item]) -> list[tuple[str, str]]:
    """Return each text and its role."""
    texts: list[tuple[str, str]] = []
    for item in group:
        texts += [(text, "assistant" if by_model else item.speaker) for text in item.texts]
    return texts or [("", "assistant")] * by_model


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
