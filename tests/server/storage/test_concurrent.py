"""Writers of the same run lose nothing and store nothing twice, from threads and from processes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from reasonblocks_server.storage import Storage
from tests.server.storage.model import Event, finish, row_of, start, step
from tests.server.storage.other_process import batches
from tests.whole import in_whole

OTHER = Path(__file__).with_name("other_process.py")
SECONDS = 60.0


def events(run: str, length: int) -> list[Event]:
    return [start(run, 1.0), *(step(run, index, tokens=1) for index in range(length)), finish(run)]


def shuffled_batches(seed: int) -> list[list[Event]]:
    """The events of some runs in another order for each writer, so that writers meet in all of them."""
    chance = random.Random(seed)
    found = [event for run in "abcde" for event in events(run, 8)]
    chance.shuffle(found)
    return [found[at : at + 9] for at in range(0, len(found), 9)]


def test_threads_that_write_the_same_runs_store_each_event_once(storage: Storage) -> None:
    answers = []

    def write(seed: int) -> None:
        answers.extend([storage.runs.ingest("o", batch, now=1.0) for batch in shuffled_batches(seed)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sum(answer.accepted for answer in answers) == 50
    assert sum(answer.repeated for answer in answers) == 150
    assert sorted(name for answer in answers for name in answer.finished) == [*"abcde"]
    for run in "abcde":
        row = row_of(storage, run)
        assert row.summary is not None
        assert (row.steps, row.tokens, row.outcome, row.summary["calls"]) == (8, 8, "success", 8)
        assert [body["step_index"] for body in storage.runs.steps("o", run)] == [*range(8)]


@contextmanager
def another(url: str, seed: int, batches: int) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to write."""
    command = [sys.executable, str(OTHER), url, str(seed), str(batches)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def go(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=in_whole)])
def shared(request: pytest.FixtureRequest) -> Iterator[Storage]:
    """A storage that another process uses, too; for PostgreSQL a thread is as far away."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
        return
    found = Storage.open(request.getfixturevalue("postgres").new_database())
    try:
        found.migrate()
        yield found
    finally:
        found.close()


def test_processes_that_write_the_same_run_store_each_step_once(shared: Storage) -> None:
    storage = shared
    with another(storage._db.url.render_as_string(hide_password=False), 1, 10) as process:
        output = go(process)
        accepted = sum(storage.runs.ingest("o", batch, now=1.0).accepted for batch in batches(2, 10))
        accepted += sum(int(line.split()[1]) for line in output)
        assert process.wait(SECONDS) == 0
    row = row_of(storage)
    assert (accepted, row.steps, row.tokens) == (200, 200, 200)
    assert [body["step_index"] for body in storage.runs.steps("o", "r")] == [*range(200)]


def test_a_killed_process_leaves_what_it_acknowledged(sqlite: Storage) -> None:
    with another(f"sqlite:///{sqlite._db.path}", 0, 100_000) as process:
        output = go(process)
        for _ in range(30):
            assert output.readline() == "ok 1\n"
        process.kill()
        acknowledged = 30 + len(output.read().splitlines())
    found = [body["step_index"] for body in sqlite.runs.steps("o", "r", limit=100_000)]
    assert len(found) >= acknowledged
    assert found == [*range(len(found))]
    row = row_of(sqlite)
    assert row.steps == len(found)
    assert sqlite.runs.ingest("o", [step("r", index) for index in found], now=1.0).accepted == 0


def test_one_of_two_holds_a_lock(storage: Storage, url: str) -> None:
    other = Storage.open(url)
    try:
        with storage.lock("sweep") as held, other.lock("sweep") as second, other.lock("another") as third:
            assert (held, second, third) == (True, False, True)
        with other.lock("sweep") as held:
            assert held
    finally:
        other.close()
