"""A model behind any endpoint that speaks OpenAI's chat completions API."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.secret import KEY_RULE, Secret, describe_key, is_key, shown_url

from ..backend import BackendError, Query, Reply
from ..environment import Call

__all__ = ["EndpointBackend"]

Json: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Json], None]

RETRIES = 7
"""Tries after the first one. Their waits, .5 s and then twice the last, are a minute together: a window of rate limits
is one minute with OpenAI, Anthropic and Azure."""
RETRIES_WITHOUT_RESPONSE: Mapping[type[httpx.RequestError], int] = {httpx.ConnectError: 3, httpx.TimeoutException: 2}
"""The same while nothing listens at the address, which most often is wrong, and after timeouts, which last long."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
"""Seconds of one wait, whatever `Retry-After` asks for."""
TIMEOUT_S = 120.0
"""Seconds without a byte from the server. A slow local model reads a long prompt for a minute."""
BODY_CHARS = 300
"""Characters of an error's body that are shown."""
TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""
FINAL = frozenset({401, 403})
"""Statuses after which no other form of the request can succeed."""
NO_MONEY = "insufficient_quota"
"""The mark in OpenAI's body of a status 429 if the account is empty, which no wait changes."""
SEED_LIMIT = 2**31
"""Seeds are sent below this: some servers read them as signed integers of 32 bits."""


def _auto(body: Json) -> None:
    body["tool_choice"] = "auto"


def _unseeded(body: Json) -> None:
    body.pop("seed", None)


def _own_temperature(body: Json) -> None:
    body.pop("temperature", None)


def _new_name_of_max_tokens(body: Json) -> None:
    if "max_tokens" in body:
        body["max_completion_tokens"] = body.pop("max_tokens")


CONCESSIONS: Mapping[str, tuple[Change, str]] = {
    "tool_choice": (_auto, 'tool_choice "auto" is sent instead of "required": turns without a call may occur'),
    "seed": (_unseeded, "no seed is sent: a repetition samples other replies"),
    "temperature": (_own_temperature, "no temperature is sent: the model uses its own"),
    "max_tokens": (_new_name_of_max_tokens, "max_completion_tokens is sent instead of max_tokens"),
}
"""The changes of a request, and the words for the user, for each parameter that an endpoint refuses by name."""
UNNAMED = (("seed",), ("tool_choice",), ("seed", "tool_choice"))
"""The concessions that are tried, in this order, when an endpoint refuses a request and names no parameter."""

FORCES_NOTHING = "forces nothing"
"""The remark, made once, about an endpoint that ignores `tool_choice`, as some local servers do."""

HINTS: Mapping[int, str] = {
    400: "the endpoint does not take this request: check the model's name, its support for tools and its context size",
    401: "check the key: it is read from the environment variable that --key-env names",
    403: "check that the key may use this model",
    404: "check the base URL (it usually ends in /v1) and the model's name",
    429: "wait, lower --concurrency, or check the account's limits",
}


def _say(text: str) -> None:
    print(text, file=sys.stderr)


class EndpointBackend:
    """Calls an endpoint with native tools, from as many threads as there are lanes.

    `base_url` is the part before `/chat/completions`; "/v1" is added to a URL without a path. `key` is sent to that
    endpoint, and no environment variable is read here: a key of one provider must not reach another.

    A parameter that the endpoint refuses (`tool_choice` "required", `seed`, `temperature`, `max_tokens`) is left out or
    replaced from then on, which `say` is told once. Rate limits, server errors and timeouts are retried; `sleep` gets
    the seconds of each wait. No text or repr contains the key. Raises `ConfigError` for a URL or key that cannot be
    used.
    """

    in_rounds = False

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        key: str | None = None,
        lanes: int = 4,
        temperature: float = 0.6,
        timeout_s: float = TIMEOUT_S,
        tool_choice: Literal["required", "auto"] = "required",
        max_tokens: int = 512,
        say: Callable[[str], None] = _say,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model, self._lanes = model, lanes
        url = _url(base_url)
        self._url, self._where = Secret(url), shown_url(url)  # a URL can hold a password
        self._key = _checked(key)
        self._settings: Json = {"temperature": temperature, "max_tokens": max_tokens}
        self._tool_choice = tool_choice
        self._say, self._sleep = say, sleep
        self._conceded: frozenset[str] = frozenset()
        self._said: set[str] = set()
        self._lock = threading.Lock()
        headers = {"Authorization": f"Bearer {self._key.reveal()}"} if self._key else {}
        limits = httpx.Limits(max_connections=lanes, max_keepalive_connections=lanes)
        self._client = httpx.Client(headers=headers, timeout=timeout_s, limits=limits)
        self._threads = ThreadPoolExecutor(lanes, thread_name_prefix="endpoint")

    def __repr__(self) -> str:
        return f"EndpointBackend({self._where!r}, {self._model!r})"

    @property
    def model(self) -> str:
        return self._model

    @property
    def lanes(self) -> int:
        return self._lanes

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries at the same time. Raises the first `BackendError`, once all have ended."""
        answers = [self._threads.submit(self._answer, query) for query in queries]
        wait(answers)
        return [answer.result() for answer in answers]

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def _answer(self, query: Query) -> Reply:
        """Send the query, with one concession more each time the endpoint refuses it."""
        conceded = self._conceded
        unnamed = iter(UNNAMED)
        while True:
            body = self._body(query, conceded)
            response = self._sent(body, query.lane)
            if _has_message(response):
                self._remember(conceded)
                reply = _reply(response.json())
                if reply.call is None and body.get("tool_choice") == "required":
                    self._say_once(FORCES_NOTHING, "accepts tool_choice and forces no call: turns without a call occur")
                return reply
            if (more := self._further(response, body, conceded, unnamed)) is None:
                raise self._refused(response, query.lane)
            conceded = more

    def _body(self, query: Query, conceded: frozenset[str]) -> Json:
        body: Json = {
            "model": self._model,
            "messages": list(query.messages),
            **({"tools": list(query.tools), "tool_choice": self._tool_choice} if query.tools else {}),
            "seed": query.seed % SEED_LIMIT,
            **self._settings,
        }
        for name in sorted(conceded):
            CONCESSIONS[name][0](body)
        return body

    def _further(
        self, response: httpx.Response, sent: Json, conceded: frozenset[str], unnamed: Iterator[tuple[str, ...]]
    ) -> frozenset[str] | None:
        """Return the concessions to try next, or None if there are none left."""
        if response.status_code in TRANSIENT | FINAL or not 400 <= response.status_code < 500:
            return None
        useful = [name for name in CONCESSIONS if name not in conceded and self._changes(name, sent)]
        if named := [name for name in useful if name in response.text]:
            return conceded | {named[0]}
        if response.status_code not in (400, 422):
            return None
        return next((self._conceded | {*names} for names in unnamed if {*names} & {*useful}), None)

    def _changes(self, name: str, sent: Json) -> bool:
        changed = dict(sent)
        CONCESSIONS[name][0](changed)
        return changed != sent

    def _remember(self, conceded: frozenset[str]) -> None:
        for name in sorted(conceded):
            self._say_once(name, f"refuses {name}: {CONCESSIONS[name][1]}")
        with self._lock:
            self._conceded |= conceded

    def _say_once(self, what: str, text: str) -> None:
        with self._lock:
            is_new = what not in self._said
            self._said.add(what)
        if is_new:
            self._say(f"{self._where} {text}")

    def _sent(self, body: Json, lane: int) -> httpx.Response:
        """Return the response to the request, after retries. Raises `BackendError` if there is no response to use."""
        for retry in range(RETRIES + 1):
            pause = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**retry)
            try:
                response = self._client.post(self._url.reveal(), json=body)
            except httpx.RequestError as error:
                if retry >= _retries_after(error):
                    raise self._unreached(error, lane) from error
            else:
                if not _is_transient(response):
                    return response
                if retry == RETRIES:
                    raise self._refused(response, lane)
                pause = _retry_after(response.headers.get("retry-after", ""), pause)
            self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _unreached(self, error: httpx.RequestError, lane: int) -> BackendError:
        hint = "check that the server runs at this address"
        if isinstance(error, httpx.TimeoutException):
            hint = "raise the timeout, or lower --concurrency if the server answers one request after another"
        return BackendError(self._where, f"{type(error).__name__}: {self._hidden(str(error))}", hint, lane)

    def _refused(self, response: httpx.Response, lane: int) -> BackendError:
        status = response.status_code
        problem = f"HTTP {status}: {self._hidden(' '.join(response.text.split()))[:BODY_CHARS]}"
        if status < 300:
            problem = f"no chat completion: {problem}"
        default = "see the server's log" if status >= 500 else "check that this is a chat completions endpoint"
        return BackendError(self._where, problem, HINTS.get(status, default), lane)

    def _hidden(self, text: str) -> str:
        return text.replace(self._key.reveal(), "***") if self._key else text


def _url(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("base_url", shown_url(base_url), "must be an http or https URL")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return parts._replace(path=f"{path}/chat/completions").geturl()


def _checked(key: str | None) -> Secret | None:
    """Validate the key here, because the library's error would show it."""
    if key and not is_key(key):
        raise ConfigError("key", describe_key(key), KEY_RULE)
    return Secret(key) if key else None


def _retries_after(error: httpx.RequestError) -> int:
    return next((most for kind, most in RETRIES_WITHOUT_RESPONSE.items() if isinstance(error, kind)), RETRIES)


def _is_transient(response: httpx.Response) -> bool:
    """Return True if the same request may succeed later. A router can report a provider's failure with status 200."""
    status = response.status_code
    if status < 300:
        return not _has_message(response) and "error" in response.text and not response.text.lstrip().startswith("<")
    return status >= 500 or (status in TRANSIENT and NO_MONEY not in response.text)


def _has_message(response: httpx.Response) -> bool:
    """Return True for a chat completion."""
    try:
        return response.is_success and isinstance(response.json()["choices"][0]["message"], dict)
    except (ValueError, KeyError, IndexError, TypeError):
        return False


def _retry_after(header: str, otherwise: float) -> float:
    """Return the seconds that `Retry-After` asks for, as a number or a date, within the bound."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(timezone.utc)).total_seconds()
        except (ValueError, TypeError):  # no date, or one without a time zone
            return otherwise
    return min(LONGEST_WAIT_S, max(0.0, seconds))


def _reply(answer: Json) -> Reply:
    message = answer["choices"][0]["message"]
    text, call = _text(message.get("content")), None
    if calls := message.get("tool_calls"):
        function = calls[0].get("function") or {}
        arguments, raw = _arguments(function.get("arguments"))
        text, call = "\n".join(filter(None, (text, raw))), Call(function.get("name") or "", arguments)
    usage = answer.get("usage") or {}
    return Reply(
        text=text,
        call=call,
        prompt=usage.get("prompt_tokens") or 0,
        completion=usage.get("completion_tokens") or 0,
        cached=_cached(usage, answer.get("timings") or {}),
    )


def _text(content: object) -> str:
    """Return the text of a message's content: a string, parts, or nothing."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content if isinstance(content, str) else ""


def _arguments(given: object) -> tuple[Json, str]:
    """Return the arguments, and the raw text if it is no JSON object: the agent then gets the tool's own error."""
    if isinstance(given, dict):
        return given, ""
    raw = given if isinstance(given, str) else ""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return (found, "") if isinstance(found, dict) else ({}, raw)


def _cached(usage: Json, timings: Json) -> int | None:
    """Return the prompt tokens from a cache, as OpenAI's usage or llama.cpp's timings report them."""
    details = usage.get("prompt_tokens_details") or {}
    found: int | None = details.get("cached_tokens", timings.get("cache_n"))
    return found
