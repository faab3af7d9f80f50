"""The callers of a running server's orgs, and the events that they send."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from reasonblocks_server.server import Server
from reasonblocks_server.values import SCOPES, Scope
from tests.server.running import SECONDS, running

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

    def steps(self, run_id: str, limit: int = 500) -> list[Body]:
        """Return the steps of a run, from pages of this length."""
        found: list[Body] = []
        after: int | None = -1
        while after is not None:
            page = self.get(f"/monitor/runs/{run_id}", params={"limit": limit, "after": after})
            found, after = found + page["steps"], page["next_after"]
        return found

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
    server: Server
    http: httpx.Client = field(repr=False)

    def caller(self, *scopes: Scope, org: str | None = None, project: str | None = None) -> Caller:
        """Return a caller with a new key, by default with all scopes and of a new org."""
        org = org or f"org-{next(_orgs)}"
        row, key = self.server.storage.keys.add(
            org, name="test", scopes=scopes or SCOPES, project_id=project, now=time.time()
        )
        return Caller(self.http, key, row.key_id, org)


@contextmanager
def running_world(data: Path, **settings: Any) -> Iterator[World]:
    """Run a server."""
    with running(data, **settings) as one:
        try:
            with httpx.Client(base_url=one.url, trust_env=False, timeout=SECONDS) as http:
                yield World(one.url, one.server, http)
        finally:
            one.server.live.end_streams()


def until(is_done: Callable[[], bool], seconds: float = SECONDS) -> None:
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
