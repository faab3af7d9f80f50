"""Sends events to the sinks, each through its own `Lane`: no sink ever delays a step or another sink."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .._json import evolve
from ..events import Event, RunFinish, RunStart, StepEvent, step_event
from ..exceptions import BadAnswer
from ..ports import TelemetrySink
from ..types import JSON, Doubt, RunInfo
from ._guard import Faults, tamed
from ._lane import Lane
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
