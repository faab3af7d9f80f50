"""Neither a sink nor a store holds up the end of a client or of its process, and each sink has its own time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from functools import cache
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.concurrency.forks import no_fork
from reasonblocks.concurrency.workers import IDLE_SECONDS
from reasonblocks.events import Event, RunFinish
from reasonblocks.types import StepInput
from reasonblocks_testing._checks import threads_started
from tests.core.world import Hang, RecordingSink, begin, called, client, hanging, run

EXIT_MOST = 2.0
"""Seconds from the end of a program to that of its process: one for the sinks, the rest for a busy machine."""

SINKS = """
    import asyncio, os, sys, threading, time
    from reasonblocks import ReasonBlocks, Step, StepInput

    class Good:
        def __init__(self): self.told = []
        def emit(self, event): self.told.append(type(event).__name__)
        def close(self): os.write(1, f"closed after {' '.join(self.told)}\\n".encode())

    class Quick(Good):
        def close(self): pass

    class HangsInClose(Quick):
        def close(self): threading.Event().wait()

    class HangsInEmit(Quick):
        def emit(self, event): threading.Event().wait()

    class Exits(Quick):
        def close(self): raise SystemExit(3)

    class Interrupts(Quick):
        def close(self): raise KeyboardInterrupt

    def one_call(rb):
        rb.session().begin_step(StepInput(completed=Step(thought="hm")))
"""
CLOSED = "closed after RunStart StepEvent RunFinish"
"""What a sink beside others prints that was told of a run which was left open, and then closed."""


@cache
def process(program: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process once it ended, and the seconds from the end of its program to its own. A program is run once."""
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "left"
        last = f"\nimport pathlib\npathlib.Path({str(left)!r}).write_text(repr(time.time()))"
        code = [sys.executable, "-c", textwrap.dedent(SINKS) + textwrap.dedent(program) + last]
        done = subprocess.run(code, capture_output=True, text=True, timeout=10, check=False)
        return done, time.time() - float(left.read_text())


HUNG = """
    clients = [ReasonBlocks(sinks=[one(), Good()]) for one in (HangsInClose, HangsInEmit)]
    clients.append(ReasonBlocks(sinks=[HangsInEmit(), HangsInClose(), HangsInClose(), Good()]))
"""
PROGRAMS = {
    "plain": """
    for rb in clients:
        one_call(rb)
    """,
    "threads": """
    threads = [threading.Thread(target=one_call, args=(rb,)) for rb in clients]
    for thread in threads:
        thread.start()
    """,
    "asyncio": """
    async def call(rb):
        await rb.session().abegin_step(StepInput(completed=Step(thought="hm")))

    async def main():
        await asyncio.gather(*map(call, clients))

    asyncio.run(main())
    """,
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_hanging_sinks_hold_up_the_exit_of_a_process_for_a_second_and_the_others_get_everything(kind: str) -> None:
    done, seconds = process(HUNG + PROGRAMS[kind])
    assert (done.returncode, done.stdout.splitlines()) == (0, [CLOSED] * 3)
    assert "Traceback" not in done.stderr
    assert seconds < EXIT_MOST
    lines = done.stderr.splitlines()
    assert [sum(name in line for line in lines) for name in ("HangsInClose", "HangsInEmit", "")] == [3, 2, 5]


def test_a_sink_that_was_told_nothing_is_closed_at_exit_and_may_hang_in_that() -> None:
    done, seconds = process("rb, other = ReasonBlocks(sinks=[HangsInClose(), Good()]), ReasonBlocks(sinks=[Good()])")
    assert (done.returncode, done.stdout) == (0, "closed after \n" * 2)
    assert seconds < EXIT_MOST


@pytest.mark.parametrize("bad", ["Exits", "Interrupts"])
def test_a_sink_that_ends_the_program_when_it_is_closed_ends_nothing(bad: str) -> None:
    done, _ = process(f"rb = ReasonBlocks(sinks=[{bad}(), Good()])\none_call(rb)")
    assert (done.returncode, done.stdout) == (0, f"{CLOSED}\n")
    assert done.stderr.count(f"closing sink {bad} failed") == 1


def test_a_client_that_was_closed_is_not_closed_again_at_exit() -> None:
    done, seconds = process("with ReasonBlocks(sinks=[Good()]) as rb:\n    one_call(rb)")
    assert done.stdout.count("closed") == 1
    assert seconds < EXIT_MOST


def test_a_sink_that_was_left_behind_by_close_holds_up_the_exit_no_longer_than_others() -> None:
    done, seconds = process("rb = ReasonBlocks(sinks=[HangsInClose(), Good()])\none_call(rb)\nrb.close(timeout=0.2)")
    assert (done.returncode, done.stdout.count("closed")) == (0, 1)
    assert seconds < EXIT_MOST


@pytest.mark.skipif(sys.platform == "win32", reason="this system cannot fork")
def test_a_forked_process_that_told_a_sink_nothing_leaves_the_sink_alone() -> None:
    done, seconds = process(
        """
    import warnings
    rb = ReasonBlocks(sinks=[HangsInClose(), Good()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads forks
        child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    )
    assert (done.returncode, done.stdout, done.stderr.count("HangsInClose")) == (0, "closed after \n", 1)
    assert seconds < EXIT_MOST


# ------------------------------------------------------------ close(timeout)


class HungClose(RecordingSink):
    def __init__(self, hang: Hang) -> None:
        super().__init__()
        self._hang = hang

    def close(self) -> None:
        self._hang()


class HungEmit(RecordingSink):
    def __init__(self, hang: Hang) -> None:
        super().__init__()
        self._hang = hang

    def emit(self, event: Event) -> None:
        self._hang(event)


def closed_in(rb: ReasonBlocks, timeout: float) -> float:
    started = time.monotonic()
    rb.close(timeout=timeout)
    return time.monotonic() - started


@pytest.mark.parametrize("kind", [HungClose, HungEmit])
def test_a_hanging_sink_holds_up_close_for_its_timeout_and_the_others_get_everything(
    kind: type[HungClose | HungEmit],
) -> None:
    good = RecordingSink()
    with hanging() as hang:
        rb = client(sinks=[kind(hang), good, kind(hang)])
        run(rb.session(), 3)
        assert closed_in(rb, 0.2) < 1.0
        assert (good.closed, isinstance(good.events[-1], RunFinish)) == (True, True)


def test_a_sink_that_hangs_when_it_is_closed_is_said_once_by_its_name(caplog: pytest.LogCaptureFixture) -> None:
    with hanging() as hang:
        rb = client(sinks=[HungClose(hang)])
        run(rb.session(), 1)
        rb.close(timeout=0.05)
        rb.close(timeout=0.05)
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry: sink HungClose did not close in the time it had; it is left behind"
    ]


def test_a_sink_is_closed_once_unless_it_was_told_more() -> None:
    class Counted(RecordingSink):
        times = 0

        def close(self) -> None:
            self.times += 1

    sink = Counted()
    rb = client(sinks=[sink])
    rb.close()
    rb.close()
    assert sink.times == 1
    run(rb.session(), 1)
    rb.close()
    assert (sink.times, len(sink.events)) == (2, 4)


def test_open_runs_share_the_time_of_close_whatever_a_step_may_take() -> None:
    with hanging() as hang:
        rb = client(scorer=hang, step_deadline_ms=20_000)
        for _ in range(3):
            session = rb.session()
            session.end_step(begin(session, 0), called(0))
        assert closed_in(rb, 0.3) < 1.0


def test_closing_a_run_has_one_timeout_for_its_last_step_and_the_sinks() -> None:
    with hanging() as hang:
        session = client(scorer=hang, step_deadline_ms=20_000, sinks=[HungEmit(hang)]).session()
        run(session, 1)
        started = time.monotonic()
        session.close(timeout=0.2)
        assert time.monotonic() - started < 1.0


def test_a_store_that_hangs_when_it_is_closed_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with no_fork:  # as a thread does that waits for a slow disk
            held.set()
            release.wait(10)

    rb = ReasonBlocks(strict=True)
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(5)
        assert closed_in(rb, 0.2) < 1.0
    finally:
        release.set()
        thread.join()
    assert [record.getMessage() for record in caplog.records] == [
        "reasonblocks: the pattern store LocalStore did not close in the time it had; it is left behind"
    ]


def test_a_hanging_sink_leaves_the_store_its_time(caplog: pytest.LogCaptureFixture) -> None:
    with hanging() as hang:
        rb = ReasonBlocks(strict=True, sinks=[HungClose(hang)])
        rb.close(timeout=0.5)
    assert ["LocalStore" in record.getMessage() for record in caplog.records] == [False]


def test_a_run_that_goes_on_after_it_was_abandoned_has_its_whole_deadline_again() -> None:
    """Its last step had no time left; the next is not judged by that."""
    session = client(scorer=lambda completed: 0.4).session()
    run(session, 2)
    session.abandon(time.monotonic())
    assert (session.outcome, session.final and session.final.difficulty) == ("failure: abandoned", None)
    decision = begin(session, 2)
    assert (decision.skipped_reason, decision.difficulty) == (None, 0.4)


def test_many_short_runs_on_an_event_loop_wait_for_the_sinks_in_few_threads() -> None:
    rb = client(sinks=[RecordingSink()])

    async def main() -> int:
        for _ in range(50):
            async with rb.session() as session:
                await session.abegin_step(StepInput())
        return sum(thread.name == "reasonblocks-worker" for thread in threading.enumerate())

    before = sum(thread.name == "reasonblocks-worker" for thread in threading.enumerate())
    assert asyncio.run(main()) - before < 10
    rb.close()


def alive(started: list[threading.Thread], seconds: float) -> list[str]:
    """The names of the threads that do not end within so many seconds in all."""
    ends = time.monotonic() + seconds
    for thread in started:
        thread.join(max(0.0, ends - time.monotonic()))
    return [thread.name for thread in started if thread.is_alive()]


def test_closed_clients_leave_no_threads() -> None:
    with threads_started() as started:
        for _ in range(200):
            rb = ReasonBlocks(scorer=lambda completed: 0.4, redact=str, sinks=[RecordingSink()], strict=True)
            with rb.session() as session:
                run(session, 2)
            rb.close()
    assert len(started) >= 400
    assert alive(started[-20:], IDLE_SECONDS / 2) == []


def test_a_client_whose_sinks_were_waited_for_on_an_event_loop_leaves_no_threads() -> None:
    async def main() -> None:
        rb = client(sinks=[RecordingSink()])
        async with rb.session() as session:
            await session.abegin_step(StepInput())
        rb.close()

    with threads_started() as started:
        asyncio.run(main())
    assert len(started) >= 2
    assert alive(started, IDLE_SECONDS / 2) == []


def test_a_worker_that_hangs_when_its_client_is_closed_ends_after_its_call() -> None:
    with threads_started() as started, hanging() as hang:
        rb = client(scorer=hang, step_deadline_ms=20)
        begin(session := rb.session(), 0)
        begin(session, 1)
        rb.close(timeout=0.2)
        assert alive(started, 0.0) == ["reasonblocks-worker"]
    assert alive(started, IDLE_SECONDS / 2) == []


def test_a_closed_client_starts_new_workers() -> None:
    rb = client(scorer=lambda completed: 0.4)
    run(rb.session(), 2)
    rb.close()
    session = rb.session()
    run(session, 2)
    assert session.step_log[1].difficulty == 0.4
    rb.close()
