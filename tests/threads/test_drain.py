"""The drain and the worker: works are done once, put back after an error, and given up after their attempts."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from reasonblocks_threads import (
    Action,
    Actor,
    Cause,
    Execution,
    Phase,
    Proposal,
    Report,
    StoreUnavailable,
    Thread,
    Threads,
    Work,
)
from reasonblocks_threads.codec import encode
from reasonblocks_threads.engine import Engine
from reasonblocks_threads.engine._drain import MOST, back_off
from reasonblocks_threads.engine.lost import NOTIFIES_LOST, _take_away
from reasonblocks_threads.phases import Addition, Trigger
from reasonblocks_threads.stores import open_store
from tests.threads.driver import MARA, Driver, problem_of
from tests.threads.faults import Locked
from tests.threads.test_upkeep import Bell
from tests.whole import WHOLE

SECONDS = 20.0
"""The most that a test waits for another thread: a failure, not a pause."""


def lose(driver: Driver, kind: str) -> None:
    """Lease the work of this kind as a process that dies, until its attempts are used up."""
    for _ in range(MOST[kind]):
        work = driver.claim()
        assert work.kind == kind
        driver.clock.advance((work.leased_until or 0.0) - driver.clock() + 0.5)


def stop_timer(driver: Driver, thread: Thread) -> None:
    with driver.store.write([thread.id]) as writing:
        writing.move_timer(thread.id, driver.clock() + 1e9)


def begun(driver: Driver, thread: Thread) -> Work:
    """Begin the execution of a thread as another process."""
    work = driver.claim()
    assert thread.approved is not None
    started = {"execution": f"{thread.id}.x{thread.entered}", "hash": thread.approved.hash, "deadline_at": 9e9}
    assert driver.engine.report(work, Addition.EXECUTION_STARTED, started) is not None
    return work


@pytest.mark.parametrize(
    ("phase", "kind", "after", "code"),
    [
        ("awaiting_inference", "infer", "awaiting_intent_clarification", "worker_lost"),
        ("cleaning_up", "clean_up", "done_cleanup_unsuccessful", "cleanup_failed"),
    ],
)
def test_a_thread_learns_that_its_workers_were_lost(
    driver: Driver, phase: str, kind: str, after: str, code: str
) -> None:
    thread = driver.reach(phase)
    stop_timer(driver, thread)
    lose(driver, kind)
    driver.drain(limit=1)
    now = driver.get(thread.id)
    assert (now.phase.value, problem_of(now).code) == (after, code)


def test_a_timer_that_is_about_to_end_a_card_does_not_if_the_card_is_put_off(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    driver.clock.advance(7 * 86_400 + 1)
    timer = driver.claim()
    assert timer.kind == "timeout"
    driver.answer(thread.id, "later", until=driver.clock() + 3_600)
    driver.engine.handlers["timeout"](driver.engine, timer)
    assert driver.get(thread.id).phase is Phase.AWAITING_CONFIRMATION
    driver.clock.advance(3_601)
    driver.drain()
    assert driver.get(thread.id).phase is Phase.DISMISSED


def test_an_execution_that_may_have_acted_is_not_repeated(driver: Driver) -> None:
    thread = driver.reach("executing")
    stop_timer(driver, thread)
    begun(driver, thread)
    driver.clock.advance(1_000)
    driver.drain()
    ended = driver.get(thread.id)
    assert ended.phase is Phase.AWAITING_REDIRECT
    assert problem_of(ended).code == "outcome_unknown"
    assert driver.hands.calls == []


def test_an_execution_that_has_begun_in_time_keeps_its_work(driver: Driver) -> None:
    thread = driver.reach("executing")
    work = begun(driver, thread)
    _take_away(driver.engine, work)  # by a process that read the thread a moment before
    report = {"execution": f"{thread.id}.x{thread.entered}", "report": encode(Report.ok("done"))}
    assert driver.engine.report(work, Trigger.EXECUTION_DONE, report) is not None
    assert driver.get(thread.id).phase is Phase.DONE


def test_an_execution_that_never_began_is_done_after_all(driver: Driver) -> None:
    thread = driver.reach("executing")
    stop_timer(driver, thread)
    driver.claim()
    driver.clock.advance(1_000)
    driver.drain()
    driver.clock.advance(2)
    driver.drain()
    assert driver.get(thread.id).phase is Phase.DONE
    assert len(driver.hands.calls) == 1


def test_a_dead_begin_is_logged_and_left_to_the_doctor(driver: Driver) -> None:
    thread = driver.reach("proposed")
    lose(driver, "begin")
    assert driver.drain() == 1
    assert driver.threads.log(thread.id)[-1].kind == "work_dead"
    assert driver.drain() == 0
    assert [finding.kind for finding in driver.threads.doctor(repair=True)] == ["work_missing"]
    driver.drain()
    assert driver.get(thread.id).phase is not Phase.PROPOSED


def test_cards_that_nobody_could_be_told_of_are_counted_and_stay() -> None:
    bell = Bell(failures=99)
    with Driver(notifier=bell) as driver:
        thread = driver.reach("awaiting_confirmation")
        for _ in range(20):
            driver.drain()
            driver.clock.advance(600)
        assert len(bell.rung) == MOST["notify"]
        with driver.store.read() as reading:
            assert reading.meta(NOTIFIES_LOST) == {NOTIFIES_LOST: "1"}
            assert [work.kind for work in reading.works(thread.id)] == ["timeout"]
        assert driver.card(thread.id).id == bell.rung[0].id


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (9, 256.0), (10, 300.0), (99, 300.0)])
def test_the_back_off_doubles_up_to_five_minutes(attempts: int, seconds: float) -> None:
    assert back_off(attempts) == seconds


def test_a_failing_work_comes_back_later_and_stops_no_other(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    first, second = driver.open(), driver.open()
    handlers = dict(driver.engine.handlers)
    begin = handlers["begin"]

    def fails_for_the_first(engine: Engine, work: Work) -> None:
        if work.thread_id == first.id and work.attempts < 3:
            raise RuntimeError("broken")
        begin(engine, work)

    driver.engine.handlers = {**handlers, "begin": fails_for_the_first}
    driver.drain()
    assert driver.get(second.id).phase.waits
    assert driver.get(first.id).phase is Phase.PROPOSED
    with driver.store.read() as reading:
        work = next(work for work in reading.works(first.id) if work.kind == "begin")
    assert (work.attempts, work.lease, work.error) == (1, None, "RuntimeError: broken")
    for seconds in (0.9, 0.2, 1.7, 0.4):
        driver.clock.advance(seconds)
        driver.drain()
    assert driver.get(first.id).phase.waits
    assert len([record for record in caplog.records if "broken" in record.getMessage()]) == 1


def test_a_drain_waits_for_a_locked_store_and_reports_one_that_stays_locked() -> None:
    store = Locked(open_store(None))
    threads = Threads(store)
    thread = threads.open(Cause(kind="k", key="k", title="t"))
    store.locked = 10
    assert threads.drain() > 0
    assert threads.get(thread.id).phase is not Phase.PROPOSED
    store.locked = 10_000
    with pytest.raises(StoreUnavailable):
        threads.drain()
    store.close()


def test_a_drain_stops_at_its_limit(driver: Driver) -> None:
    for _ in range(3):
        driver.open()
    assert driver.drain(limit=2) == 2
    assert driver.drain() > 2
    assert driver.drain() == 0


class Deploy(BaseModel):
    version: str = "1"


def deploying(run: Callable[[Any, Execution], Report]) -> Action:
    return Action("deploy", Deploy, run)


def proposed(threads: Threads, key: str) -> Thread:
    proposal = Proposal.of_action("deploy", {"version": key}, confidence=0.9)
    return threads.open(Cause(kind="proposal", key=key, title=f"Deploy {key}?"), proposals=[proposal])


def test_a_work_waits_for_the_process_that_can_do_it(tmp_path: Path) -> None:
    calls: list[str] = []

    def run(given: Deploy, execution: Execution) -> Report:
        calls.append(given.version)
        return Report.ok("deployed")

    with Threads(tmp_path / "t.db", actions=[deploying(run)]) as agent, Threads(tmp_path / "t.db") as console:
        thread = proposed(agent, "web")
        console.drain()
        [card] = console.cards()
        assert (card.action, card.checked, card.hash is not None) == ("deploy", False, True)
        console.answer(card, "approve", by=MARA)
        console.drain()
        assert console.get(thread.id).phase is Phase.EXECUTING
        agent.drain()
        assert console.get(thread.id).phase is Phase.DONE
    assert calls == ["web"]


def waits(thread: Thread) -> bool:
    return thread.phase.waits


def test_a_worker_does_what_is_due_until_its_block_ends(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def run(given: Deploy, execution: Execution) -> Report:
        begun.set()
        assert go_on.wait(SECONDS)
        return Report.ok("deployed")

    with Threads(tmp_path / "t.db", actions=[deploying(run)]) as threads, threads.worker(threads=2):
        thread = threads.wait(proposed(threads, "web").id, SECONDS, until=waits)
        threads.answer(threads.cards()[0], "approve", by=MARA)
        assert begun.wait(SECONDS)
        go_on.set()
        assert threads.wait(thread.id, SECONDS).phase is Phase.DONE
    after = proposed(threads, "later")
    assert threads.wait(after.id, 0.0).phase is Phase.PROPOSED
    assert not [thread for thread in threading.enumerate() if thread.name == "reasonblocks-threads"]
    threads.close()


def test_a_worker_survives_errors_and_logs_each_kind_once(
    driver: Driver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonblocks_threads.engine._worker.FAILED_S", 0.001)
    engine = driver.engine
    failed = threading.Event()
    drain, times = engine.drain, iter(range(100))

    def fails(**options: Any) -> int:
        if next(times) < 5:
            raise MemoryError("no more")
        failed.set()
        return drain(**options)

    monkeypatch.setattr(engine, "drain", fails)
    with caplog.at_level(logging.WARNING), driver.threads.worker():
        assert failed.wait(SECONDS)
        thread = driver.open()
        assert driver.threads.wait(thread.id, SECONDS, until=waits).phase.waits
    assert len([record for record in caplog.records if "MemoryError" in record.getMessage()]) == 1


def test_a_worker_begins_with_the_doctor(driver: Driver) -> None:
    thread = driver.reach("proposed")
    with driver.store.write([thread.id]) as writing:
        writing.remove_works(thread.id, ["begin"])
    with driver.threads.worker():
        driver.threads.wait(thread.id, SECONDS, until=waits)
    assert "reconciled" in [event.kind for event in driver.threads.log(thread.id)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_no_worker_and_goes_on(tmp_path: Path) -> None:
    with Threads(tmp_path / "t.db") as threads:
        worker = threads.worker()
        with worker:
            first = threads.wait(threads.open(Cause(kind="k", key="one", title="t")).id, SECONDS, until=waits)
            child = os.fork()
            if not child:
                code = 1
                try:
                    thread = threads.open(Cause(kind="k", key="two", title="t"))
                    threads.dismiss(first.id, by=Actor.person("the child"))
                    worker.__exit__(None, None, None)
                    code = 0 if thread.phase is Phase.PROPOSED else 2
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert threads.get(first.id).phase is Phase.DISMISSED


def test_ended_threads_cost_nothing(tmp_path: Path) -> None:
    """Count the steps of SQLite's machine: they do not grow with the number of ended threads."""
    steps = []
    many = 400 if WHOLE else 60
    with Driver() as driver:
        engine, db = driver.engine, driver.store._writing()  # type: ignore[attr-defined]
        kept = driver.reach("awaiting_confirmation")
        for number in range(2 * many):
            if number in (0, many):
                steps.append(_steps(db, driver))
            thread = driver.open()
            driver.threads.dismiss(thread.id, by=MARA)
        steps.append(_steps(db, driver))
        assert engine.thread(kept.id) == kept
    assert max(steps) < min(steps) * 1.2 + 200, steps


def _steps(db: Any, driver: Driver) -> int:
    """Return the steps of the calls that a console and a worker make all the time."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    driver.drain()
    db.execute("ANALYZE")
    db.set_progress_handler(step, 1)
    driver.threads.cards()
    driver.threads.list()
    driver.drain()
    driver.threads.doctor()
    db.set_progress_handler(None, 0)
    return count
