"""Queues the events of one sink and delivers them in a daemon thread, so that no sink delays a step or another sink."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf

from ..concurrency.forks import on_fork
from ..concurrency.interrupts import Condition
from ..concurrency.workers import contain_faults
from ..events import Event, StepEvent
from ..exceptions import BadAnswer, Refused, Unavailable
from ..ports import BatchSink, TelemetrySink
from ..util.json import is_number
from .guard import Faults

QUEUE_EVENTS = 1_000
"""The most waiting events; when the queue is full, the oldest step is dropped."""
MAX_EVENTS = 4_000
"""Starts and finishes may fill the queue up to here; then the oldest of them is dropped."""
BATCH_EVENTS = 64
"""The most events that a batch sink is offered at once."""
BATCH_SECONDS = 5.0
"""The time that a batch sink has for one offer, except while it is closed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Seconds until a batch sink that took nothing is called again: doubled each time, and varied by half."""
REMOTE_SECONDS = 0.5
"""The most that the end of a run waits for a sink of another process."""
SHORTEST_RETRY_AFTER, LONGEST_RETRY_AFTER = 0.05, 3_600.0
"""The bounds of a pause, in seconds, that a sink may request. Zero, a negative value or no number requests none."""


class QueuedEvent:
    """An event for several sinks: it is redacted once, in the thread of the first sink that takes it.

    `lock` is held meanwhile, so that one thread at a time calls `redact`.
    """

    __slots__ = ("_lock", "_redact", "_redacted", "event")

    def __init__(self, event: Event, redact: Callable[[Event], Event], lock: threading.Lock) -> None:
        self.event, self._redact, self._lock = event, redact, lock
        self._redacted: Event | None = None

    def redacted(self) -> Event:
        with self._lock:
            if self._redacted is None:
                self._redacted = self._redact(self.event)
            return self._redacted


def _batch_seconds(sink: object) -> float:
    """Return a sink's `batch_seconds` in [0, 5]; 0 for anything but a number."""
    seconds = getattr(sink, "batch_seconds", 0.0)
    return min(max(float(seconds), 0.0), BATCH_SECONDS) if is_number(seconds) else 0.0


class SinkQueue:
    """Delivers events and closes the sink in a daemon thread, started at once because none can be started at exit."""

    def __init__(self, sink: TelemetrySink) -> None:
        self._sink, self._name = sink, type(sink).__name__
        self._batch = sink if isinstance(sink, BatchSink) else None
        self._batch_seconds = _batch_seconds(sink) if self._batch is not None else 0.0
        self._is_remote = getattr(sink, "remote", False) is True
        self._faults = Faults("telemetry", strict=False)
        self.dropped = self._overflow = 0
        self._reset()
        self._is_closed = False
        on_fork(self._reset)
        self._start()

    def _reset(self) -> None:
        """Start afresh in a forked process: the thread, the events and the sink's handles stay with the parent."""
        self._queue: deque[QueuedEvent] = deque()
        self._wake = Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._flushes = 0
        self._since = 0.0
        self._stopped = self._closing = False
        self._is_closed = True
        self._ends, self._resumes = inf, 0.0
        self._pause = FIRST_PAUSE

    def _start(self) -> None:
        """Start the thread, also again after a close or a fork.

        A thread whose start was interrupted ends itself, because it is not `_thread`.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="reasonblocks-telemetry", daemon=True)
            started, self._thread = None, thread
            try:
                with suppress(RuntimeError):  # at exit, or with too many threads: retried with the next event
                    thread.start()
                    started = thread
            finally:
                self._thread = started

    def emit(self, queued: QueuedEvent) -> None:
        """Queue an event; if the queue is full, drop the oldest step."""
        with self._wake:
            if len(self._queue) >= QUEUE_EVENTS:
                self._drop()
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append(queued)
            self._is_closed = False
            self._start()
            self._wake.notify_all()

    def flush(self, ends: float) -> bool:
        """Wait until the sink has received every event, at most until `ends`; return False if it has not.

        A sink that pauses beyond `ends` is not waited for; one of another process at most `REMOTE_SECONDS`, and not at
        all while it pauses, because a run must not end later if its server is slow.
        """
        resumes_by = ends
        if self._is_remote:
            resumes_by, ends = time.monotonic(), min(ends, time.monotonic() + REMOTE_SECONDS)
        with self._wake:
            self._flushes += 1
            try:
                self._wake.notify_all()
                self._wake.wait_for(lambda: self._is_idle or self._resumes > resumes_by, ends - time.monotonic())
            finally:
                self._flushes -= 1
            return self._is_idle

    @property
    def _is_idle(self) -> bool:
        return not self._queue and not self._busy

    def start_closing(self, ends: float) -> None:
        """Close the sink once the queue is empty, unless that was done since the last event.

        A batch sink that pauses beyond `ends` is closed at once, and its events are dropped.
        """
        with self._wake:
            if not self._is_closed:
                self._closing, self._ends = True, ends
                self._start()
                self._wake.notify_all()

    def wait_closed(self, ends: float) -> None:
        """Wait until the sink is closed, at most until `ends`; then abandon it and log that once."""
        with self._wake:
            if self._wake.wait_for(lambda: not self._closing, ends - time.monotonic()):
                return
            left = len(self._queue) + self._busy
        self._left_behind(left)

    def stop(self) -> None:
        """End the thread once the queue is empty, or the sink pauses."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            finally:
                with self._wake:
                    self._busy = 0
                    self._wake.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """Wait for work and return it; None ends the thread."""
        with self._wake:
            while self._thread is threading.current_thread():
                pause = max(self._resumes - time.monotonic(), self._gathers)
                if self._queue and pause > 0 and (self._stopped or (self._closing and self._resumes > self._ends)):
                    self._drop_all()
                if self._queue and pause <= 0:
                    return self._delivery()
                if not self._queue and self._closing:
                    return self._close
                if not self._queue and self._stopped:
                    self._thread, self._stopped = None, False
                    return None
                self._wake.wait(pause if self._queue else None)
            return None

    @property
    def _gathers(self) -> float:
        """The seconds for which a batch that is not full waits for more events."""
        if len(self._queue) >= BATCH_EVENTS or self._closing or self._stopped or self._flushes:
            return 0.0
        return self._since + self._batch_seconds - time.monotonic()

    def _delivery(self) -> Callable[[], None]:
        if self._batch is None:
            self._busy = 1
            return partial(self._deliver, self._queue.popleft())
        self._busy = min(BATCH_EVENTS, len(self._queue))
        return partial(self._offer, self._batch, [self._queue.popleft() for _ in range(self._busy)])

    def _deliver(self, queued: QueuedEvent) -> None:
        with self._faults.guard(f"sink {self._name}"), contain_faults("a sink"):
            self._sink.emit(queued.redacted())

    def _offer(self, sink: BatchSink, batch: list[QueuedEvent]) -> None:
        lost = len(batch)
        with self._faults.guard(f"sink {self._name}"):
            try:
                with contain_faults("a sink"):
                    taken = self._number(sink.emit_many([queued.redacted() for queued in batch], self._seconds), batch)
            except Unavailable as exc:
                self._faults.say("unavailable", f"sink {self._name}: {exc}; its events wait (logged once per client)")
                self._put_back(batch, retry_after=exc.retry_after)
                return
            except Refused as exc:
                lost = lost if exc.events is None else min(max(exc.events, 1), lost)
                self._put_back(batch[lost:], progress=True)
                if not exc.logged:
                    raise
            else:
                self._put_back(batch[taken:], progress=taken > 0)
                return
        with self._wake:
            self.dropped += lost  # offered again, they could fail for ever

    def _number(self, taken: object, batch: list[QueuedEvent]) -> int:
        if type(taken) is not int or not 0 <= taken <= len(batch):
            raise BadAnswer(f"sink {self._name}", taken, f"emit_many must return how many it took: 0 to {len(batch)}")
        return taken

    @property
    def _seconds(self) -> float:
        left = self._ends - time.monotonic()
        return max(0.0, min(left, BATCH_SECONDS))

    def _put_back(self, left: list[QueuedEvent], *, progress: bool = False, retry_after: float | None = None) -> None:
        """Offer these events again: at once after progress, else after a pause."""
        with self._wake:
            self._queue.extendleft(reversed(left))
            while len(self._queue) > QUEUE_EVENTS and self._drop():
                pass
            if progress:
                self._pause, self._resumes = FIRST_PAUSE, 0.0
                return
            pause = self._pause * random.uniform(0.5, 1.5)
            if isinstance(retry_after, (int, float)) and retry_after > 0:  # a server may say 0, or anything, for ever
                pause = min(max(retry_after, SHORTEST_RETRY_AFTER), LONGEST_RETRY_AFTER)
            self._resumes = time.monotonic() + pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _close(self) -> None:
        self._say_dropped()
        with self._faults.guard(f"closing sink {self._name}"), contain_faults("a sink"):
            self._sink.close()
        with self._wake:
            self._closing, self._is_closed, self._stopped, self._ends = False, not self._queue, True, inf

    def _drop(self) -> bool:
        """Drop the oldest step; a start or a finish only if the queue is full of them. Return False if none was."""
        oldest = next((at for at, queued in enumerate(self._queue) if isinstance(queued.event, StepEvent)), None)
        if oldest is not None:
            del self._queue[oldest]
        elif len(self._queue) >= MAX_EVENTS:
            self._queue.popleft()
        else:
            return False
        self.dropped += 1
        self._overflow += 1
        self._faults.say("dropped", f"sink {self._name} is too slow: the oldest events are dropped")
        return True

    def _drop_all(self) -> None:
        """Drop the events of a sink that pauses when there is no time left for it."""
        self.dropped += len(self._queue)
        self._left_behind(len(self._queue))
        self._queue.clear()

    def _left_behind(self, events: int) -> None:
        missed = f"take {events:,} event{'s'[: events > 1]}" if events else "close"
        missed += f" (and {self._overflow:,} were dropped before)" if self._overflow else ""
        self._faults.say("left behind", f"sink {self._name} did not {missed} in the time it had; it is left behind")

    def _say_dropped(self) -> None:
        if self._overflow:
            events = f"{self._overflow:,} event{'s'[: self._overflow > 1]}"
            self._faults.say("left behind", f"sink {self._name} was too slow: {events} dropped in all")
