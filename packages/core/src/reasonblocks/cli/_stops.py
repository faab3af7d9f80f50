"""Finds the step after which `stop_when` ends a replayed run, and why."""

from __future__ import annotations

from dataclasses import dataclass

from .._engine._control import LASTING_STEPS
from .._monitors.suite import RUNGS
from .._replay import ReplayedRun
from ..types import FSMState, StepDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The end of a run before its next call, and its reason. It is not `real` if observing prevents it."""

    reason: str
    real: bool

    @property
    def word(self) -> str:
        return "stopped" if self.real else "would be stopped"


def stop_of(decision: StepDecision) -> Stop | None:
    if decision.stop is not None:
        return Stop(reason=decision.stop, real=True)
    return None if decision.withheld_stop is None else Stop(reason=decision.withheld_stop, real=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The first stop of a run, which follows step `step`. The run was recorded with `saved` steps after it."""

    step: int
    stop: Stop
    saved: int

    @property
    def place(self) -> str:
        return f"{self.stop.word} before step {self.step + 1:,}"


def stopped(replayed: ReplayedRun) -> Stopped | None:
    """Return where the run is stopped first; None if nothing ends it. An observed run continues after it."""
    for index, decision in enumerate(replayed.decisions):
        stop = stop_of(decision)
        if stop is not None:
            return Stopped(step=index, stop=stop, saved=len(replayed.run.steps) - 1 - index)
    return None


def stop_reason(replayed: ReplayedRun, found: Stopped) -> str:
    """Return the reason of a stop; for "stalled", with the state or the monitor that is behind it, as far as known."""
    detail = _stalled_by(replayed, found.step) if found.stop.reason == "stalled" else ""
    return f"{found.stop.reason} ({detail})" if detail else found.stop.reason


def _stalled_by(replayed: ReplayedRun, index: int) -> str:
    """Return what the decisions show: a monitor that fired to the end is only named if it is the only one."""
    if replayed.decisions[index].fsm_state is FSMState.SKIP:
        return "state SKIP"
    newest = replayed.decisions[max(0, index + 1 - LASTING_STEPS) : index + 1]
    told = sum(decision.gate_decision == "inject" for decision in replayed.decisions[: index + 1 - LASTING_STEPS])
    lasting = set.intersection(*(set(decision.monitors_fired) for decision in newest))
    if len(newest) < LASTING_STEPS or told < RUNGS or not lasting:
        return ""
    named = sorted(lasting)
    who = named[0] if len(named) == 1 else f"one of {', '.join(named)}"
    return f"{who} had all its {RUNGS} texts and still fired on the last {LASTING_STEPS} steps"
