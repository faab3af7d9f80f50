"""The loopback server: its connections and their threads, and the answers to their requests."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import chain, count
from typing import Any, Protocol, TypeAlias

from ..loopback import Listener
from ..script import Script, Turn
from . import _chat, _messages, _responses
from ._asked import ApiName, Asked, Item, Json, NewId, Past, ProviderError, asked_of
from ._messages import count_response
from ._responses import chains

PATHS: Mapping[str, ApiName] = {
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
}
COUNT_TOKENS = "/v1/messages/count_tokens"
ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Api(Protocol):
    """The interface of the modules that implement an API."""

    def items(self, body: Json) -> Iterator[Item]: ...
    def whole(self, asked: Asked, turn: Turn, new_id: NewId) -> Json: ...
    def events(self, answer: Json, asked: Asked, /) -> Iterator[bytes]: ...


APIS: Mapping[ApiName, Api] = {"responses": _responses, "chat": _chat, "messages": _messages}


def error_body(path: str, message: str, status: int, code: str | None) -> Json:
    kind = ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


Answer: TypeAlias = Callable[[Asked], Turn]
"""The model's answer to a request. It is called in the request's own thread, so it may block."""


def scripted(scripts: Sequence[Script]) -> Answer:
    """Return an answer that follows a script: the script whose task opens the conversation, else the first."""

    def answer(asked: Asked) -> Turn:
        known = (script for script in scripts if script.task in (asked.task, *asked.opening))
        turns = next(known, scripts[0]).turns
        if asked.answers >= len(turns):
            raise ProviderError(f"the script has {len(turns)} turns, and was asked for turn {asked.answers}")
        return turns[asked.answers]

    return answer


class Responder:
    """Records requests to any API, in any thread, and answers them."""

    def __init__(self, answer: Answer | Script | Sequence[Script]) -> None:
        scripts = (answer,) if isinstance(answer, Script) else answer
        self._answer = scripts if callable(scripts) else scripted(scripts)
        self._lock = threading.Lock()
        self._requests: list[Asked] = []
        self._past: dict[str, Past] = {}
        self._failures: Counter[tuple[str, int]] = Counter()
        self._numbers = count()
        self._mark = secrets.token_hex(4)  # ids must differ from those of a server that this one replaces

    @property
    def requests(self) -> list[Asked]:
        with self._lock:
            return list(self._requests)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{self._mark}{next(self._numbers):06}"

    def take(self, api: ApiName, body: Json, headers: Mapping[str, str]) -> Asked:
        """Record the request. Raises `ProviderError` if it continues an unknown response."""
        with self._lock:
            request = asked_of(api, body, headers, list(APIS[api].items(body)), self._past_of(api, body))
            self._requests.append(request)
            return request

    def answer(self, request: Asked) -> Json:
        """Return the whole answer. The caller sends an error that the turn or the script raises."""
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
        """Fail the first attempts. The count restarts after the answer, so that a script's second run fails alike."""
        place = (request.task, request.answers)
        with self._lock:
            failed = self._failures.pop(place, 0)
            if failed < failures:
                self._failures[place] = failed + 1
                raise ProviderError("try again", status=500)


class ScriptedServer:
    """A model provider on 127.0.0.1, within its `with` block.

    `answer` returns the turn that answers a request, or is a script (or several, distinguished by their tasks) whose
    turn n answers a conversation with n answers. `Turn.error`, and an exception that `answer` raises, becomes an HTTP
    error in the provider's form: a `ProviderError` has a status, any other is a 400 with its text. `Turn.failures`
    requests for a turn get a 500 before one is answered.
    """

    def __init__(self, answer: Answer | Script | Sequence[Script]) -> None:
        self._responder = Responder(answer)
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        """The address `http://127.0.0.1:PORT`. Raises `RuntimeError` outside its `with`."""
        if self._listener is None:
            raise RuntimeError("the server is not running: use it as a context manager")
        return f"http://127.0.0.1:{self._listener.port}"

    @property
    def openai_url(self) -> str:
        """The `base_url` of an OpenAI client."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` of an Anthropic client."""
        return self.url

    @property
    def requests(self) -> list[Asked]:
        """All requests for an answer so far, in order of arrival."""
        return self._responder.requests

    def close(self) -> None:
        """End all connections. An answer that is unfinished after 1 s is abandoned."""
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    def __enter__(self) -> ScriptedServer:
        self._listener = Listener(partial(_Connection, self._responder))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Connection(BaseHTTPRequestHandler):
    """Serves one client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is several small writes: each would wait some 40 ms for the previous

    def __init__(self, responder: Responder, *connection: Any) -> None:
        self._responder = responder
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._refuse(404, f"{self.path} is not served here")

    def do_HEAD(self) -> None:
        """Answer a health check."""
        self._head(200, {"Content-Length": "0"})

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            body = json.loads(sent)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self._refuse(400, "the body is not a JSON object")
        elif path == COUNT_TOKENS:
            self._send(200, count_response(body))
        elif path not in PATHS:
            self._refuse(404, f"{path} is not served here")
        else:
            self._answer(PATHS[path], body)

    def _answer(self, api: ApiName, body: Json) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            asked = self._responder.take(api, body, headers)
            answer = self._responder.answer(asked)
        except ProviderError as exc:
            self._refuse(exc.status, str(exc), exc.code)
        except Exception as exc:  # noqa: BLE001 - the client receives any error of a script
            self._refuse(400, str(exc) or type(exc).__name__)
        else:
            if asked.stream:
                self._stream(APIS[api].events(answer, asked))
            else:
                self._send(200, answer)

    def _send(self, status: int, body: Json) -> None:
        sent = json.dumps(body).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(sent))})
        self.wfile.write(sent)

    def _stream(self, events: Iterable[bytes]) -> None:
        self._head(200, {"Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked"})
        for event in chain(events, [b""]):  # an empty chunk is the last
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))

    def _refuse(self, status: int, message: str, code: str | None = None) -> None:
        self._send(status, error_body(self.path, message, status, code))

    def _head(self, status: int, headers: dict[str, str]) -> None:
        request_id = self._responder.new_id("req")
        given = {**headers, "request-id": request_id, "x-request-id": request_id}
        if status >= 400:
            given["retry-after-ms"] = "1"  # without this header, clients wait half a second or more
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""
