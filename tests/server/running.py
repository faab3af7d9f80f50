"""A real server on 127.0.0.1: the application behind uvicorn, in a thread of the test process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from reasonblocks_server import Settings, create_app
from reasonblocks_server.server import Server
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import SCOPES, Scope

ORG = "acme"
SECONDS = 30.0
"""The most time that a start or an end may take on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running server: its address, its parts, and a key of the org "acme" with all scopes."""

    url: str
    server: Server
    key: str

    def make_key(self, *scopes: Scope, org: str = ORG, **options: Any) -> str:
        """Make another key."""
        given: dict[str, Any] = {"name": "test", "now": time.time(), **options}
        return self.server.storage.keys.add(org, scopes=scopes or SCOPES, **given)[1]

    def client(self, key: str | None = None) -> httpx.Client:
        """Return a client with a key; close it."""
        sent = {"Authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=self.url, headers=sent, timeout=SECONDS)


@contextmanager
def stored(folder: Path, **options: Any) -> Iterator[Storage]:
    """Open the database of a data folder without a server."""
    storage = Storage.open(f"sqlite:///{folder / 'server.db'}", **options)
    try:
        storage.migrate()
        yield storage
    finally:
        storage.close()


@contextmanager
def running(data: Path, *, make_key: bool = True, **settings: Any) -> Iterator[Running]:
    """Run a server with its data in a folder until the block ends. Without `make_key` its database is not touched.

    All of its files are in `data`, so that a later server with the same folder continues.
    """
    app = create_app(Settings(**{"data": data, "rate_per_second": 1e6, "burst": 1_000_000, **settings}))
    config = uvicorn.Config(app, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=5)
    serving = uvicorn.Server(config)
    listening = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=serving.run, args=([listening],), name="server")
    thread.start()
    try:
        _wait_for(serving, thread)
        server: Server = app.state.server
        found = Running(url=f"http://127.0.0.1:{listening.getsockname()[1]}", server=server, key="")
        yield replace(found, key=found.make_key()) if make_key else found
    finally:
        serving.should_exit = True
        thread.join(SECONDS)
        listening.close()


def _wait_for(serving: uvicorn.Server, thread: threading.Thread) -> None:
    ends = time.monotonic() + SECONDS
    while not serving.started:
        assert thread.is_alive(), "the server ended at its start"
        assert time.monotonic() < ends, "the server did not start"
        thread.join(0.005)
