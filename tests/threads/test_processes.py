"""Several processes on one file: a command is applied once, an action that is not idempotent runs once at most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.threads.checks import check, check_rest
from tests.threads.driver import Clock, Driver, Hands
from tests.threads.processes import Other, others
from tests.whole import WHOLE, in_whole

PROCESSES = [2, 4] if WHOLE else [2]
THREADS = 100 if WHOLE else 12


def ran(file: Path) -> Counter[str]:
    """Return how often each execution ran, in all processes."""
    journal = file.with_suffix(".journal")
    return Counter(line.split()[1] for line in journal.read_text().splitlines())


def drain_all(workers: list[Other]) -> int:
    """Let all drain at the same time until nothing is due for anyone. Return the number of works."""
    total = 0
    while True:
        for one in workers:
            one.tell("drain")
        done = sum(int(one.hear()) for one in workers)
        total += done
        if not done:
            return total


@pytest.mark.parametrize("number", PROCESSES)
def test_processes_that_drain_one_file_do_each_work_once(tmp_path: Path, number: int) -> None:
    file = tmp_path / "threads.db"
    clock = Clock()
    with Driver(file, clock=clock, hands=Hands(clock, journal=file.with_suffix(".journal"))) as driver:
        driver.mind.action = "touch"
        ids = [driver.open().id for _ in range(THREADS)]
        with others(file, number) as workers:
            drain_all(workers)
        assert {driver.get(id).phase.value for id in ids} == {"done"}
        assert len(ran(file)) == THREADS
        assert {*ran(file).values()} == {1}
        replay = driver.replayed()
        driver.hands.calls = []
        check_rest(driver, replay)
        assert all(matter.spent[0] == 3 for matter in replay.matters.values()), "a call was made twice"
        assert driver.threads.doctor() == ()


@in_whole
@pytest.mark.parametrize("number", PROCESSES)
def test_a_key_that_processes_open_at_the_same_time_is_one_thread(tmp_path: Path, number: int) -> None:
    file = tmp_path / "threads.db"
    with Driver(file) as driver:
        with others(file, number) as agents:
            for n in range(THREADS):
                for one in agents:
                    one.tell("open", f"key{n}")
                assert len({one.hear() for one in agents}) == 1
        replay = driver.replayed()
        check(driver, replay)
        assert len(replay.matters) == THREADS
        assert {matter.version for matter in replay.matters.values()} == {1}


@pytest.mark.parametrize("number", PROCESSES)
@pytest.mark.parametrize("commits", range(1, 25) if WHOLE else [7])
def test_a_killed_process_loses_nothing_that_others_do_not_finish(tmp_path: Path, number: int, commits: int) -> None:
    file = tmp_path / "threads.db"
    clock = Clock()
    with Driver(file, clock=clock, hands=Hands(clock, journal=file.with_suffix(".journal"))) as driver:
        driver.mind.action = "touch"
        ids = [driver.open().id for _ in range(6)]
        with others(file, number) as workers:
            workers[0].tell("die", str(commits))
            assert workers[0].hear() == "soon"
            for one in workers:
                one.tell("drain")
            heard = [one.hear() for one in workers]
            assert heard[0] == "" or workers[0].process.poll() is None
        for _ in range(20):
            clock.advance(31)
            driver.drain()
        replay = driver.replayed()
        ends = Counter(driver.get(id).phase.value for id in ids)
        assert {*ends} <= {"done", "awaiting_redirect"}, ends
        assert ends["awaiting_redirect"] <= 1, "only what ran in the killed process is unknown"
        assert {*ran(file).values()} == {1}
        driver.hands.calls = []
        check_rest(driver, replay)
