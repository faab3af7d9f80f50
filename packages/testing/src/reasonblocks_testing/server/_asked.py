"""A request to the model as a value that is the same for every API, and code that the APIs' modules share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, takewhile
from typing import Any, Literal, TypeAlias

from reasonblocks.render import FRAME

from ..harness import Seen

ApiName: TypeAlias = Literal["responses", "chat", "messages"]
Json: TypeAlias = dict[str, Any]
"""A JSON object in the provider's own form."""
NewId: TypeAlias = Callable[[str], str]
"""Returns a new id with this prefix."""
Speaker: TypeAlias = Literal["system", "user", "model", "tool"]


class ProviderError(Exception):
    """An HTTP error response, as `Turn.error` or raised by an answer.

    Any other exception becomes a response with status 400, which clients do not retry.
    """

    def __init__(self, message: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A part of a request: its speaker and its texts; `call_id` for a tool's output."""

    speaker: Speaker
    texts: tuple[str, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The number of answers, and the opening, of the chain or conversation that a request continues."""

    answers: int = 0
    opening: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as received.

    `system` is the system prompt: instructions, and system and developer messages before anything else, joined by blank
    lines. `texts` are the texts after it, in order: user texts, assistant texts ("" for an answer without one), tool
    outputs. `roles` holds the role of each ("user", "assistant", "tool", "system"). `answers` is the number of the
    model's answers in the conversation, including those of a chain. `opening` holds the texts of the first user
    message. The keys of `tool_outputs` are call ids, those of `headers` lower-case names.
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
        """The conversation's first user message, without guidance that has joined it."""
        return "\n\n".join(self.opening).partition(f"\n\n{FRAME}")[0]

    @property
    def seen(self) -> Seen:
        return Seen(model=self.model, system=self.system, texts=self.texts, roles=self.roles)


def asked_of(api: ApiName, body: Json, headers: Mapping[str, str], items: Sequence[Item], past: Past) -> Asked:
    prompt = [text for item in takewhile(_is_system, items) for text in item.texts]
    rest = list(dropwhile(_is_system, items))
    groups = [(by_model, list(group)) for by_model, group in groupby(rest, lambda item: item.speaker == "model")]
    users = (item.texts for item in rest if item.speaker == "user")
    return Asked(
        api=api,
        model=str(body.get("model", "")),
        system="\n\n".join(prompt),
        texts=tuple(text for by_model, group in groups for text, _ in _spoken(by_model, group)),
        roles=tuple(role for by_model, group in groups for _, role in _spoken(by_model, group)),
        answers=past.answers + sum(by_model for by_model, _ in groups),
        opening=past.opening or next(users, ()),
        stream=bool(body.get("stream")),
        tool_outputs={item.call_id: "\n".join(item.texts) for item in rest if item.speaker == "tool"},
        body=body,
        headers=headers,
    )


def _is_system(item: Item) -> bool:
    return item.speaker == "system"


def _spoken(by_model: bool, group: Sequence[Item]) -> list[tuple[str, str]]:
    """Return each text and its role; "" for an answer without text."""
    role = "assistant" if by_model else None
    found: list[tuple[str, str]] = [(text, role or item.speaker) for item in group for text in item.texts]
    return found or [("", "assistant")] * by_model


PIECES = 3
"""The number of deltas of a streamed text, if it is long enough."""

_SPEAKERS: Mapping[str, Speaker] = {"system": "system", "developer": "system", "assistant": "model"}


def speaker(message: Json) -> Speaker:
    return _SPEAKERS.get(message.get("role", ""), "user")


def pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def arguments_text(arguments: Any) -> str:
    """Return a tool call's arguments as OpenAI sends them. A string is sent as it is: a script can send broken JSON."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def named_event(event: Json) -> bytes:
    """Return a server-sent event whose name is its type."""
    return f"event: {event['type']}\n".encode() + data_event(event)


def data_event(event: Json) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"  # ASCII: clients disagree on which characters end a line
