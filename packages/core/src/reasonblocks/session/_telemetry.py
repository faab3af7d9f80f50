"""Events on their way to the sinks: a bounded queue and one background thread, so that no sink ever delays a step."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..events import Event, RunStart, StepEvent
from ..exceptions import BadAnswer
from ..ports import TelemetrySink
from ._guard import Faults, logger

QUEUE_EVENTS = 1_000
"""Most events waiting; when full the oldest step goes, never a start or a finish."""
UNREDACTED = "[redaction failed]"

Redact = Callable[[str], str]


class Telemetry:
    """One door to all sinks. Without sinks it does nothing and starts no thread."""

    def __init__(self, sinks: Sequence[TelemetrySink] = (), redact: Redact | None = None) -> None:
        self._sinks = tuple(sinks)
        self._redact = redact
        self._queue: deque[Event] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._stopped = False
        self._faults = Faults("telemetry", strict=False)
        self.dropped = 0

    @property
    def wanted(self) -> bool:
        """Is there any sink?"""
        return bool(self._sinks)

    def emit(self, event: Event) -> None:
        if not self._sinks:
            return
        with self._wake:
            if len(self._queue) >= QUEUE_EVENTS:
                self._drop_oldest_step()
            self._queue.append(event)
            if self._thread is None:  # lives as long as its client: none can be started at exit
                self._thread = threading.Thread(target=self._serve, name="reasonblocks-telemetry", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until every event was taken, at most `timeout` seconds. False: some were not."""
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
            logger.warning("sinks did not take %d events within %.1f s", len(self._queue) + self._busy, timeout)
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
            shown = self._redacted(event)
            for sink in self._sinks:
                with self._faults.guard(f"sink {type(sink).__name__}"):
                    sink.emit(shown)
            with self._wake:
                self._busy = False
                self._wake.notify_all()

    def _next(self) -> Event | None:
        with self._wake:
            self._wake.wait_for(lambda: bool(self._queue) or self._stopped)
            if not self._queue:
                self._thread, self._stopped = None, False
                return None
            self._busy = True
            return self._queue.popleft()

    def _drop_oldest_step(self) -> None:
        for at, event in enumerate(self._queue):
            if isinstance(event, StepEvent):
                del self._queue[at]
                self.dropped += 1
                self._faults.say("dropped", "the sinks are too slow: the oldest step events are dropped")
                return

    def _redacted(self, event: Event) -> Event:
        if self._redact is None:
            return event
        if isinstance(event, RunStart):
            return replace(event, run=replace(event.run, task=self._hidden(event.run.task)))
        if isinstance(event, StepEvent):
            return replace(
                event,
                thought=self._hidden(event.thought),
                action_input=self._hidden(event.action_input),
                observation=self._hidden(event.observation),
                injections=tuple(map(self._hidden, event.injections)),
                intervention_texts=tuple(map(self._hidden, event.intervention_texts)),
            )
        return event

    def _hidden(self, text: str) -> str:
        """The text as the caller's `redact` gives it; where that fails, nothing of it."""
        with self._faults.guard("redact"):
            shown: object = self._redact(text) if self._redact is not None else text
            if isinstance(shown, str):
                return shown
            raise BadAnswer("redact", shown, "must be text")
        return UNREDACTED
