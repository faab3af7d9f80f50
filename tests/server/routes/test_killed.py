"""A server that is killed while it stores events has everything that it acknowledged, and a repeat changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.server.routes.world import Body, finish, start, step
from tests.server.serving import Served, served

RUNS, BATCH = 4, 20
KILLED_AFTER = 40
"""Acknowledged batches of all runs together."""


class Sender:
    """Sends the batches of runs in turn, each run from a thread of its own, until the server is gone."""

    def __init__(self, server: Served, key: str) -> None:
        self.server, self.key = server, key
        self.acknowledged: dict[str, int] = {}
        self.enough = threading.Event()

    def send(self, run_id: str) -> None:
        number = 0
        while True:
            try:
                status, answer = self.server.ask("/v1/monitor/events", {"events": batch(run_id, number)}, key=self.key)
            except (URLError, HTTPException, ConnectionError):
                return
            assert (status, answer["accepted"]) == (200, BATCH)
            number += 1
            self.acknowledged[run_id] = number
            if sum(self.acknowledged.values()) >= KILLED_AFTER:
                self.enough.set()


def batch(run_id: str, number: int) -> list[Body]:
    """The events of a batch: the first one starts the run."""
    steps = [step(run_id, number * BATCH + index, observation="x" * 500) for index in range(BATCH)]
    return [start(run_id), *steps[1:]] if number == 0 else steps


def kill(server: Served) -> None:
    """Kill the workers and their parent at once, as a machine without memory does."""
    for process in [*server.workers(), server.process.pid]:
        os.kill(process, signal.SIGKILL)
    server.process.wait(10)


def stored(server: Served, key: str, run_id: str) -> Any:
    """Return the indexes of a run's steps."""
    found: list[int] = []
    after: int | None = -1
    while after is not None:
        status, page = server.ask(f"/v1/monitor/runs/{run_id}?after={after}", key=key)
        assert status == 200
        found += [one["step_index"] for one in page["steps"]]
        after = page["next_after"]
    return found


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(RUNS)]
    with served(tmp_path) as server:
        key = server.key
        assert key is not None
        sender = Sender(server, key)
        with ThreadPoolExecutor(RUNS) as threads:
            done = [threads.submit(sender.send, name) for name in names]
            assert sender.enough.wait(60)
            kill(server)
        for one in done:
            one.result()
    with served(tmp_path) as server:
        for name in names:
            acknowledged = sender.acknowledged[name]
            expected = range(1, acknowledged * BATCH)
            found = stored(server, key, name)
            assert found[: len(expected)] == list(expected), "an acknowledged batch is missing"
            assert len(found) in (len(expected), len(expected) + BATCH), "half of a batch is there"
            for number in range(acknowledged):
                status, answer = server.ask("/v1/monitor/events", {"events": batch(name, number)}, key=key)
                assert (status, answer) == (200, {"accepted": 0, "repeated": BATCH, "refused": []})
            assert stored(server, key, name) == found
            assert server.ask("/v1/monitor/events", {"events": [finish(name)]}, key=key)[1]["accepted"] == 1
