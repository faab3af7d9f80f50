"""Wherever an interrupt comes, no lock of the threads' store stays held, in any thread and in a forked process."""

from __future__ import annotations

import gc
import itertools
import threading
from pathlib import Path

import pytest

from reasonblocks_threads import Actor, Cause, Threads
from reasonblocks_threads.engine import Worker
from reasonblocks_threads.stores._sqlite import SqliteStore
from tests.interrupts import Case, left_held

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""CPython reports an interrupt in a finaliser so, and a connection that an interrupt closed by dropping it."""
BUSY_S = 2.0
numbers = itertools.count()


def cause() -> Cause:
    return Cause(kind="proposal", key=f"key {next(numbers)}", title="Deploy web?")


def threads_case(path: Path | None, *, drains: bool, works_with: bool) -> Case:
    threads, workers = Threads(SqliteStore(path, busy_s=BUSY_S)), list[Worker]()
    threads.open(cause())

    def commands() -> None:
        thread = threads.open(cause())
        threads.note(thread.id, "a note", by=Actor.person("mara"))
        threads.get(thread.id)
        threads.cards()
        threads.wait(thread.id, 0.01)
        threads.mailbox().waiting("run")
        threads.close()
        threads.list()

    def step() -> None:
        threads.drain(limit=2)

    def block() -> None:
        workers.append(threads.worker(threads=2))
        with workers[-1]:
            threads.open(cause())

    def works() -> None:
        thread = threads.open(cause())
        threads.drain()  # but for what a worker does whose end was interrupted
        assert threads.wait(thread.id, BUSY_S, until=lambda it: it.phase.waits).phase.waits
        assert len(threads.cards()) > 0

    def close() -> None:
        for worker in workers:
            worker.__exit__(None, None, None)  # its end may have been interrupted
        for thread in threading.enumerate():
            if thread.name == "reasonblocks-threads" and thread.is_alive():
                thread.join()  # or it would open the store again
        threads.close()

    operation = block if works_with else step if drains else commands
    return Case(operation=operation, works=works, close=close)


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("what", ["commands", "a step", "a worker"])
def test_the_store_of_threads_is_free(tmp_path: Path, in_memory: bool, what: str) -> None:
    def made() -> Case:
        path = None if in_memory else tmp_path / f"{next(numbers)}.db"
        return threads_case(path, drains=what == "a step", works_with=what == "a worker")

    assert left_held(made)[1] == []
    gc.collect()  # an interrupt between SQLite's answer and our variable leaves a connection, which this closes
