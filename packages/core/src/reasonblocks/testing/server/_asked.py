"""What one request asks of the model, in the same words for every API."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, dropwhile, groupby, takewhile
from typing import Any, Literal, TypeAlias

from .._harness import Seen
from .._script import Script, Turn
from ._responses import chains
from ._server import APIS

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


Answer: TypeAlias = Callable[[Asked], Turn]
"""What the model says to a request. Called in the request's own thread: it may wait, the others go on."""


def scripted(scripts: Sequence[Script]) -> Answer:
    """Says a script's turns: the script whose task opens the conversation, else the first one."""

    def answer(asked: Asked) -> Turn:
        known = (script for script in scripts if script.task in (asked.task, *asked.opening))
        turns = next(known, scripts[0]).turns
        if asked.answers >= len(turns):
            raise ProviderError(f"the script has {len(turns)} turns, and was asked for turn {asked.answers}")
        return turns[asked.answers]

    return answer


class Desk:
    """Takes requests of any API, in any thread, and answers them."""

    def __init__(self, answer: Answer | Script | Sequence[Script]) -> None:
        scripts = (answer,) if isinstance(answer, Script) else answer
        self._answer = scripts if callable(scripts) else scripted(scripts)
        self._lock = threading.Lock()
        self._requests: list[Asked] = []
        self._past: dict[str, Past] = {}
        self._failures: Counter[tuple[str, int]] = Counter()
        self._numbers = count()
        self._mark = secrets.token_hex(4)  # ids of a server that takes over from another one must be new, too

    @property
    def requests(self) -> list[Asked]:
        with self._lock:
            return list(self._requests)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{self._mark}{next(self._numbers):06}"

    def take(self, api: ApiName, body: Json, headers: Mapping[str, str]) -> Asked:
        """The request, written down. Raises `ProviderError` when it goes on from a response that nobody gave."""
        with self._lock:
            request = asked_of(api, body, headers, list(APIS[api].items(body)), self._past_of(api, body))
            self._requests.append(request)
            return request

    def answer(self, request: Asked) -> Json:
        """The whole answer. What the turn or the script raises instead is the caller's to send."""
        turn = self._answer(request)
        self._fail_first(request, turn.failures)
        if turn.error is not None:
            raise turn.error
        given = APIS[request.api].whole(request, turn, self.new_id)
        if request.api == "responses":
            self._remember(request, given["id"])
        return given

    def _past_of(self, api: ApiName, body: Json) -> Past:
        response, conversation = chains(body) if api == "responses" else (None, None)
        if response is not None and response not in self._past:
            raise ProviderError(
                f"Previous response with id '{response}' not found.", code="previous_response_not_found"
            )
        return self._past.get(response or conversation or "", Past())

    def _remember(self, request: Asked, response: str) -> None:
        _, conversation = chains(request.body)
        with self._lock:
            for name in filter(None, (response, conversation)):
                self._past[name] = Past(answers=request.answers + 1, opening=request.opening)

    def _fail_first(self, request: Asked, failures: int) -> None:
        """Counted anew once the answer was given: a second run of the same script fails as the first did."""
        place = (request.task, request.answers)
        with self._lock:
            failed = self._failures.pop(place, 0)
            if failed < failures:
                self._failures[place] = failed + 1
                raise ProviderError("try again", status=500)
