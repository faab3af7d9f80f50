"""A server that is killed while it stores events keeps all acknowledged ones, and a repeat changes nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.server.routes.world import Body, Caller, finish, running_world, start, step
from tests.server.running import SECONDS

SERVER = """
import socket, sys, uvicorn
from reasonblocks_server import Settings, create_app

app = create_app(Settings(data=sys.argv[1], rate_per_second=1e6, burst=1_000_000))
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([socket.socket(fileno=int(sys.argv[2]))])
"""
RUNS, BATCH = 4, 20
KILLED_AFTER = 24
"""Acknowledged batches of all runs together."""


@contextmanager
def process(data: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a server in a process of its own; yield it with its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        command = [sys.executable, "-c", SERVER, str(data), str(number)]
        with subprocess.Popen(command, pass_fds=[number]) as server:
            try:
                yield server, f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.kill()


class Senders:
    """Send the batches of runs, each run from a thread of its own, until the server is gone."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        self.enough = threading.Event()

    def send(self, caller: Caller, run_id: str) -> None:
        number = 0
        while True:
            try:
                answer = caller("POST", "/monitor/events", json={"events": batch(run_id, number)})
            except httpx.TransportError:
                return
            assert (answer.status_code, answer.json()["accepted"]) == (200, BATCH)
            number += 1
            self.acknowledged[run_id] = number
            if sum(self.acknowledged.values()) >= KILLED_AFTER:
                self.enough.set()


def batch(run_id: str, number: int) -> list[Body]:
    """The events of a batch: the first one starts the run."""
    steps = [step(run_id, number * BATCH + index, observation="x" * 500) for index in range(BATCH)]
    return [start(run_id), *steps[1:]] if number == 0 else steps


def stored(caller: Caller, run_id: str) -> list[int]:
    """Return the indexes of a run's steps."""
    return [one["step_index"] for one in caller.steps(run_id)]


def check(caller: Caller, run_id: str, acknowledged: int) -> None:
    """Assert that all acknowledged batches of a run are there, and that sending them again changes nothing."""
    found, expected = stored(caller, run_id), list(range(1, acknowledged * BATCH))
    assert found[: len(expected)] == expected, "an acknowledged batch is missing"
    assert len(found) in (len(expected), len(expected) + BATCH), "half of a batch is there"
    for number in range(acknowledged):
        assert caller.send(*batch(run_id, number)) == {"accepted": 0, "repeated": BATCH, "refused": []}
    assert stored(caller, run_id) == found
    assert caller.send(finish(run_id))["accepted"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a process inherits a socket by its number on POSIX only")
def test_acknowledged_events_survive_a_kill(tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(RUNS)]
    with running_world(tmp_path) as world:
        before = world.caller()
    senders = Senders()
    with process(tmp_path) as (server, url), httpx.Client(base_url=url, trust_env=False, timeout=SECONDS) as http:
        caller = Caller(http, before.key, before.key_id, before.org_id)
        with ThreadPoolExecutor(RUNS) as threads:
            done = [threads.submit(senders.send, caller, name) for name in names]
            assert senders.enough.wait(2 * SECONDS)
            server.kill()
        for one in done:
            one.result()
    with running_world(tmp_path) as world:
        caller = Caller(world.http, before.key, before.key_id, before.org_id)
        for name in names:
            check(caller, name, senders.acknowledged[name])
