"""Describes what a decision says to the agent, and why a monitor that fired says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reasonblocks.types import Injection, StepDecision

from ..replay import ReplayedRun
from ..report.page import LOOK, MONITOR, STANDING, WHO

SILENCES: Mapping[str, str] = {
    "quiet": "too few dead steps",
    "cap": "the run has had all its texts",
    "cooldown": "cooldown",
    "duplicate": "the same text was said last",
    "dropped": "dropped by on_injection",
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
        shown.append(Said(source=STANDING, who=WHO[STANDING], why="", text=decision.standing_rules))
    return (*shown, *(_said(decision, injection, withheld=True) for injection in decision.withheld))


def _said(decision: StepDecision, injection: Injection, *, withheld: bool) -> Said:
    again = withheld and bool(second_look(decision))
    return Said(
        source=injection.source,
        who=f"a {LOOK}" if again else WHO.get(injection.source, injection.source),
        why=finding(decision) if injection.source == MONITOR else "",
        patterns=", ".join(injection.pattern_ids),
        text=injection.text,
        withheld=withheld,
    )


def second_look(decision: StepDecision) -> tuple[Injection, ...]:
    """Return the text of the second look that would follow a final step; it does not count as an intervention."""
    return decision.withheld if decision.gate_decision == "final" else ()


def second_look_at(replayed: ReplayedRun) -> int | None:
    """Return the final step if a second look would follow it."""
    looks = bool(replayed.decisions) and bool(second_look(replayed.decisions[-1]))
    return len(replayed.decisions) - 1 if looks else None


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
    withheld = () if second_look(decision) else decision.withheld
    return any(injection.source != STANDING for injection in (*decision.injections, *withheld))


def texts(replayed: ReplayedRun) -> list[Said]:
    """Return all texts of a run's interventions, without standing rules."""
    found = (text for index in interventions(replayed) for text in said(replayed.decisions[index]))
    return [text for text in found if not text.standing]


def monitor_speaks(decision: StepDecision) -> bool:
    return any(text.source == MONITOR for text in said(decision))


def gate_of(decision: StepDecision) -> str:
    """Return the gate's word, "dropped" for a text that `on_injection` dropped, and "off" without steering."""
    gate = decision.gate_decision or "off"
    return "dropped" if gate == "quiet" and MONITOR in decision.dropped else gate


def silence(decision: StepDecision, since: int | None) -> str:
    """Return why no monitor speaks although one fired, or "". The last text of a monitor was `since` steps before."""
    gate = gate_of(decision)
    if monitor_speaks(decision) or decision.stop is not None:
        return ""
    if not (decision.monitors_fired or gate in ("cap", "cooldown", "duplicate", "dropped")):
        return ""
    if gate == "inject":
        return "its text did not fit, or is in the history already"
    if gate == "cooldown" and since is not None:
        return f"cooldown, the last text was {since} {'step' if since == 1 else 'steps'} before"
    return SILENCES.get(gate, "steering is off")


def observed(replayed: ReplayedRun) -> bool:
    """Return True if the run is only observed: what is said is withheld."""
    return any(decision.mode == "observe" for decision in (replayed.start, *replayed.decisions))
