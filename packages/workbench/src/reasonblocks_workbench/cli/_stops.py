"""Finds the step after which `stop_when` ends a replayed run, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reasonblocks.engine.control import LASTING_STEPS
from reasonblocks.monitors.builtin import MONITORS
from reasonblocks.monitors.kinds import TYPES
from reasonblocks.monitors.told import TEXTS
from reasonblocks.types import FSMState, StepDecision

from ..replay import ReplayedRun

_MONITORS = {row.failure_type: row.name for row in MONITORS}


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
    """Return the state or the monitor behind a stalled run; "" if the decisions do not show it."""
    if replayed.decisions[index].fsm_state is FSMState.SKIP:
        return "state SKIP"
    first = index + 1 - LASTING_STEPS
    if first < 0:
        return ""
    named = _worn_out(replayed.decisions[:first], replayed.decisions[first : index + 1])
    who = named[0] if len(named) == 1 else f"one of {', '.join(named)}"
    return f"{who} had all its {TEXTS} texts and still fired on the last {LASTING_STEPS} steps" if named else ""


def _worn_out(before: Sequence[StepDecision], newest: Sequence[StepDecision]) -> list[str]:
    """Return the monitor that fired on all the newest steps after its last text, or all that this may be true of.

    A decision does not name the monitor whose text it has, but the kind of its finding, which some texts lack.
    """
    told = [_speaker(decision) for decision in before if decision.gate_decision == "inject"]
    lasting = sorted(set.intersection(*(set(decision.monitors_fired) for decision in newest)))
    certain = [monitor for monitor in lasting if told.count(monitor) >= TEXTS]
    return certain[:1] or [monitor for monitor in lasting if told.count(monitor) + told.count("") >= TEXTS]


def _speaker(decision: StepDecision) -> str:
    return _MONITORS.get(TYPES.get(decision.finding_kind or "", ""), "")
