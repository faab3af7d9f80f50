"""Records a configuration's decision at each step of a run: the library's own, or a baseline's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.adapters import RunOptions
from reasonblocks.engine.own_level import summary_of
from reasonblocks.monitors.features import features_of
from reasonblocks.ports import Evaluate
from reasonblocks.types import Evaluation, FSMState, Memories, StepDecision
from reasonblocks.util.json import compact
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun

if TYPE_CHECKING:
    from reasonblocks.options import CalibrationSource
    from reasonblocks.ports import Evaluator
    from reasonblocks.session import Backends

__all__ = ["STANDING_RULES", "Intervention", "Judge", "Trail", "judged", "library", "side_by_side"]

T = TypeVar("T")

BATCH = 64
"""Runs that a process is handed at once."""
STANDING_RULES = "E3Injection"
"""The source of injections that every run gets at its start, whatever it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """Text for the agent after the completed step `step`; standing rules are none. `monitor` wrote it, if one did."""

    step: int
    text: str = ""
    monitor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One run, an entry a completed step: how bad it looks so far, whether a monitor injects, the state after it.

    What a baseline does not have is empty. `fired` has the monitors over their thresholds, `gates` the gate's decision.
    `monitors_us` is the time of all monitors with the features that they share, `features_us` that of the features
    alone. `state_bytes` is the length of the trace state after the last step. `told` has an entry an intervention, None
    for a baseline. `summary` is what an agent's own level is taken from.
    """

    scores: tuple[float, ...]
    fires: tuple[bool, ...] = ()
    states: tuple[FSMState, ...] = ()
    fired: tuple[tuple[str, ...], ...] = ()
    gates: tuple[str | None, ...] = ()
    told: tuple[Intervention, ...] | None = None
    summary: Mapping[str, float] = field(default_factory=dict, compare=False)
    monitors_us: tuple[float, ...] = field(default=(), compare=False)
    features_us: tuple[float, ...] = field(default=(), compare=False)
    state_bytes: int | None = None

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """Those of a baseline are where it fires; after the last step nobody is left to hear one."""
        if self.told is not None:
            return self.told
        return tuple(Intervention(step=step) for step, fires in enumerate(self.fires[:-1]) if fires)


Judge: TypeAlias = Callable[[Sequence[RecordedRun]], "list[Trail]"]
"""The trails of runs, in order."""


def judged(judge: Judge, runs: Sequence[RecordedRun], workers: int = 1) -> list[Trail]:
    """The trail of each run, in order. With `workers` in as many processes: the judge must be one that pickles."""
    return side_by_side(judge, runs, workers)


def side_by_side(
    work: Callable[[Sequence[RecordedRun]], list[T]], runs: Sequence[RecordedRun], workers: int
) -> list[T]:
    """What the work makes of each run, in order."""
    if workers <= 1:
        return work(runs)
    batches = [runs[start : start + BATCH] for start in range(0, len(runs), BATCH)]
    return [one for made in _pool(workers).map(work, batches) for one in made]


@cache
def _pool(workers: int) -> ProcessPoolExecutor:
    """Return the processes of this run, which start before numpy has threads: a fork would break those."""
    return ProcessPoolExecutor(workers)


def library(calibration: CalibrationSource | None = None) -> Judge:
    """The library as it is by default, or with a calibration."""
    return partial(_replayed, calibration)


def _replayed(calibration: CalibrationSource | None, runs: Sequence[RecordedRun]) -> list[Trail]:
    with _Watched(calibration=calibration, profile=None, strict=True) as rb:
        return [rb.trail(run) for run in runs]


class _Watched(ReasonBlocks):
    """A client whose last session can be looked at when its run is over, and whose monitors are timed."""

    _last: SteeringSession
    _stopwatch: _Stopwatch

    def trail(self, run: RecordedRun) -> Trail:
        """The run as `reasonblocks replay` replays it. A step fires when it injects. A fault is raised."""
        self._stopwatch = _Stopwatch(super()._backends.evaluator)
        decisions = replay(self, run).decisions
        return Trail(
            scores=tuple(decision.composite or 0.0 for decision in decisions),
            fires=tuple(decision.gate_decision == "inject" for decision in decisions),
            states=tuple(decision.fsm_state for decision in decisions),
            fired=tuple(decision.monitors_fired for decision in decisions),
            gates=tuple(decision.gate_decision for decision in decisions),
            summary=dict(summary_of(self._last.trace.state)),
            told=tuple(_told(decisions, self._stopwatch.speakers)),
            monitors_us=tuple(self._stopwatch.monitors_us),
            features_us=tuple(self._stopwatch.features_us),
            state_bytes=len(compact(self._last.trace.snapshot()).encode()),
        )

    def session(self, options: RunOptions | None = None, **keywords: Any) -> SteeringSession:
        self._last = super().session(options, **keywords)
        return self._last

    @property
    def _backends(self) -> Backends:
        return replace(super()._backends, evaluator=self._stopwatch)


def _told(decisions: Sequence[StepDecision], speakers: Sequence[str | None]) -> Iterator[Intervention]:
    """Yield an intervention for each step after which the agent gets a text that is no standing rule."""
    for step, (decision, speaker) in enumerate(zip(decisions, speakers, strict=True)):
        texts = [injection.text for injection in decision.injections if injection.source != STANDING_RULES]
        if texts:
            monitor = speaker if decision.gate_decision == "inject" else None
            yield Intervention(step=step, text="\n\n".join(texts), monitor=monitor)


class _Stopwatch:
    """The evaluator that it is given, timed. The features are computed once more for their own time, afterwards.

    `speakers` has the monitor whose text each evaluation holds.
    """

    inline = True

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.monitors_us: list[float] = []
        self.features_us: list[float] = []
        self.speakers: list[str | None] = []

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        started = time.perf_counter()
        answer = self._evaluator.evaluate(request)
        self.monitors_us.append((time.perf_counter() - started) * 1e6)
        self.speakers.append(answer[0].monitor)
        started = time.perf_counter()
        features_of(request.step, request.index, request.task)
        self.features_us.append((time.perf_counter() - started) * 1e6)
        return answer
