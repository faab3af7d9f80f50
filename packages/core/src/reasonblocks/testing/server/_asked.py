"""What one request asks of the model, in the same words for every API."""

from __future__ import annotations

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
