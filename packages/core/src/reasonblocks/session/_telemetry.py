"""Events on their way to the sinks, each of which has a lane of its own: no sink ever delays a step or another sink."""

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
        """Events that some sink was too slow for."""
        return sum(lane.dropped for lane in self._lanes)

    def emit(self, event: Event) -> None:
        if not self._lanes:
            return
        if self._pid != os.getpid():  # a thread of the parent may have held it, and will not let go of it here
            self._redacting, self._pid = threading.Lock(), os.getpid()
        told = Told(event, self._redactor, self._redacting)
        for lane in self._lanes:
            lane.emit(told)

    def flush(self, timeout: float) -> bool:
        """Wait until every event was taken, at most `timeout` seconds in all. False: some were not."""
        ends = time.monotonic() + timeout
        return all([lane.flush(ends) for lane in self._lanes])

    async def aflush(self, timeout: float = 5.0) -> bool:
        """The same for an event loop, whose end does not wait for it."""
        if not self._lanes:
            return True
        from asyncio import wrap_future  # there already, in whoever awaits this; others are spared its cost

        return await wrap_future(self._waiting.submit(partial(self.flush, timeout)))

    def start_closing(self) -> None:
        """Close every sink once it was told everything, all of them at the same time."""
        for lane in self._lanes:
            lane.start_closing()

    def wait_closed(self, ends: float) -> None:
        """Wait for that until `ends` on the monotonic clock; a sink that hangs is named and left behind."""
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
