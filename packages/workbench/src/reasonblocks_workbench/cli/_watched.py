"""Keeps the newest runs of a watched log, with their states and their newest texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, entry_of
from reasonblocks.types.outcomes import kind_of

from ..report.page import MONITOR, STANDING, WHO

RUNS_KEPT = 200
TEXTS_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A text, the run and call that got it, and its origin. An observed run's text was `withheld`."""

    run_id: str
    step: int
    timestamp: float
    who: str
    why: str
    text: str
    withheld: bool = False


@dataclass(slots=True, kw_only=True)
class WatchedRun:
    """A run as of its newest event; times are seconds since the epoch."""

    run_id: str
    agent_name: str = ""
    task: str = ""
    model: str = ""
    mode: str = "steer"
    started: float | None = None
    seen: float = 0.0
    step: int | None = None
    state: str = ""
    difficulties: deque[float | None] = field(default_factory=lambda: deque(maxlen=24))
    tokens: int = 0
    texts: int = 0
    outcome: str | None = None
    doubted: bool = False


class Watched:
    """The newest runs, in the order of their newest event, and the newest texts."""

    def __init__(self) -> None:
        self.runs: dict[str, WatchedRun] = {}
        self.texts: deque[Told] = deque(maxlen=TEXTS_KEPT)

    def add(self, event: Event) -> WatchedRun:
        """Apply an event and return its run."""
        run_id = event.run_id
        run = self.runs.pop(run_id, None) or WatchedRun(run_id=run_id)
        if isinstance(event, RunStart):
            run = _started(event)
        elif isinstance(event, StepEvent):
            self._step(run, event)
        else:
            run.outcome, run.doubted = event.outcome, run.doubted or bool(event.doubts)
        run.seen = max(run.seen, event.timestamp)
        self.runs[run_id] = run
        while len(self.runs) > RUNS_KEPT:
            del self.runs[next(iter(self.runs))]
        return run

    @property
    def live(self) -> int:
        """The number of runs without an outcome."""
        return sum(run.outcome is None for run in self.runs.values())

    def _step(self, run: WatchedRun, event: StepEvent) -> None:
        entry = entry_of(event)
        run.step, run.state = event.step_index, entry.fsm_state or run.state
        run.doubted = bool(entry.doubts)
        known = entry.difficulty is not None and 0 <= entry.difficulty <= 1
        run.difficulties.append(entry.difficulty if known else None)
        run.tokens += event.tokens or 0
        if not event.final:
            run.outcome = None  # it continues
        found = list(told(event))
        run.texts += len(found)
        self.texts.extend(found)


def _started(event: RunStart) -> WatchedRun:
    run = event.run
    return WatchedRun(
        run_id=run.run_id,
        agent_name=run.agent_name,
        task=run.task,
        model=run.model,
        mode=run.mode,
        started=event.timestamp,
    )


def told(event: StepEvent) -> Iterator[Told]:
    """Yield the texts of a call except standing rules, then those that were withheld from an observed run."""
    entry = entry_of(event)
    shown = zip(entry.injection_sources, entry.intervention_texts)
    withheld = zip(entry.withheld_sources, entry.withheld_texts)
    for hidden, pairs in ((False, shown), (True, withheld)):
        for source, text in pairs:
            if source != STANDING:
                yield Told(
                    run_id=event.run_id,
                    step=event.step_index,
                    timestamp=event.timestamp,
                    who=WHO.get(source, source),
                    why=", ".join(event.monitors_fired) if source == MONITOR else "",
                    text=text,
                    withheld=hidden,
                )


def finish_of(event: RunFinish, run: WatchedRun) -> str:
    """Return the outcome for people, with a remark for a success in doubt."""
    return f"{event.outcome} (in doubt)" if kind_of(event.outcome) == "success" and run.doubted else event.outcome
