"""Worker processes behind one socket: they are killed and restarted under clients, and nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Served, ended, kill, served
from tests.server.workers.clients import BATCH, BATCHES, STEPS, alone, client, decided, indices, send, take
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


def test_no_acknowledged_event_is_lost_when_workers_are_killed(two: Served) -> None:
    halfway = threading.Event()

    def stream(run_id: str) -> None:
        for number in range(BATCHES):
            send(two, run_id, number)
            if number == BATCHES // 4:
                halfway.set()

    names = ["killed-1", "killed-2"]
    threads = [threading.Thread(target=stream, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    halfway.wait(30)
    for worker in two.workers():
        kill(worker)
    for thread in threads:
        thread.join(60)
    for name in names:
        assert indices(two, name) == list(range(BATCHES * BATCH))


def test_a_run_is_evaluated_exactly_by_the_workers_that_are_left(two: Served) -> None:
    with client(two) as rb, rb.session(run_id="moved", task="Fix the tests.") as session:
        completed = None
        for number in range(STEPS):
            if number in (STEPS // 3, 2 * STEPS // 3):
                for worker in two.workers()[: 1 if number == STEPS // 3 else 2]:
                    kill(worker)
            completed = take(session, number, completed)
        assert decided(session) == alone()


def test_a_run_goes_on_over_a_restart_of_the_server(two: Served, home: Path) -> None:
    port = two.url.rpartition(":")[2]
    with client(two) as rb:
        session = rb.session(run_id="restarted", task="Fix the tests.")
        completed = None
        for number in range(STEPS // 2):
            completed = take(session, number, completed)
        assert two.stop() == 0
        with served(home, "--port", port, key=two.key) as again:
            for number in range(STEPS // 2, STEPS):
                completed = take(session, number, completed)
            assert decided(session) == alone()
            session.finish("success")
            rb.close()  # sends what is left
            run = again.ask("/monitor/runs/restarted")[1]["run"]
            assert (run["outcome"], run["steps"]) == ("success", STEPS)


@in_whole
def test_workers_end_when_their_parent_is_killed(home: Path) -> None:
    with served(home) as server:
        (worker,) = server.workers()
        with ended(worker) as gone:
            kill(server.process.pid)
            assert gone()
