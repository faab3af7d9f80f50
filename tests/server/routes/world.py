"""A server that listens on 127.0.0.1 in a thread, and clients of its orgs."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from reasonblocks_server import Settings, create_app
from reasonblocks_server._server import Server
from reasonblocks_server._values import SCOPES, Scope

Body = dict[str, Any]
_orgs = itertools.count(1)


@dataclass(frozen=True)
class Caller:
    """A key, and the requests that it makes."""

    http: httpx.Client
    key: str
    key_id: str
    org_id: str

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        return self.http.request(method, f"/v1{path}", headers=headers, **options)

    def get(self, path: str, **options: Any) -> Any:
        """Return the body of an answer with status 200."""
        return self._body(self("GET", path, **options), 200)

    def post(self, path: str, body: object, status: int = 200) -> Any:
        return self._body(self("POST", path, json=body), status)

    def _body(self, answer: httpx.Response, status: int) -> Any:
        assert answer.status_code == status, answer.text
        return answer.json()

    def send(self, *events: Mapping[str, Any]) -> Body:
        """Send a batch of events, none of which is refused."""
        body: Body = self.post("/monitor/events", {"events": list(events)})
        assert body["refused"] == []
        return body


@dataclass(frozen=True)
class World:
    """A running server. Every test has orgs of its own."""

    url: str
    app: FastAPI
    http: httpx.Client = field(repr=False)

    @property
    def server(self) -> Server:
        server: Server = self.app.state.server
        return server

    def caller(self, *scopes: Scope, org: str | None = None, project: str | None = None) -> Caller:
        """Return a caller with a new key, by default with all scopes and of a new org."""
        org = org or f"org-{next(_orgs)}"
        row, key = self.server.storage.keys.add(
            org, name="test", scopes=scopes or SCOPES, project_id=project, now=time.time()
        )
        return Caller(self.http, key, row.key_id, org)


@contextmanager
def running(data: Path, **settings: Any) -> Iterator[World]:
    """Run a server whose limits of requests are out of reach."""
    with _bound() as listening:
        app = create_app(Settings(**{"data": data, "rate_per_second": 1e6, "burst": 1_000_000, **settings}))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, args=([listening],), name="server")
        thread.start()
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            until(lambda: server.started or not thread.is_alive())
            with httpx.Client(base_url=url, trust_env=False, timeout=20) as http:
                world = World(url, app, http)
                yield world
                world.server.live.end_streams()
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _bound() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        yield listening


def until(is_done: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something that another thread does is done."""
    ends = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < ends, "that took too long"
        time.sleep(0.01)


def start(run_id: str, **fields: Any) -> Body:
    """A `run_start` event."""
    return {"event": "run_start", "timestamp": 1_000.0, "run_id": run_id, "framework": "custom", **fields}


def step(run_id: str, index: int, **fields: Any) -> Body:
    """A `step` event."""
    metadata = {"fsm_state": "FAST", "difficulty": 0.2, "gate_decision": "quiet", **fields.pop("metadata", {})}
    return {
        "event": "step",
        "timestamp": 1_001.0 + index,
        "run_id": run_id,
        "step_index": index,
        "thought": f"thought {index}",
        "metadata": metadata,
        **fields,
    }


def finish(run_id: str, outcome: str = "success", **fields: Any) -> Body:
    """A `run_finish` event."""
    return {"event": "run_finish", "timestamp": 2_000.0, "run_id": run_id, "outcome": outcome, **fields}
