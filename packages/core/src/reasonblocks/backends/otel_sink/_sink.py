"""Follows runs through their events, and emits each span when its end is known."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ...concurrency.forks import on_fork
from ...events import Event, RunFinish, RunStart, StepEvent, completed_of
from ...exceptions import ExtraMissing
from ...types import RunInfo, Step
from ...types.outcomes import kind_of
from ...util.json import is_number
from . import _names as names

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.trace import Span, SpanContext, TracerProvider

RUNS = 1_024
"""The most open runs, as many as a client remembers; and as many ended ones, for what arrives later."""


@dataclass(slots=True, kw_only=True)
class OpenRun:
    """A run whose span has not ended.

    `waiting` is its newest step, whose span ends with the next event, `asides` counts the auxiliary calls since then,
    and `completed` is the newest completed step: its span, which has ended, and its number.
    """

    run_id: str
    span: Span
    run: RunInfo | None
    parent: SpanContext | None
    begun: float
    newest: float
    waiting: StepEvent | None = None
    asides: int = 0
    completed: tuple[SpanContext, int] | None = None
    steps: int = 0
    tokens: int = 0

    @property
    def context(self) -> SpanContext:
        return self.span.get_span_context()


@dataclass(slots=True, kw_only=True)
class EndedRun:
    """The rest of a run whose span has ended, without its texts. `outcome` is None if it has not finished."""

    context: SpanContext
    run: RunInfo | None
    parent: SpanContext | None
    outcome: str | None


class OpenTelemetrySink:
    """Emits a span for each run and each of its steps, and a log event for each monitor's score of a step.

    `calls=True` adds spans of the calls to models and tools, with their tokens. Use it only where nothing else reports
    them: instrumentation of your framework or of the model's client does, and they would count twice. The texts of the
    agent are emitted only if the environment variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is "true",
    "SPAN_ONLY" or "SPAN_AND_EVENT" when the sink is made.

    Without providers, it uses the program's global ones. It never flushes or shuts them down: close the client first.
    Raises `ExtraMissing` without opentelemetry-api. Used by one thread at a time.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        calls: bool = False,
    ) -> None:
        _require()
        from ._spans import Spans

        content = os.environ.get(names.CONTENT_VARIABLE, "").strip().lower() in names.CONTENT_ON
        self._spans = Spans(tracer_provider, logger_provider, calls=calls, content=content)
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._ended: OrderedDict[str, EndedRun] = OrderedDict()
        on_fork(self._leave)

    def emit(self, event: Event) -> None:
        if isinstance(event, RunStart):
            self._start(event)
        elif isinstance(event, StepEvent):
            self._step(event)
        else:
            self._finish(event)

    def close(self) -> None:
        """End the spans of all open runs, marked as unfinished. A run that continues later has another span."""
        while self._open:
            self._end_unfinished(next(iter(self._open)))

    def _leave(self) -> None:
        """Leave the open spans to the parent of a forked process; a run that continues here has another span."""
        for run in self._open.values():
            self._remember(run, None)
        self._open.clear()

    def _start(self, event: RunStart) -> None:
        run = event.run
        if run.run_id in self._open:  # a new run under the same id
            self._end_unfinished(run.run_id)
        parent, link = self._parents(run)
        self._begin(run.run_id, event.timestamp, run=run, parent=parent, link=link)

    def _parents(self, run: RunInfo) -> tuple[SpanContext | None, SpanContext | None]:
        """Return the parent of a run's span, and the span that it links to.

        A run that another run's tool started belongs to that run, unless the program had a span of its own around it.
        """
        own, outer = self._spans.parent_of(run.traceparent), self._known(run.parent_run_id)
        if outer is None:
            return own, None
        around = outer.run.traceparent if outer.run is not None else None
        return (outer.context, None) if own is None or run.traceparent == around else (own, outer.context)

    def _known(self, run_id: str | None) -> OpenRun | EndedRun | None:
        return None if run_id is None else self._open.get(run_id) or self._ended.get(run_id)

    def _begin(
        self,
        run_id: str,
        at: float,
        *,
        run: RunInfo | None = None,
        parent: SpanContext | None = None,
        link: SpanContext | None = None,
    ) -> OpenRun:
        span = self._spans.run(run_id, run, at, parent, link)
        self._ended.pop(run_id, None)
        begun = self._open[run_id] = OpenRun(run_id=run_id, span=span, run=run, parent=parent, begun=at, newest=at)
        if len(self._open) > RUNS:
            self._end_unfinished(next(iter(self._open)))
        return begun

    def _step(self, event: StepEvent) -> None:
        run = self._run_of(event)
        waiting = run.waiting
        if waiting is not None and (waiting.step_index, waiting.timestamp) == (event.step_index, event.timestamp):
            return  # a repeated event
        run.newest = max(run.newest, event.timestamp)
        run.steps += not event.metadata.get("final")
        run.tokens += event.tokens or 0
        if event.metadata.get("skipped_reason") == "auxiliary":  # between two steps, and no step itself
            self._spans.step(run.context, event, _end_of(event), Step(), None)
            run.asides += 1
            return
        self._end_step(run, event)
        run.waiting, run.asides = event, 0

    def _end_step(self, run: OpenRun, event: StepEvent) -> None:
        """End the step that waits. The event has its answer, unless its call failed or events between are missing."""
        waiting, done = run.waiting, completed_of(event)
        is_next = waiting is not None and event.step_index == waiting.step_index + 1 + run.asides
        if waiting is not None and is_next and not waiting.metadata.get("error"):
            run.completed = self._spans.step(run.context, waiting, event.timestamp, done, event), waiting.step_index
            return
        if waiting is not None:
            self._spans.step(run.context, waiting, event.timestamp, Step(), None)
        if is_next and run.completed is not None:  # after a failed call, the step before it is judged once more
            self._spans.judge(*run.completed, event)
        elif event.scores or done != Step():  # its call was made in another process, or its own event was lost
            index = max(0, event.step_index - (2 if is_next else 1))
            missing = StepEvent(run_id=event.run_id, step_index=index, timestamp=event.timestamp)
            run.completed = self._spans.step(run.context, missing, event.timestamp, done, event), index

    def _run_of(self, event: StepEvent | RunFinish) -> OpenRun:
        """Return the open run of an event; begin another span for one that has ended, or began in another process."""
        run = self._open.get(event.run_id)
        if run is not None:
            self._open.move_to_end(event.run_id)
            return run
        before = self._ended.get(event.run_id)
        if before is None:
            run = self._begin(event.run_id, event.timestamp)
        else:
            parent = before.parent or before.context
            run = self._begin(event.run_id, event.timestamp, run=before.run, parent=parent, link=before.context)
        run.span.set_attribute(names.RUN_CONTINUED, True)
        return run

    def _finish(self, event: RunFinish) -> None:
        ended = self._ended.get(event.run_id)
        if event.run_id in self._open or ended is None or ended.outcome is None:
            self._end(self._run_of(event), event.timestamp, event)
        elif event.outcome != ended.outcome and kind_of(event.outcome) != "success":
            ended.outcome = event.outcome
            self._spans.outcome(ended.context, event.run_id, event)

    def _end_unfinished(self, run_id: str) -> None:
        run = self._open[run_id]
        self._end(run, run.newest if run.waiting is None else max(run.newest, _end_of(run.waiting)), None)

    def _end(self, run: OpenRun, at: float, finish: RunFinish | None) -> None:
        del self._open[run.run_id]
        self._remember(run, finish)
        if run.waiting is not None:
            self._spans.step(run.context, run.waiting, at, Step(), None)
        run.span.set_attributes({names.RUN_STEPS: run.steps, names.RUN_TOKENS: run.tokens})
        self._spans.end_run(run.span, run.begun, at, finish)

    def _remember(self, run: OpenRun, finish: RunFinish | None) -> None:
        known = replace(run.run, task="", metadata={}) if run.run is not None else None
        outcome = finish.outcome if finish is not None else None
        self._ended[run.run_id] = EndedRun(context=run.context, run=known, parent=run.parent, outcome=outcome)
        if len(self._ended) > RUNS:
            self._ended.popitem(last=False)


def _end_of(event: StepEvent) -> float:
    """Return the time at which the call of a step ended, as far as it is known."""
    latency = event.metadata.get("latency_ms")
    return event.timestamp + max(0.0, latency) / 1_000 if is_number(latency) else event.timestamp


def _require() -> None:
    try:
        found = find_spec("opentelemetry.trace") is not None
    except (ImportError, ValueError):  # without the namespace, or with `sys.modules` holding None for it
        found = False
    if not found:
        raise ExtraMissing("OpenTelemetrySink", "opentelemetry-api", "otel")
