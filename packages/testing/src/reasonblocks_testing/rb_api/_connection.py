"""Serves the connections of a scripted rb-api over HTTP/1.1, with the fault that is switched on."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

from reasonblocks.wire import PREFIX
from reasonblocks_server.settings import MAX_BODY_BYTES

from ._app import App
from ._faults import Drip, Fault, Hang, HangUp, Lying, Slow, Status, corrupt
from ._records import Received, Requests

MAX_DIGITS = 20
"""Digits of a length that are read."""
STREAM = "/stream"
"""The end of the paths of answers that last."""


class Faults:
    """The current fault. A change of it wakes the answers that wait."""

    def __init__(self) -> None:
        self._lock, self._changed = threading.Lock(), threading.Event()
        self._fault: Fault | None = None
        self._at, self._left = "", 0.0

    def set(self, fault: Fault | None, at: str, times: int | None) -> None:
        with self._lock:
            self._fault, self._at, self._left = fault, at, float("inf") if times is None else times
        self.wake()

    def wake(self) -> None:
        """End all current waits."""
        with self._lock:
            self._changed.set()
            self._changed = threading.Event()

    def take(self, path: str) -> tuple[Fault | None, threading.Event]:
        """Return the fault of a request, and the event that ends its waits."""
        with self._lock:
            if self._fault is None or not path.startswith(self._at) or self._left <= 0:
                return None, self._changed
            self._left -= 1
            return self._fault, self._changed


class Counted:
    """The input of a connection, which counts the bytes that are read."""

    def __init__(self, file: Any) -> None:
        self._file, self._count = file, 0

    def readline(self, limit: int = -1) -> bytes:
        return self._counted(self._file.readline(limit))

    def read(self, size: int) -> bytes:
        return self._counted(self._file.read(size))

    def close(self) -> None:
        self._file.close()

    def taken(self) -> int:
        """Return the bytes read since the last call."""
        found, self._count = self._count, 0
        return found

    def _counted(self, data: bytes) -> bytes:
        self._count += len(data)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer; `missing` bytes of its body are declared and not sent. Header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    def whole(self, *, close: bool) -> bytes:
        phrase = HTTPStatus(self.status).phrase if self.status in {*HTTPStatus} else ""
        length = {"content-length": str(len(self.body) + self.missing)}
        given = {
            "content-type": "application/json",
            **self.headers,
            **length,
            **({"connection": "close"} if close else {}),
        }
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{name}: {value}" for name, value in given.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status=status, body=json.dumps({"detail": detail}).encode(), headers=headers or {})


def without_prefix(path: str) -> str:
    """Return the path of a route without the `/v1` before it."""
    return path.removeprefix(PREFIX) if path.startswith(f"{PREFIX}/") else path


def parsed(sent: bytes, encoding: str) -> Any:
    """Return a body as JSON; None if it is none."""
    try:
        return json.loads(gzip.decompress(sent) if encoding == "gzip" else sent)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error):
        return None


class Connection(BaseHTTPRequestHandler):
    """Serves one client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer that drips is many small writes

    def __init__(self, app: App, requests: Requests, faults: Faults, *connection: Any) -> None:
        self._app, self._requests, self._faults = app, requests, faults
        super().__init__(*connection)

    def setup(self) -> None:
        super().setup()
        self._input = Counted(self.rfile)
        self.rfile = self._input  # type: ignore[assignment]  # has all that a handler reads with

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        length = self._length()
        refused = length if isinstance(length, Answer) else None
        if refused is not None:
            self.close_connection = True  # the body is not read: it would pass for the next request
        sent = self.rfile.read(length) if isinstance(length, int) else b""
        request = Received(
            method=self.command,
            path=without_prefix(path),
            query=dict(parse_qsl(query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=parsed(sent, self.headers.get("Content-Encoding", "")),
            up=self._input.taken(),
        )
        number = self._requests.add(request)
        fault, ended = self._faults.take(request.path)
        if isinstance(fault, (Hang, HangUp)):
            self.close_connection = True
            if isinstance(fault, Hang):
                ended.wait()
            return
        answer = self._with(fault, refused, request, sent)
        self.close_connection = self.close_connection or answer.missing > 0
        whole = answer.whole(close=self.close_connection)
        self._requests.answered(number, answer.status, len(whole))  # before a client can read the answer
        for part in _parts(whole, fault, ended):
            self.wfile.write(part)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _length(self) -> int | Answer:
        """Return the length of the body, or the answer that refuses it."""
        given = set(self.headers.get_all("Content-Length", ["0"]))
        if self.headers.get("Transfer-Encoding") is not None:
            return refusal(411, "the body needs a Content-Length")
        length = given.pop()
        if given or not length.isdecimal():
            return refusal(400, "the Content-Length is not a number")
        if len(length) > MAX_DIGITS or int(length) > MAX_BODY_BYTES:
            return refusal(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        return int(length)

    def _with(self, fault: Fault | None, refused: Answer | None, request: Received, sent: bytes) -> Answer:
        """Return the answer as a fault changes it."""
        if isinstance(fault, Status):
            return refusal(fault.code, fault.detail, fault.headers)
        answer = refused or self._answer(request, sent)
        if isinstance(fault, Lying):
            lie = corrupt(fault.lie, answer.body)
            return Answer(status=200, body=lie.body, headers=lie.headers, missing=lie.missing)
        return answer

    def _answer(self, request: Received, sent: bytes) -> Answer:
        if request.path.endswith(STREAM):
            return refusal(501, "a scripted rb-api has no streams")
        found = self._app.answer(request.method, self.path, request.headers, sent)
        return Answer(status=found.status_code, body=found.content, headers=dict(found.headers))

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _parts(whole: bytes, fault: Fault | None, ended: threading.Event) -> Iterator[bytes]:
    """Yield the answer in the parts in which a fault sends it, and the rest at once when the fault ends."""
    if isinstance(fault, Slow):
        ended.wait(fault.seconds)
    if not isinstance(fault, Drip):
        yield whole
        return
    for at in range(len(whole)):
        if ended.wait(fault.seconds):
            yield whole[at:]
            return
        yield whole[at : at + 1]
