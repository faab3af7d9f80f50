"""A sink that receives events in batches: what it does not take is offered again, and it may ask for a pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import Unavailable
from reasonblocks.session import Telemetry
from reasonblocks.session.sink_queue import BATCH_EVENTS, BATCH_SECONDS, QUEUE_EVENTS
from reasonblocks.types import RunInfo
from tests.core.world import RecordingSink, client, hanging, run

START = RunStart(run=RunInfo(run_id="run", task="a task"), timestamp=1.0)
FINISH = RunFinish(run_id="run", outcome="success", timestamp=9.0)


def told(number: int) -> StepEvent:
    return StepEvent(run_id="run", step_index=number, timestamp=float(number))


class Batches:
    """Takes what a script says of each offer, a number of events or an exception; then everything."""

    def __init__(self, *script: Any) -> None:
        self._script: Iterator[Any] = iter(script)
        self.offers: list[list[Event]] = []
        self.seconds: list[float] = []
        self.times: list[float] = []
        self.events: list[Event] = []
        self.closed = 0

    def emit(self, event: Event) -> None:
        raise AssertionError("a batch sink is offered batches")

    def emit_many(self, events: Sequence[Event], seconds: float) -> int:
        self.offers.append(list(events))
        self.seconds.append(seconds)
        self.times.append(time.monotonic())
        answer = next(self._script, len(events))
        if callable(answer):
            answer = answer(events)
        if isinstance(answer, BaseException):
            raise answer
        taken: int = answer
        self.events += events[:taken] if type(taken) is int and 0 <= taken <= len(events) else ()
        return taken

    def close(self) -> None:
        self.closed += 1


class Gate:
    """Holds the first offer until it is opened, so that the others wait together."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, events: Sequence[Event]) -> int:
        self.entered.set()
        assert self.opened.wait(10)
        return len(events)


def offered(*script: Any, events: Sequence[Event], timeout: float = 10.0) -> tuple[Batches, Telemetry]:
    """All events but the first wait while the first is with the sink; then the script says what it takes."""
    gate = Gate()
    sink = Batches(gate, *script)
    telemetry = Telemetry([sink])
    telemetry.emit(START)
    assert gate.entered.wait(5)
    for event in events:
        telemetry.emit(event)
    gate.opened.set()
    telemetry.flush(timeout)
    return sink, telemetry


def steps(count: int) -> list[Event]:
    return [told(number) for number in range(count)]


def test_waiting_events_are_offered_in_their_order_at_most_64_together() -> None:
    sink, _ = offered(events=steps(150))
    assert sink.offers == [[START], steps(150)[:64], steps(150)[64:128], steps(150)[128:]]
    assert (BATCH_EVENTS, sink.seconds) == (64, [BATCH_SECONDS] * 4)


def test_what_was_not_taken_is_offered_again_in_front_of_what_came_since() -> None:
    sink, _ = offered(2, 3, events=steps(6))
    assert sink.offers[1:] == [steps(6), steps(6)[2:], steps(6)[5:]]
    assert sink.events == [START, *steps(6)]


def down(retry_after: Any = None) -> Unavailable:
    return Unavailable("the server", "it is down", retry_after=retry_after)


@pytest.mark.parametrize("answer", [0, *map(down, (None, 0, 0.0, -1, float("nan"), "soon"))])
def test_a_sink_that_took_nothing_is_asked_again_after_the_usual_pause(answer: Any) -> None:
    sink, telemetry = offered(answer, events=steps(3))
    assert (sink.events, telemetry.dropped) == ([START, *steps(3)], 0)
    assert sink.times[2] - sink.times[1] >= 0.1


def test_pauses_grow() -> None:
    sink, _ = offered(0, 0, 0, events=steps(1))
    first, *_, last = [later - before for before, later in zip(sink.times[1:], sink.times[2:], strict=False)]
    assert last > first


def test_a_sink_may_say_how_long_it_pauses() -> None:
    sink, _ = offered(down(0.7), events=steps(1))
    assert 0.7 <= sink.times[2] - sink.times[1] < 5


def test_an_unavailable_sink_is_said_once_and_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    offered(*[down(0.01)] * 3, events=steps(1))
    said = "telemetry: sink Batches: the server is unavailable: it is down; its events wait (logged once per client)"
    assert [record.getMessage() for record in caplog.records] == [said]


@pytest.mark.parametrize("answer", [-1, 4, None, True, "3", RuntimeError("no"), SystemExit(1)], ids=repr)
def test_an_offer_that_fails_is_dropped_and_counted(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    sink, telemetry = offered(answer, events=steps(3))
    telemetry.emit(FINISH)
    assert telemetry.flush(5)
    assert (sink.events, telemetry.dropped) == ([START, FINISH], 3)
    assert [record.getMessage().startswith("telemetry: sink Batches failed") for record in caplog.records] == [True]


def test_while_a_sink_pauses_the_oldest_steps_are_dropped() -> None:
    sink = Batches(down(0.5))
    telemetry = Telemetry([sink])
    for event in (START, *steps(1_500), FINISH):
        telemetry.emit(event)
    assert telemetry.flush(10)
    kept = [event.step_index for event in sink.events if isinstance(event, StepEvent)]
    assert (sink.events[0], sink.events[-1], telemetry.dropped) == (START, FINISH, 502)
    assert kept == list(range(502, 1_500))
    assert len(sink.events) == QUEUE_EVENTS


def test_a_flush_does_not_wait_for_a_longer_pause() -> None:
    sink = Batches(down(60.0))
    telemetry = Telemetry([sink])
    telemetry.emit(START)
    started = time.monotonic()
    assert not telemetry.flush(20)
    assert time.monotonic() - started < 10


def test_closing_offers_again_after_a_pause_that_ends_in_time() -> None:
    sink = Batches(down(0.3))
    telemetry = Telemetry([sink])
    telemetry.emit(START)
    telemetry.close(10)
    assert (sink.events, sink.closed) == ([START], 1)
    assert sink.seconds[-1] <= BATCH_SECONDS


def test_closing_drops_the_events_of_a_sink_that_pauses_longer(caplog: pytest.LogCaptureFixture) -> None:
    sink = Batches(down(60.0))
    telemetry = Telemetry([sink])
    for event in (START, told(0)):
        telemetry.emit(event)
    started = time.monotonic()
    telemetry.close(20)
    assert time.monotonic() - started < 10
    assert (sink.events, sink.closed, telemetry.dropped) == ([], 1, 2)
    said = "telemetry: sink Batches did not take 2 events in the time it had; it is left behind"
    assert [record.getMessage() for record in caplog.records][-1] == said


def test_an_offer_while_closing_has_the_time_that_is_left() -> None:
    gate = Gate()
    sink = Batches(gate)
    telemetry = Telemetry([sink])
    telemetry.emit(START)
    assert gate.entered.wait(5)
    telemetry.emit(FINISH)
    telemetry.start_closing(time.monotonic() + 2)
    gate.opened.set()
    telemetry.wait_closed(time.monotonic() + 5)
    assert 0 < sink.seconds[-1] <= 2


def test_a_thread_does_not_outlive_a_client_whose_sink_pauses() -> None:
    sink = Batches(down(60.0))
    telemetry = Telemetry([sink])
    telemetry.emit(START)
    telemetry.flush(5)
    thread = telemetry._queues[0]._thread
    telemetry.stop()
    assert thread is not None
    thread.join(10)
    assert (thread.is_alive(), telemetry.dropped) == (False, 1)


def test_a_batch_sink_that_hangs_holds_up_no_other() -> None:
    good = RecordingSink()
    with hanging() as hang:
        telemetry = Telemetry([Batches(hang), good])
        for event in (START, told(0), FINISH):
            telemetry.emit(event)
        started = time.monotonic()
        telemetry.close(0.3)
        assert time.monotonic() - started < 5
    assert (good.events, good.closed) == ([START, told(0), FINISH], True)


def test_all_sinks_are_closed_by_one_end() -> None:
    with hanging() as hang:
        telemetry = Telemetry([Batches(hang), Batches(hang), Batches(hang)])
        telemetry.emit(START)
        started = time.monotonic()
        telemetry.close(0.5)
        assert time.monotonic() - started < 1.4


def test_a_run_reaches_a_batch_sink_redacted() -> None:
    sink = Batches()
    redact: Callable[[str], str] = lambda text: "***"  # noqa: E731 - one line
    with client(sinks=[sink], redact=redact) as rb:
        session = rb.session(task="secret")
        run(session, 2)
        session.finish()
    assert len(sink.events) == 5
    assert isinstance(sink.events[0], RunStart)
    assert sink.events[0].run.task == "***"
