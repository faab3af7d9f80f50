"""An operator of a real server, the clients of that server, and a proxy that drops answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx

from reasonblocks import ReasonBlocks
from reasonblocks.types import StepLogEntry
from tests.server.running import ORG, SECONDS, Running

TEXT = "Leave the fixtures alone."
SAID = f"An operator of this run says: {TEXT}"
EVALUATE = "/v1/monitors/evaluate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A person with the key of the server, and the HTTP client that the person uses."""

    running: Running
    http: httpx.Client

    def rb(self, **options: Any) -> ReasonBlocks:
        """Return a client of the server, with a deadline that a busy machine keeps."""
        given = {"base_url": self.running.url, "api_key": self.running.key, "strict": True, "step_deadline_ms": 20_000}
        return ReasonBlocks(**{**given, "e_traces_enabled": False, **options})

    def post(self, run_id: str, text: str = TEXT, **more: Any) -> httpx.Response:
        return self.http.post(f"/v1/runs/{run_id}/notes", json={"text": text, **more})

    def say(self, run_id: str, text: str = TEXT, **more: Any) -> str:
        """Write a note, and return its id. The server may record only after its answer that a run takes notes."""
        ends = time.monotonic() + SECONDS
        while (answer := self.post(run_id, text, **more)).status_code in (404, 409) and time.monotonic() < ends:
            pass
        note_id: str = answer.raise_for_status().json()["note_id"]
        return note_id

    def notes(self, run_id: str) -> list[tuple[str, int | None]]:
        """Return the state of each note of a run, and the call that carried it."""
        found = self.http.get(f"/v1/runs/{run_id}/notes").raise_for_status().json()["notes"]
        return [(note["state"], note["told_step"]) for note in found]

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """Return the stored events of a run's calls."""
        events = self.running.server.storage.runs.steps(ORG, run_id)
        return [event for event in events if not event["metadata"].get("final")]

    def check_told(self, run_id: str, note_id: str, log: Sequence[StepLogEntry], call: int) -> None:
        """Check that log, events and note agree on the one call that carried the note."""
        carried = [(entry.step, entry.injection_sources[0]) for entry in log if entry.note_ids == (note_id,)]
        assert carried == [(call, "OperatorInjection")]
        events = self.events(run_id)
        assert len(events) == len(log)
        assert [event["metadata"].get("note_ids") for event in events] == [
            [note_id] if number == call else None for number in range(len(log))
        ]
        assert SAID in events[call]["intervention_texts"]
        assert self.notes(run_id) == [("told", call)]


def carrying(requests: Sequence[str]) -> list[int]:
    """Return how often each request has the note."""
    return [request.count(TEXT) for request in requests]


class LossyLine:
    """A proxy that drops the next answers to evaluations after the server has sent them."""

    def __init__(self, url: str) -> None:
        self.to_lose = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, url))
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), name="lossy line")
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LossyLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(line: LossyLine, url: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            self._pass_on()

        def do_POST(self) -> None:  # the library's name
            self._pass_on()

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            answer = httpx.request(self.command, url + self.path, content=body, headers=kept)
            if self.path == EVALUATE and line.to_lose:
                line.to_lose -= 1
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            for name in ("content-type", "retry-after"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def lossy(url: str) -> Iterator[LossyLine]:
    with LossyLine(url) as line:
        yield line
