"""Sends the events of runs to the sinks, redacted; each sink has its own queue and thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..concurrency.forks import on_fork
from ..concurrency.workers import Workers, contain_faults
from ..events import Event, RunFinish, RunStart, StepEvent, step_event
from ..events.event import plain_arguments
from ..exceptions import BadAnswer
from ..ports import TelemetrySink
from ..types import JSON, Doubt, RunInfo, Step, StepLogEntry, ToolCall
from ..types.outcomes import parts_of
from ..util.secret import UNREDACTED
from .guard import Faults
from .sink_queue import QueuedEvent, SinkQueue

Redact = Callable[[str], str]
TEXTS = ("thought", "action_input", "observation", "reasoning", "user_text")
TEXTS_IN_METADATA = (
    "error", "doubts", "stop", "interrupt", "withheld_texts", "withheld_stop", "withheld_interrupt", "argument_order"
)  # fmt: skip
"""Metadata fields that are redacted."""
LISTS = ("injections", "intervention_texts")


class Redactor:
    """Applies the caller's `redact` to every text of an event; a text that it fails on is replaced as a whole."""

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
        return replace(event, run=replace(event.run, task=self.text(event.run.task), metadata=metadata))

    def _step(self, event: StepEvent) -> StepEvent:
        hidden: dict[str, Any] = {name: self.text(getattr(event, name)) for name in TEXTS}
        hidden |= {name: tuple(map(self.text, getattr(event, name))) for name in LISTS}
        if texts := {name: self._within(event.metadata[name]) for name in TEXTS_IN_METADATA if name in event.metadata}:
            hidden["metadata"] = {**event.metadata, **texts}
        if event.tool_calls or event.tool_results:
            hidden["tool_calls"] = tuple([self._call(call) for call in event.tool_calls])
            hidden["tool_results"] = tuple(
                [replace(result, output=self.text(result.output)) for result in event.tool_results]
            )
        return replace(event, **hidden)

    def _call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._within(plain_arguments(call), names=True))

    def _finish(self, event: RunFinish) -> RunFinish:
        start, reason = parts_of(event.outcome)
        outcome = f"{start}{self.text(reason)}" if reason else start
        doubts = tuple([replace(doubt, text=self.text(doubt.text)) for doubt in event.doubts])
        return replace(event, outcome=outcome, doubts=doubts)

    def _within(self, value: JSON, *, names: bool = False) -> JSON:
        """Return the value with its texts redacted; with `names`, those of its keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            items = [(key, self._within(item, names=names)) for key, item in value.items()]
            return {self.text(str(key)) if names else key: item for key, item in items}
        return [self._within(item, names=names) for item in value] if isinstance(value, Sequence) else value

    def text(self, text: str) -> str:
        """Return a text without what the caller hides; if `redact` fails, nothing of it."""
        with self._faults.guard("redact"), contain_faults("redact"):
            redacted: object = self._redact(text) if self._redact is not None else text
            if isinstance(redacted, str):
                return redacted
            raise BadAnswer("redact", redacted, "must be text")
        return UNREDACTED


class Telemetry:
    """Sends events to all sinks. Without sinks it does nothing and starts no thread."""

    def __init__(self, sinks: Sequence[TelemetrySink] = (), redact: Redact | None = None) -> None:
        self._queues = tuple(map(SinkQueue, sinks))
        self._redactor, self._redacts = Redactor(redact, Faults("telemetry", strict=False)), redact is not None
        self._new_lock()
        on_fork(self._new_lock)
        self._waiting = Workers()

    @property
    def wanted(self) -> bool:
        """Return True if there is any sink."""
        return bool(self._queues)

    @property
    def dropped(self) -> int:
        """The number of events dropped because a sink was too slow."""
        return sum(queue.dropped for queue in self._queues)

    @property
    def redact(self) -> Redact | None:
        """The function that hides what the caller wants hidden in a text; None if nothing is hidden."""
        return self._redactor.text if self._redacts else None

    def emit(self, event: Event) -> None:
        if not self._queues:
            return
        queued = QueuedEvent(event, self._redactor.redacted, self._redacting)
        for queue in self._queues:
            queue.emit(queued)

    def _new_lock(self) -> None:
        self._redacting = threading.Lock()

    def flush(self, timeout: float) -> bool:
        """Wait until the sinks have received every event, at most `timeout` seconds; return False if they have not."""
        ends = time.monotonic() + timeout
        return all([queue.flush(ends) for queue in self._queues])  # noqa: C419 - also those after one that fails

    async def aflush(self, timeout: float) -> bool:
        """Flush without blocking the event loop; the loop's shutdown does not wait for it."""
        if not self._queues:
            return True
        from asyncio import wrap_future  # already imported by the awaiting code; others do not pay for it

        return await wrap_future(self._waiting.submit(partial(self.flush, timeout)))

    def start_closing(self, ends: float) -> None:
        """Close every sink once it has received all events, all of them at the same time, until `ends`."""
        for queue in self._queues:
            queue.start_closing(ends)

    def wait_closed(self, ends: float) -> None:
        """Wait for the closing until `ends` on the monotonic clock; a sink that hangs is logged and abandoned."""
        for queue in self._queues:
            queue.wait_closed(ends)

    def close(self, timeout: float) -> None:
        """Flush and close the sinks in at most `timeout` seconds in all."""
        ends = time.monotonic() + timeout
        self.start_closing(ends)
        self.wait_closed(ends)
        self._waiting.close()

    def stop(self) -> None:
        """End the threads once their queues are empty."""
        for queue in self._queues:
            queue.stop()


class RunEvents:
    """Emits the events of one run. Without sinks it makes none."""

    __slots__ = ("_faults", "_telemetry", "run_id")

    def __init__(self, run_id: str, telemetry: Telemetry, faults: Faults) -> None:
        self.run_id, self._telemetry, self._faults = run_id, telemetry, faults

    def start(self, run: RunInfo) -> None:
        self._emit(RunStart(run=run, timestamp=time.time()))

    def step(self, entry: StepLogEntry, step: Step | None, scores: Mapping[str, float]) -> None:
        """Emit an entry that nothing will change."""
        if self._telemetry.wanted:
            with self._faults.guard("telemetry"):
                self._telemetry.emit(step_event(self.run_id, entry, step, scores))

    def finish(self, outcome: str, doubts: tuple[Doubt, ...]) -> None:
        self._emit(RunFinish(run_id=self.run_id, outcome=outcome, timestamp=time.time(), doubts=doubts))

    def _emit(self, event: Event) -> None:
        with self._faults.guard("telemetry"):
            self._telemetry.emit(event)
