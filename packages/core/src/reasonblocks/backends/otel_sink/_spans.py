"""Emits spans and log events with the times of our events. Imported only where opentelemetry-api is installed."""

from __future__ import annotations

from importlib import import_module

from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ...events import RunFinish, StepEvent
from ...types import RunInfo, Step
from ...util.json import is_number
from . import _attributes as attributes
from . import _names as names

SCOPE = "reasonblocks"
"""The instrumentation scope of all spans and events, with the version of this library."""
LATEST = 2**63 / 1e9
"""The last second whose nanoseconds OTLP can hold."""


class Spans:
    """Emits the spans of runs, steps, calls and tools. A span is named by its `SpanContext` once it has started."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        logger_provider: LoggerProvider | None,
        *,
        calls: bool,
        content: bool,
    ) -> None:
        version: str = import_module(SCOPE).__version__  # not imported above: that module names all others
        self._tracer = get_tracer(SCOPE, version, tracer_provider)
        self._logger = get_logger(SCOPE, version, logger_provider)
        self._calls, self._content = calls, content

    @staticmethod
    def parent_of(traceparent: str | None) -> SpanContext | None:
        """Return the span that a W3C `traceparent` names; None for none, and for an invalid one."""
        if not isinstance(traceparent, str):
            return None
        context = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())
        found = get_current_span(context).get_span_context()
        return found if found.is_valid else None

    def run(
        self, run_id: str, run: RunInfo | None, at: float, parent: SpanContext | None, link: SpanContext | None
    ) -> Span:
        """Start the span of a run; a `link` names the span of the run that it belongs to."""
        return self._tracer.start_span(
            attributes.run_name(run),
            _within(parent),
            SpanKind.INTERNAL,
            attributes.run_attributes(run_id, run, content=self._content),
            [Link(link)] if link is not None else [],
            nanoseconds(at),
        )

    @staticmethod
    def end_run(span: Span, begun: float, at: float, finish: RunFinish | None) -> None:
        """End the span of a run that began at `begun`; without `finish`, as unfinished."""
        if finish is None:
            span.set_attribute(names.RUN_UNFINISHED, True)
        else:
            put_outcome(span, finish)
        span.end(max(nanoseconds(begun), nanoseconds(at)))

    def outcome(self, of: SpanContext, run_id: str, finish: RunFinish) -> None:
        """Emit a span of its own for an outcome that arrives after the span of its run has ended."""
        at = nanoseconds(finish.timestamp)
        span = self._tracer.start_span(
            names.OUTCOME, _within(of), attributes={names.RUN_ID: run_id, names.OI_KIND: "CHAIN"}, start_time=at
        )
        put_outcome(span, finish)
        span.end(at)

    def step(self, of: SpanContext, step: StepEvent, until: float, done: Step, judged: StepEvent | None) -> SpanContext:
        """Emit a step that lasted until `until` and led to `done`; the event `judged` has the evaluations of it."""
        start = nanoseconds(step.timestamp)
        end = max(start, nanoseconds(until))
        found = attributes.evaluations(judged, content=self._content) if judged is not None else []
        known = attributes.step_attributes(step) | attributes.span_evaluations(found)
        span = self._tracer.start_span(names.STEP, _within(of), attributes=known, start_time=start)
        for injection in attributes.injections(step, content=self._content):
            span.add_event(names.INJECTION, injection, start)
        self._fail(span, step)
        within = set_span_in_context(span, Context())
        if self._calls and is_called(step):
            self._tools(within, step, done, self._call(within, step, done, start, end), end)
        span.end(end)
        if judged is not None:
            self._judge(within, step.step_index, judged, found)
        return span.get_span_context()

    def judge(self, of: SpanContext, index: int, judged: StepEvent) -> None:
        """Emit the evaluations of step `index`, whose span has ended."""
        self._judge(_within(of), index, judged, attributes.evaluations(judged, content=self._content))

    def _fail(self, span: Span, step: StepEvent) -> None:
        """Mark the span of a step, or of its call, as failed if the call has failed."""
        error = step.metadata.get("error")
        if isinstance(error, str) and error:
            span.set_attribute(names.ERROR_TYPE, attributes.error_type(error))
            span.set_status(Status(StatusCode.ERROR, attributes.short(error) if self._content else None))

    def _call(self, within: Context, step: StepEvent, done: Step, start: int, end: int) -> int:
        """Emit the step's call to the model, and return its end: that of the step if its latency is not known."""
        latency = step.metadata.get("latency_ms")
        end = min(end, start + _duration(latency)) if is_number(latency) else end
        model = attributes.short(step.step_model or "")
        span = self._tracer.start_span(
            f"{names.CHAT} {model}" if model else names.CHAT,
            within,
            SpanKind.CLIENT,
            attributes.call_attributes(step, done, content=self._content),
            start_time=start,
        )
        self._fail(span, step)
        span.end(end)
        return end if is_number(latency) else start

    def _tools(self, within: Context, step: StepEvent, done: Step, start: int, end: int) -> None:
        """Emit the step's tool calls, which start after the call to the model, a nanosecond apart to keep their order.

        A call without a duration lasts until the end of the step.
        """
        for at, (call, result) in enumerate(attributes.executed(done), start=1):
            span = self._tracer.start_span(
                attributes.tool_name(call),
                within,
                attributes=attributes.tool_attributes(step, call, result, content=self._content),
                start_time=start + at,
            )
            if result.is_error:
                span.set_status(Status(StatusCode.ERROR))
            duration = result.duration_ms
            span.end(max(start + at, min(end, start + at + _duration(duration)) if is_number(duration) else end))

    def _judge(self, within: Context, index: int, judged: StepEvent, found: list[attributes.Attributes]) -> None:
        for evaluation in found:
            self._logger.emit(
                timestamp=nanoseconds(judged.timestamp),
                context=within,
                severity_number=SeverityNumber.INFO,
                attributes={**evaluation, names.RUN_ID: judged.run_id, names.STEP_INDEX: index},
                event_name=names.EVALUATION,
            )


def put_outcome(span: Span, finish: RunFinish) -> None:
    """Put a run's outcome on a span."""
    span.set_attributes(attributes.outcome_attributes(finish))
    if (failure := attributes.failure_of(finish.outcome)) is not None:
        span.set_attribute(names.ERROR_TYPE, failure)
        span.set_status(Status(StatusCode.ERROR))


def is_called(step: StepEvent) -> bool:
    """Return True unless no model was called: for the final step, and for a call that was never made."""
    return not step.metadata.get("final") and step.metadata.get("error") != attributes.NOT_CALLED


def nanoseconds(seconds: float) -> int:
    """Return the time in nanoseconds; 0 for an invalid time."""
    return round(seconds * 1e9) if is_number(seconds) and 0 <= seconds < LATEST else 0


def _duration(milliseconds: float) -> int:
    return round(min(max(0.0, milliseconds), LATEST) * 1e6)


def _within(span: SpanContext | None) -> Context:
    """Return a context with this span as the parent; without one, an empty context: never that of this thread."""
    return Context() if span is None else set_span_in_context(NonRecordingSpan(span), Context())
