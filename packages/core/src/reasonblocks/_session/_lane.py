"""Delivers events to one sink through a bounded queue and a separate thread, so that no sink waits for another."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..events import StepEvent
from ..ports import TelemetrySink
from ._guard import Faults, tamed
from ._telemetry import Told

QUEUE_EVENTS = 1_000
"""The most waiting events; when the queue is full, the oldest step is dropped."""
MOST_EVENTS = 4_000
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
        elif len(self._queue) >= MOST_EVENTS:
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
