"""Assembles the events of a log into runs, and reads a run's completed steps from its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, completed_of, event_of
from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_int, first_text
from reasonblocks.types import JSON, Usage
from reasonblocks.types.outcomes import kind_of

from ._files import Record
from ._groups import Groups
from ._run import Header, RecordedRun, Runs

EVENTS = frozenset({"run_start", "step", "run_finish"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog:
    """The events of one run: its start, its calls by `step_index`, the final one last, and its finish.

    `start` and `finish` are None if the log has none. `line` is that of the run's first event, 1-based; in a SQLite
    file, the number of the run.
    """

    run_id: str
    start: RunStart | None
    steps: tuple[StepEvent, ...]
    finish: RunFinish | None
    file: str
    line: int


Logs: TypeAlias = "Iterator[RunLog | RecordError]"


@dataclass(slots=True, kw_only=True)
class OpenLog:
    """A run while its events arrive, in any order; an event that repeats one changes nothing."""

    run_id: str
    line: int
    start: RunStart | None = None
    steps: dict[int, StepEvent] = field(default_factory=dict)
    finish: RunFinish | None = None

    def begins_again(self, event: RunStart) -> bool:
        """Return True if the event starts another run under the same id: every event of a run follows its start."""
        if self.start is not None:
            return event.timestamp != self.start.timestamp
        times = [step.timestamp for step in self.steps.values()]
        times += [self.finish.timestamp] if self.finish else []
        return any(time < event.timestamp for time in times)

    def add(self, event: Event) -> None:
        if isinstance(event, RunStart):
            self.start = self.start or event
        elif isinstance(event, StepEvent):
            before = self.steps.get(event.step_index)
            if before is None or (before.final and not event.final):  # the run went on after its end
                self.steps[event.step_index] = event
        elif self.finish is None or (kind_of(self.finish.outcome) == "success" != kind_of(event.outcome)):
            self.finish = event

    def log(self, file: str) -> RunLog:
        steps = sorted(self.steps.values(), key=lambda event: event.step_index)
        return RunLog(
            run_id=self.run_id, start=self.start, steps=(*steps,), finish=self.finish, file=file, line=self.line
        )


def logs_of(file: str, records: Iterable[Record | RecordError]) -> Logs:
    """Yield the runs of interleaved events, each a few runs after its end, then those without an end."""
    runs: Groups[OpenLog] = Groups()
    for record in records:
        if isinstance(record, RecordError):
            yield record
            continue
        event = event_in(file, record)
        if isinstance(event, RecordError):
            yield event
            continue
        run = runs.find(event.run_id)
        if run is not None and isinstance(event, RunStart) and run.begins_again(event):
            yield runs.pop(event.run_id).log(file)
        runs.find_or_add(event.run_id, partial(OpenLog, run_id=event.run_id, line=record.line)).add(event)
        if isinstance(event, RunFinish):
            runs.end(event.run_id)  # a failure may still replace a success
        yield from (run.log(file) for run in runs.due())
    yield from (run.log(file) for run in runs.rest())


def is_event(value: JSON) -> bool:
    """Return True for the JSON of an event."""
    return isinstance(value, dict) and first_text(value, "event") in EVENTS and "run_id" in value


def event_in(file: str, record: Record) -> Event | RecordError:
    """Return the event of a record."""
    if not isinstance(record.value, Mapping):
        return RecordError(file, record.line, "is a list, not an event")
    try:
        return event_of(record.value)
    except ValueError as error:
        return RecordError(file, record.line, f"is not an event: {error}")


# --- a run's steps


def recorded_of(log: RunLog) -> RecordedRun:
    """Return the run of a log: event n has completed step n-1, and the final event the last.

    Auxiliary calls are no steps. A call without an answer, or without an event after it, is no step either.
    """
    calls = {event.step_index: event for event in log.steps if not event.final}
    events = list(_with_step(log.steps, calls))
    begun = min((event.timestamp for event in log.steps), default=0.0)
    run = log.start.run if log.start else None
    header = Header(
        run_id=log.run_id,
        source=(run.agent_name or None) if run else None,
        outcome=log.finish.outcome if log.finish else None,
        task=run.task if run else None,
        task_profile=run.task_profile if run else None,
        model=(run.model if run else None) or _model(log.steps),
        parent_run_id=run.parent_run_id if run else None,
    )
    usages = tuple([_usage_before(event.step_index, calls) for event in events])
    recorded = header.recorded(log.file, log.line, tuple(map(completed_of, events)), usages)
    return replace(
        recorded,
        calls=tuple([event.step_index for event in events]),
        seconds=tuple([event.timestamp - begun for event in events]),
    )


def runs_of_logs(logs: Logs) -> Runs:
    for log in logs:
        yield log if isinstance(log, RecordError) else recorded_of(log)


def _is_auxiliary(event: StepEvent) -> bool:
    return event.metadata.get("skipped_reason") == "auxiliary"


def _with_step(events: Iterable[StepEvent], calls: Mapping[int, StepEvent]) -> Iterator[StepEvent]:
    """Yield the events that have a completed step: all but auxiliary ones, and the first call that is a step."""
    first = 0
    while first in calls and _is_auxiliary(calls[first]):
        first += 1
    return (event for event in events if event.step_index > first and not _is_auxiliary(event))


def _usage_before(index: int, calls: Mapping[int, StepEvent]) -> Usage:
    """Return the tokens of the last step before call `index`; unknown if its event is missing."""
    before = index - 1
    while before in calls and _is_auxiliary(calls[before]):
        before -= 1
    return _usage(calls[before]) if before in calls else Usage()


def _usage(event: StepEvent) -> Usage:
    return Usage(
        input=event.input_tokens,
        output=event.output_tokens,
        cache_read=event.cache_read_tokens,
        cache_write=first_int(event.metadata, "cache_write_tokens"),
    )


def _model(events: Iterable[StepEvent]) -> str | None:
    return next((event.step_model for event in events if event.step_model), None)


class JsonlLog:
    """Reads the events that `JsonlSink` wrote. Runs may be interleaved; only a line that is not an event is lost."""

    name = "jsonl-sink"
    title = "events of JsonlSink"

    def sniff(self, value: JSON) -> bool:
        return is_event(value)

    def lacks(self, value: JSON) -> str | None:
        if not isinstance(value, dict) or "event" not in value:
            return None
        is_known = first_text(value, "event") in EVENTS
        return "no 'run_id'" if is_known else f"no 'event' of {', '.join(sorted(EVENTS))}"

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return runs_of_logs(logs_of(file, records))
