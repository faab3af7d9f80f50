"""Several threads and processes at once: one wins, nothing is given twice, nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from reasonblocks_threads.errors import Conflict, ThreadsError
from reasonblocks_threads.log import fold_all
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import Rows, Thread
from tests.server.postgres import Postgres
from tests.threads.stores.lines import claimed, head, noting, opened, opening, work
from tests.whole import WHOLE

OTHER = Path(__file__).with_name("other_process.py")
ROOT = Path(__file__).parents[3]
SECONDS = 60.0
WORKERS = 4
ROUNDS = 100 if WHOLE else 6


@contextmanager
def stores(database: str, count: int = WORKERS) -> Iterator[list[Store]]:
    found = [open_store(database) for _ in range(count)]
    try:
        yield found
    finally:
        for store in found:
            store.close()


def at_once(given: list[Store], do: Callable[[int, Store], object]) -> None:
    """Call `do` with each store in a thread of its own, all from the same moment on."""
    barrier, errors = threading.Barrier(len(given)), list[Exception]()

    def work(number: int, store: Store) -> None:
        try:
            barrier.wait(SECONDS)
            do(number, store)
        except (ThreadsError, AssertionError) as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=each) for each in enumerate(given)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert errors == []


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process, and yield it when it is ready to begin."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(ROOT), *sys.path])}
    command = [sys.executable, os.fspath(OTHER), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def begin(started: subprocess.Popen[str]) -> IO[str]:
    """Let a process begin, and return what it prints."""
    assert started.stdin is not None
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    started.stdin.write("\n")
    started.stdin.flush()
    return started.stdout


def printed_by_two(what: str, database: str, count: int) -> list[list[str]]:
    """Return what two processes print that begin at the same moment."""
    with process(what, database, "a", str(count)) as one, process(what, database, "b", str(count)) as other:
        for each in (one, other):
            begin(each)
        found = [each.communicate(timeout=SECONDS)[0].splitlines() for each in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0)
    return found


def test_a_new_file_may_be_used_by_many_at_once(tmp_path: Path) -> None:
    for round in range(2 * ROUNDS):
        with stores(os.fspath(tmp_path / f"{round}.db")) as found:
            at_once(found, lambda number, store: opened(store, f"k{number}"))
            with found[0].read() as reading:
                assert reading.live_count("default") == WORKERS


def test_a_new_database_may_be_used_by_many_at_once(postgres: Postgres) -> None:
    with stores(postgres.new_database()) as found:
        at_once(found, lambda number, store: opened(store, f"k{number}"))
        with found[0].read() as reading:
            assert reading.live_count("default") == WORKERS


def test_of_threads_that_append_to_one_version_one_wins(database: str) -> None:
    with stores(database) as found:
        thread = opened(found[0])
        for _ in range(ROUNDS):
            won: list[Thread] = []

            def append(number: int, store: Store, thread: Thread = thread, won: list[Thread] = won) -> None:
                with suppress(Conflict):
                    won.append(noting(thread, text=str(number), command=f"{number}:{thread.version}").put(store))

            at_once(found, append)
            assert len(won) == 1
            thread = won[0]
        assert head(found[0], thread.id) == thread
        assert thread.version == 1 + ROUNDS


def test_of_threads_that_open_one_key_or_family_one_wins(database: str) -> None:
    with stores(database) as found:
        for round in range(ROUNDS):
            won: list[str] = []

            def open_one(number: int, store: Store, round: int = round, won: list[str] = won) -> None:
                key = "same" if round % 2 else str(number)
                lines = opening(f"{round}:{key}", family=f"{round}")
                try:
                    lines.put(store, command=f"{number}:{round}")
                except Conflict:
                    return
                won.append(lines.id)

            at_once(found, open_one)
            assert len(won) == 1


def test_of_processes_that_append_to_one_version_one_wins(shared: str) -> None:
    count = 300 if WHOLE else 10
    with stores(shared, 1) as (store,):
        thread = opened(store, "shared")
        printed = printed_by_two("race", shared, count)
        won = [line for lines in printed for line in lines]
        assert sorted(won, key=lambda line: int(line.split()[1])) == [
            f"won {version}" for version in range(1, count + 1)
        ]
        with store.read() as reading:
            events = reading.log(thread.id)
            assert reading.head(thread.id) == fold_all(events)
        winners = Counter(str(event.data["text"]) for event in events[1:])
        assert winners == {name: len(lines) for name, lines in zip("ab", printed, strict=True) if lines}


def test_no_work_is_given_twice(database: str) -> None:
    count = 200 if WHOLE else 40
    with stores(database) as found:
        for number in range(count):
            opened(found[0], f"k{number}", Rows(works=(work(),)))
        given: list[str] = []

        def claim(number: int, store: Store) -> None:
            missed = 0
            while missed < 3:
                one = claimed(store, 1.0, lease=f"w{number}")
                missed = missed + 1 if one is None else 0
                if one is not None:
                    given.append(one.id)

        at_once(found, claim)
        assert len(given) == len(set(given)) == count
        with found[0].read() as reading:
            assert {each.attempts for each in reading.works()} == {1}


def test_no_work_is_given_to_two_processes(shared: str) -> None:
    count = 300 if WHOLE else 20
    with stores(shared, 1) as (store,):
        for number in range(count):
            opened(store, f"k{number}", Rows(works=(work(),)))
        given = [line for lines in printed_by_two("claim", shared, 0) for line in lines]
        assert len(set(given)) == len(given)
        left = claimed(store, 1.0)  # a row that was locked at the end is passed over
        assert len(given) + (left is not None) == count


def test_a_feed_that_is_followed_while_others_write_misses_nothing(database: str) -> None:
    count = 60 if WHOLE else 8
    with stores(database, WORKERS) as found:
        followed: list[tuple[str, int]] = []
        positions: list[int] = []
        writers_left = [WORKERS - 1]

        def follow(store: Store) -> None:
            last = False
            while True:
                with store.read() as reading:
                    part = reading.feed(after=positions[-1] if positions else 0, limit=7)
                followed.extend((event.thread_id, event.seq) for event in part)
                positions.extend(event.position or 0 for event in part)
                if not part and last:
                    return
                last = not part and not writers_left[0]

        def do(number: int, store: Store) -> None:
            if not number:
                follow(store)
                return
            try:
                thread = opened(store, f"k{number}")
                for _ in range(count):
                    thread = noting(thread, 3).put(store)
            finally:
                writers_left[0] -= 1

        at_once(found, do)
        assert positions == sorted(set(positions))
        assert len(followed) == len(set(followed)) == (WORKERS - 1) * (1 + 3 * count)
        with found[0].read() as reading:
            assert [(event.thread_id, event.seq) for event in reading.feed(limit=10_000)] == followed


def test_threads_share_one_store(database: str) -> None:
    with stores(database, 1) as (store,):

        def do(number: int, store: Store) -> None:
            thread = opened(store, f"k{number}")
            for _ in range(ROUNDS):
                thread = noting(thread).put(store)
                assert head(store, thread.id) == thread
                store.waiting(f"r{number}")

        at_once([store] * WORKERS, do)
        with store.read() as reading:
            assert [each.version for each in reading.listed()] == [1 + ROUNDS] * WORKERS


def test_a_store_sees_what_processes_write_that_come_and_go(shared: str) -> None:
    with stores(shared, 2) as found:
        first, second = found
        mine = opened(first)
        for name in "ab":
            with first.read() as reading, second.read() as another:
                assert reading.head(mine.id) == another.head(mine.id) == mine
                second.close()
                second.waiting("r")
                with process("look", shared, name, "3") as other:
                    begin(other)
                    theirs = other.communicate(timeout=SECONDS)[0].split()
                    assert other.returncode == 0
                assert len(theirs) == 3
                mine = noting(mine).put(first)
                opened(second, f"second {name}")
            for store in found:
                assert head(store, mine.id) == mine
                assert all(head(store, id) is not None for id in theirs)
        with first.read() as reading:
            assert reading.live_count("default") == 1 + 2 * (3 + 1)


def test_a_killed_process_leaves_whole_transactions(shared: str) -> None:
    acknowledged = 1
    with process("write", shared, "w", "100000") as writer:
        output = begin(writer)
        for _ in range(20):
            acknowledged = int(output.readline().split()[1])
    with stores(shared, 1) as (store,), store.read() as reading:
        (listed,) = reading.listed()
        events = reading.log(listed.id)
        thread = reading.head(listed.id)
        assert thread is not None
        assert thread.version >= acknowledged
        assert thread == fold_all(events)
        assert [each.data["version"] for each in reading.works()] == [thread.version]
        assert len(reading.letters("w")) == (thread.version - 1) // 2
        assert reading.known(events[-1].command_id) is not None
    with stores(shared, 1) as (store,), store.write([thread.id]) as writing:
        last = writing.head(thread.id)
        assert last is not None
        lines = noting(last)
        writing.append(last, lines.after, lines.events, Rows(), lines.known("after all"))
