"""Workers that share a socket are killed and restarted while clients use them, and no acknowledged event is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Served, ended, eventually, kill, served
from tests.server.workers.clients import BATCH, BATCHES, STEPS, alone, client, decided, indices, stream_all, take
from tests.whole import in_whole


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def two(home: Path) -> Iterator[Served]:
    """A server with two workers."""
    with served(home, "--workers", "2") as server:
        yield server


def test_two_workers_run(two: Served) -> None:
    assert len(two.workers()) == 2


KILLS = (4, 9)
"""The steps at which a worker is killed: nothing is told there."""


def test_clients_continue_exactly_while_the_workers_are_killed_one_by_one(two: Served) -> None:
    killed = dict(zip(KILLS, two.workers(), strict=True))
    names = ["killed-1", "killed-2"]
    threads = [threading.Thread(target=stream_all, args=(two, name)) for name in names]
    with client(two) as rb, rb.session(run_id="moved", task="Fix the tests.") as session:
        completed = None
        for number in range(STEPS):
            if number == KILLS[0]:
                for thread in threads:
                    thread.start()
            if number in KILLS:
                kill(killed[number])
            completed = take(session, number, completed)
        found, expected = decided(session), alone()
        lost = [entry for entry, wanted in zip(found, expected, strict=True) if entry != wanted]
        assert {entry[0] for entry in lost} <= {*KILLS}, "no other step is touched"
        assert all(entry[4] == "unavailable" for entry in lost), "its connection was closed under the request"
    for thread in threads:
        thread.join()
    assert [indices(two, name) for name in names] == [list(range(BATCHES * BATCH))] * 2


@in_whole
def test_a_run_continues_after_a_restart_of_the_server(two: Served, home: Path) -> None:
    port = two.url.rpartition(":")[2]
    with client(two) as rb:
        session = rb.session(run_id="restarted", task="Fix the tests.")
        completed = None
        for number in range(STEPS // 2):
            completed = take(session, number, completed)
        assert two.stop(signal.SIGINT) == 0
        with served(home, "--port", port, key=two.key) as again:
            for number in range(STEPS // 2, STEPS):
                completed = take(session, number, completed)
            assert decided(session) == alone()
            session.finish("success")
            assert eventually(lambda: again.ask("/monitor/runs/restarted")[1]["run"]["outcome"] == "success")
            assert again.ask("/monitor/runs/restarted")[1]["run"]["steps"] == STEPS


@in_whole
def test_workers_end_when_their_parent_is_killed(home: Path) -> None:
    with served(home) as server:
        (worker,) = server.workers()
        with ended(worker) as gone:
            kill(server.process.pid)
            assert gone()
