"""Sinks over providers that keep everything in memory, and the spans that they emitted, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")
from opentelemetry._logs import NoOpLoggerProvider
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider

from reasonblocks import OpenTelemetrySink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.types import RunInfo

__all__ = [
    "CONTENT", "Emitted", "Memory", "NoOpLoggerProvider", "NoOpTracerProvider", "ReadableSpan", "emitted", "finished",
    "id_of", "started", "step",
]  # fmt: skip

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True)
class Emitted:
    """A span that has ended, and those below it in the order of their starts."""

    span: ReadableSpan
    below: tuple[Emitted, ...]

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.span.attributes or {}

    @property
    def times(self) -> tuple[float, float]:
        """Start and end in seconds."""
        return (self.span.start_time or 0) / 1e9, (self.span.end_time or 0) / 1e9

    @property
    def status(self) -> str:
        return self.span.status.status_code.name

    @property
    def names(self) -> Any:
        """The names of the tree: a name, or a name with the list of those below it."""
        return (self.name, [one.names for one in self.below]) if self.below else self.name

    def all(self) -> Iterator[Emitted]:
        yield self
        for one in self.below:
            yield from one.all()

    def named(self, start: str) -> list[Emitted]:
        return [one for one in self.all() if one.name.startswith(start)]


class Memory:
    """Providers whose spans and records stay in memory."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._records = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self._records))

    def sink(self, **options: Any) -> OpenTelemetrySink:
        return OpenTelemetrySink(tracer_provider=self.tracers, logger_provider=self.loggers, **options)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._spans.get_finished_spans()

    @property
    def records(self) -> tuple[ReadableLogRecord, ...]:
        return self._records.get_finished_logs()

    @property
    def roots(self) -> list[Emitted]:
        """The spans whose parent has not ended here, in the order of their starts."""
        here = {id_of(span) for span in self.spans}
        return self._trees([span for span in self.spans if span.parent is None or span.parent.span_id not in here])

    @property
    def run(self) -> Emitted:
        """The only root."""
        (root,) = self.roots
        return root

    def _trees(self, spans: list[ReadableSpan]) -> list[Emitted]:
        ordered = sorted(spans, key=lambda span: span.start_time or 0)
        return [Emitted(span, tuple(self._trees(self._below(span)))) for span in ordered]

    def _below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [span for span in self.spans if span.parent is not None and span.parent.span_id == id_of(parent)]


def id_of(span: ReadableSpan) -> int:
    found = span.get_span_context()
    assert found is not None
    return found.span_id


def started(run_id: str = "run", at: float = 100.0, **more: Any) -> RunStart:
    return RunStart(run=RunInfo(run_id=run_id, **more), timestamp=at)


def step(index: int, at: float | None = None, run_id: str = "run", **more: Any) -> StepEvent:
    """Step `index` at 101, 102, ... seconds."""
    return StepEvent(run_id=run_id, step_index=index, timestamp=101.0 + index if at is None else at, **more)


def finished(at: float = 110.0, outcome: str = "success", run_id: str = "run", **more: Any) -> RunFinish:
    return RunFinish(run_id=run_id, outcome=outcome, timestamp=at, **more)


def emitted(*events: Event, close: bool = True, **options: Any) -> Memory:
    """Return what a sink emitted for these events."""
    memory = Memory()
    sink = memory.sink(**options)
    for event in events:
        sink.emit(event)
    if close:
        sink.close()
    return memory
