"""Events on their way to the sinks: a bounded queue and one background thread, so that no sink ever delays a step."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence

from ..events import Event, StepEvent
from ..ports import TelemetrySink
from ._guard import Faults, logger, tamed
from ._redact import Redact, Redactor

QUEUE_EVENTS = 1_000
"""Most events waiting; when full the oldest step goes."""
MOST_EVENTS = 4_000
"""Starts and finishes may fill the queue up to here; then the oldest of them goes."""


class Telemetry:
    """One door to all sinks. Without sinks it does nothing and starts no thread."""

    def __init__(self, sinks: Sequence[TelemetrySink] = (), redact: Redact | None = None) -> None:
        self._sinks = tuple(sinks)
        self._faults = Faults("telemetry", strict=False)
        self._redactor = Redactor(redact, self._faults)
        self.dropped = 0
        self._forget_thread()

    def _here(self) -> None:
        if self._pid != os.getpid():
            self._forget_thread()

    def _forget_thread(self) -> None:
        """It is not there yet, or did not come along into a forked process, whose parent keeps the events."""
        self._pid = os.getpid()
        self._queue: deque[Event] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._stopped = False
        self._steps = 0

    @property
    def wanted(self) -> bool:
        """Is there any sink?"""
        return bool(self._sinks)

    def emit(self, event: Event) -> None:
        if not self._sinks:
            return
        self._here()
        with self._wake:
            if len(self._queue) >= QUEUE_EVENTS:
                self._drop()
            self._queue.append(event)
            self._steps += isinstance(event, StepEvent)
            if self._thread is None:  # lives as long as its client: none can be started at exit
                self._thread = threading.Thread(target=self._serve, name="reasonblocks-telemetry", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until every event was taken, at most `timeout` seconds. False: some were not."""
        self._here()
        with self._wake:
            return self._wake.wait_for(lambda: not self._queue and not self._busy, timeout)

    async def aflush(self, timeout: float = 5.0) -> bool:
        """The same for an event loop."""
        if not self._sinks:
            return True
        import asyncio  # there already, in whoever awaits this; others are spared its cost

        return await asyncio.get_running_loop().run_in_executor(None, self.flush, timeout)

    def close(self, timeout: float) -> None:
        """Flush, then close the sinks; what a hanging sink did not take is counted and said."""
        if not self.flush(timeout):
            logger.warning("sinks did not take %d events in the time they had", len(self._queue) + self._busy)
            return
        self.stop()
        for sink in self._sinks:
            with self._faults.guard(f"closing sink {type(sink).__name__}"):
                sink.close()

    def stop(self) -> None:
        """End the thread once the queue is empty."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def _serve(self) -> None:
        while (event := self._next()) is not None:
            try:
                self._deliver(event)
            finally:
                with self._wake:
                    self._busy = False
                    self._wake.notify_all()

    def _deliver(self, event: Event) -> None:
        shown = self._redactor.redacted(event)
        for sink in self._sinks:
            with self._faults.guard(f"sink {type(sink).__name__}"), tamed("a sink"):
                sink.emit(shown)

    def _next(self) -> Event | None:
        with self._wake:
            self._wake.wait_for(lambda: bool(self._queue) or self._stopped)
            if not self._queue:
                self._thread, self._stopped = None, False
                return None
            self._busy = True
            return self._taken(0)

    def _drop(self) -> None:
        """The oldest step goes; a start or a finish only where the queue is full of them."""
        if self._steps:
            self._taken(next(at for at, event in enumerate(self._queue) if isinstance(event, StepEvent)))
        elif len(self._queue) >= MOST_EVENTS:
            self._taken(0)
        else:
            return
        self.dropped += 1
        self._faults.say("dropped", "the sinks are too slow: the oldest events are dropped")

    def _taken(self, at: int) -> Event:
        event = self._queue[at]
        del self._queue[at]
        self._steps -= isinstance(event, StepEvent)
        return event
