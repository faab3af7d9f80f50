"""Sends events to the sinks, each through its own `Lane`: no sink ever delays a step or another sink."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from .._json import evolve
from ..events import Event, RunFinish, RunStart, StepEvent, step_event
from ..exceptions import BadAnswer
from ..ports import TelemetrySink
from ..types import JSON, Doubt, RunInfo
from ._guard import Faults, tamed
from ._log import Closed
from ._worker import Workers

Redact = Callable[[str], str]
UNREDACTED = "[redaction failed]"
TEXTS = ("thought", "action_input", "observation")
SAID = ("error", "doubts")
"""Metadata fields that are redacted as texts."""
LISTS = ("injections", "intervention_texts")


class Redactor:
    """Without a `redact` events pass as they are; where it fails, nothing of the text is left."""

    __slots__ = ("_faults", "_redact")

    def __init__(self, redact: Redact | None, faults: Faults) -> None:
        self._redact, self._faults = redact, faults

    def redacted(self, event: Event) -> Event:
        if self._redact is None:
            return event
        if isinstance(event, RunStart):
            return self._start(event)
        return self._step(event) if isinstance(event, StepEvent) else self._finish(event)

    def _start(self, event: RunStart) -> RunStart:
        metadata = {key: self._within(value) for key, value in event.run.metadata.items()}
        return evolve(event, run=evolve(event.run, task=self._text(event.run.task), metadata=metadata))

    def _step(self, event: StepEvent) -> StepEvent:
        hidden: dict[str, Any] = {name: self._text(getattr(event, name)) for name in TEXTS}
        hidden |= {name: tuple(map(self._text, getattr(event, name))) for name in LISTS}
        if told := {name: self._within(event.metadata[name]) for name in SAID if name in event.metadata}:
            hidden["metadata"] = {**event.metadata, **told}
        return evolve(event, **hidden)

    def _finish(self, event: RunFinish) -> RunFinish:
        outcome = event.outcome if event.outcome == "success" else self._text(event.outcome)
        doubts = tuple([evolve(one, text=self._text(one.text)) for one in event.doubts])
        return evolve(event, outcome=outcome, doubts=doubts)

    def _within(self, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._within(item) for key, item in value.items()}
        return [self._within(item) for item in value] if isinstance(value, Sequence) else value

    def _text(self, text: str) -> str:
        with self._faults.guard("redact"), tamed("redact"):
            shown: object = self._redact(text) if self._redact is not None else text
            if isinstance(shown, str):
                return shown
            raise BadAnswer("redact", shown, "must be text")
        return UNREDACTED


class Told:
    """An event for several sinks: it is redacted once, in the thread of the first sink that takes it.

    `lock` is held meanwhile, so that one thread at a time calls `redact`.
    """

    __slots__ = ("_lock", "_redactor", "_shown", "event")

    def __init__(self, event: Event, redactor: Redactor, lock: threading.Lock) -> None:
        self.event, self._redactor, self._lock = event, redactor, lock
        self._shown: Event | None = None

    def shown(self) -> Event:
        with self._lock:
            if self._shown is None:
                self._shown = self._redactor.redacted(self.event)
            return self._shown


class Telemetry:
    """One door to all sinks. Without sinks it does nothing and starts no thread."""

    def __init__(self, sinks: Sequence[TelemetrySink] = (), redact: Redact | None = None) -> None:
        self._lanes = tuple(map(Lane, sinks))
        self._redactor = Redactor(redact, Faults("telemetry", strict=False))
        self._redacting, self._pid = threading.Lock(), os.getpid()
        self._waiting = Workers()

    @property
    def wanted(self) -> bool:
        """Is there any sink?"""
        return bool(self._lanes)

    @property
    def dropped(self) -> int:
        """The number of events dropped because a sink was too slow."""
        return sum(lane.dropped for lane in self._lanes)

    def emit(self, event: Event) -> None:
        if not self._lanes:
            return
        if self._pid != os.getpid():  # a thread of the parent may have held the lock, and never releases it here
            self._redacting, self._pid = threading.Lock(), os.getpid()
        told = Told(event, self._redactor, self._redacting)
        for lane in self._lanes:
            lane.emit(told)

    def flush(self, timeout: float) -> bool:
        """Wait until the sinks have received every event, at most `timeout` seconds; return False if they have not."""
        ends = time.monotonic() + timeout
        return all([lane.flush(ends) for lane in self._lanes])  # noqa: C419 - also those after one that fails

    async def aflush(self, timeout: float = 5.0) -> bool:
        """Flush without blocking the event loop; the loop's shutdown does not wait for it."""
        if not self._lanes:
            return True
        from asyncio import wrap_future  # already imported by whoever awaits this; others do not pay for it

        return await wrap_future(self._waiting.submit(partial(self.flush, timeout)))

    def start_closing(self) -> None:
        """Close every sink once it has received all events, all of them at the same time."""
        for lane in self._lanes:
            lane.start_closing()

    def wait_closed(self, ends: float) -> None:
        """Wait for the closing until `ends` on the monotonic clock; a sink that hangs is logged and abandoned."""
        for lane in self._lanes:
            lane.wait_closed(ends)

    def close(self, timeout: float) -> None:
        """Flush and close the sinks in at most `timeout` seconds."""
        self.start_closing()
        self.wait_closed(time.monotonic() + timeout)

    def stop(self) -> None:
        """End the threads once their queues are empty."""
        for lane in self._lanes:
            lane.stop()


class Teller:
    """Makes the events of one run. Without sinks it makes none."""

    __slots__ = ("_faults", "_telemetry")

    def __init__(self, telemetry: Telemetry, faults: Faults) -> None:
        self._telemetry, self._faults = telemetry, faults

    def start(self, run: RunInfo) -> None:
        self._emit(RunStart(run=run, timestamp=time.time()))

    def step(self, run_id: str, closed: Closed | None) -> None:
        if closed is not None and self._telemetry.wanted:
            with self._faults.guard("telemetry"):
                self._telemetry.emit(step_event(run_id, closed.entry, closed.step, closed.scores))

    def finish(self, run_id: str, outcome: str, doubts: tuple[Doubt, ...]) -> None:
        self._emit(RunFinish(run_id=run_id, outcome=outcome, timestamp=time.time(), doubts=doubts))

    def _emit(self, event: Event) -> None:
        with self._faults.guard("telemetry"):
            self._telemetry.emit(event)


QUEUE_EVENTS = 1_000
"""The most waiting events; when the queue is full, the oldest step is dropped."""
MAX_EVENTS = 4_000
"""Starts and finishes may fill the queue up to here; then the oldest of them is dropped."""


class Lane:
    """Delivers events and closes the sink in a daemon thread, started at once because none can be started at exit."""

    def __init__(self, sink: TelemetrySink) -> None:
        self._sink, self._name = sink, type(sink).__name__
        self._faults = Faults("telemetry", strict=False)
        self.dropped = 0
        self._forget_thread(is_closed=False)
        self._start()

    def _here(self) -> None:
        if self._pid != os.getpid():
            self._forget_thread(is_closed=True)

    def _forget_thread(self, *, is_closed: bool) -> None:
        """Start afresh in a forked process: the thread, the events and what the sink holds stay with the parent."""
        self._pid = os.getpid()
        self._queue: deque[Told] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._stopped = self._closing = False
        self._is_closed = is_closed
        self._steps = 0

    def _start(self) -> None:
        """Start the thread, also again after a close or a fork."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="reasonblocks-telemetry", daemon=True)
            with suppress(RuntimeError):  # at exit, or with too many threads: retried with the next event
                thread.start()
                self._thread = thread

    def emit(self, told: Told) -> None:
        self._here()
        with self._wake:
            if len(self._queue) >= QUEUE_EVENTS:
                self._drop()
            self._queue.append(told)
            self._steps += isinstance(told.event, StepEvent)
            self._is_closed = False
            self._start()
            self._wake.notify_all()

    def flush(self, ends: float) -> bool:
        """Wait until the sink has received every event, at most until `ends`; return False if it has not."""
        self._here()
        with self._wake:
            return self._wake.wait_for(lambda: not self._queue and not self._busy, ends - time.monotonic())

    def start_closing(self) -> None:
        """Close the sink once the queue is empty, unless that was done since the last event."""
        self._here()
        with self._wake:
            if not self._is_closed:
                self._closing = True
                self._start()
                self._wake.notify_all()

    def wait_closed(self, ends: float) -> None:
        """Wait until the sink is closed, at most until `ends`; then abandon it and log that once."""
        with self._wake:
            if self._wake.wait_for(lambda: not self._closing, ends - time.monotonic()):
                return
            left = len(self._queue) + self._busy
        missed = f"take {left} event{'s'[: left > 1]}" if left else "close"
        self._faults.say("left behind", f"sink {self._name} did not {missed} in the time it had; it is left behind")

    def stop(self) -> None:
        """End the thread once the queue is empty."""
        self._here()
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            finally:
                with self._wake:
                    self._busy = False
                    self._wake.notify_all()

    def _next(self) -> Callable[[], None] | None:
        with self._wake:
            self._wake.wait_for(lambda: bool(self._queue) or self._closing or self._stopped)
            if self._queue:
                self._busy = True
                return partial(self._deliver, self._taken(0))
            if self._closing:
                return self._close
            self._thread, self._stopped = None, False
            return None

    def _deliver(self, told: Told) -> None:
        with self._faults.guard(f"sink {self._name}"), tamed("a sink"):
            self._sink.emit(told.shown())

    def _close(self) -> None:
        with self._faults.guard(f"closing sink {self._name}"), tamed("a sink"):
            self._sink.close()
        with self._wake:
            self._closing, self._is_closed, self._stopped = False, not self._queue, True

    def _drop(self) -> None:
        """Drop the oldest step; a start or a finish only if the queue is full of them."""
        if self._steps:
            self._taken(next(at for at, told in enumerate(self._queue) if isinstance(told.event, StepEvent)))
        elif len(self._queue) >= MAX_EVENTS:
            self._taken(0)
        else:
            return
        self.dropped += 1
        self._faults.say("dropped", f"sink {self._name} is too slow: the oldest events are dropped")

    def _taken(self, at: int) -> Told:
        told = self._queue[at]
        del self._queue[at]
        self._steps -= isinstance(told.event, StepEvent)
        return told
