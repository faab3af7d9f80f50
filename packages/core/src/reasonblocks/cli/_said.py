"""Describes what a decision says to the agent, and why a monitor that fired says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._replay import ReplayedRun
from ..types import Injection, StepDecision

MONITOR = "MonitorSteeringInjection"
STANDING = "E3Injection"
"""The source of standing rules, which every run gets: they do not count as interventions."""
SOURCES: Mapping[str, str] = {
    MONITOR: "monitor",
    "E1Injection": "lesson",
    "E2Injection": "lesson",
    STANDING: "standing rules",
    "OperatorInjection": "note",
}
SILENCES: Mapping[str, str] = {
    "quiet": "too little evidence",
    "cap": "the run has had all its texts",
    "cooldown": "cooldown",
    "duplicate": "the same text was said last",
    "unavailable": "no evaluation",
    "final": "no call follows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One text, who says it, why, and from which patterns. A `withheld` one is recorded and not shown to the agent."""

    source: str
    who: str
    why: str
    text: str
    patterns: str = ""
    withheld: bool = False

    @property
    def standing(self) -> bool:
        return self.source == STANDING


def said(decision: StepDecision) -> tuple[Said, ...]:
    """Return all texts of a decision: those that are shown, then those that observing withholds."""
    shown = [_said(decision, injection, withheld=False) for injection in decision.injections]
    if decision.standing_rules and not any(text.standing for text in shown):
        shown.append(Said(source=STANDING, who=SOURCES[STANDING], why="", text=decision.standing_rules))
    return (*shown, *(_said(decision, injection, withheld=True) for injection in decision.withheld))


def _said(decision: StepDecision, injection: Injection, *, withheld: bool) -> Said:
    return Said(
        source=injection.source,
        who=SOURCES.get(injection.source, injection.source),
        why=finding(decision) if injection.source == MONITOR else "",
        patterns=", ".join(injection.pattern_ids),
        text=injection.text,
        withheld=withheld,
    )


def finding(decision: StepDecision) -> str:
    """Return the type of failure and the monitors that fired, with their scores."""
    fired = ", ".join(_scored(name, decision.scores.get(name)) for name in decision.monitors_fired)
    return f"{decision.failure_type} ({fired})" if decision.failure_type and fired else decision.failure_type or fired


def _scored(name: str, score: float | None) -> str:
    return name if score is None else f"{name} {score:.2f}"


def interventions(replayed: ReplayedRun) -> list[int]:
    """Return the completed steps after which something other than standing rules was said."""
    return [index for index, decision in enumerate(replayed.decisions) if intervenes(decision)]


def intervenes(decision: StepDecision) -> bool:
    return any(injection.source != STANDING for injection in (*decision.injections, *decision.withheld))


def monitor_speaks(decision: StepDecision) -> bool:
    return any(text.source == MONITOR for text in said(decision))


def silence(decision: StepDecision, since: int | None) -> str:
    """Return why no monitor speaks although one fired, or "". The last text of a monitor was `since` steps before."""
    gate = decision.gate_decision
    if monitor_speaks(decision) or stop_of(decision) is not None:
        return ""
    if not (decision.monitors_fired or gate in ("cap", "cooldown", "duplicate")):
        return ""
    if gate == "inject":
        return "its text did not fit, or is in the history already"
    if gate == "cooldown" and since is not None:
        return f"cooldown, the last text was {since} {'step' if since == 1 else 'steps'} before"
    return SILENCES.get(gate or "", "steering is off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The end of a run before its next call, and its reason. It is not `real` if observing prevents it."""

    reason: str
    real: bool


def stop_of(decision: StepDecision) -> Stop | None:
    if decision.stop is not None:
        return Stop(reason=decision.stop, real=True)
    return None if decision.withheld_stop is None else Stop(reason=decision.withheld_stop, real=False)


def observed(replayed: ReplayedRun) -> bool:
    """Return True if the run is only observed: what is said is withheld."""
    return any(decision.mode == "observe" for decision in (replayed.start, *replayed.decisions))
