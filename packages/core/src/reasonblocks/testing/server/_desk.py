"""Which turn answers a request, and what has to be remembered from one request to the next."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TypeAlias

from .._script import Script, Turn
from ._apis import APIS
from ._asked import ApiName, Asked, Json, Past, ProviderError, asked_of
from ._responses import chains

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
