"""Sends events to the sinks, each through its own `Lane`: no sink ever delays a step or another sink."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from functools import partial

from ..events import Event
from ..ports import TelemetrySink
from ._guard import Faults
from ._lane import Lane
from ._redact import Redact, Redactor, Told
from ._worker import Workers


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
        return all([lane.flush(ends) for lane in self._lanes])

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
