"""Describes the decisions of a replayed run: who says what after a step and why, or why not, and the stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from reasonblocks.account.calls import kind_of
from reasonblocks.account.message import message_line
from reasonblocks.account.results import Reading, read_result
from reasonblocks.engine.control import LASTING_STEPS
from reasonblocks.monitors.builtin import MONITORS
from reasonblocks.monitors.kinds import TYPES
from reasonblocks.monitors.patience import is_reached, rung_in_use
from reasonblocks.monitors.profile import explores
from reasonblocks.monitors.suite import DOUBTING, is_told
from reasonblocks.monitors.suite import LETTERS as LOOPS
from reasonblocks.monitors.told import TEXTS, text_about
from reasonblocks.types import JSON, FSMState, Injection, StepDecision, ToolCall

from ..replay import ReplayedRun, Stand
from ..report.page import MONITOR, ROUTINE, Told
from ..report.sources import texts_of

SILENCES: Mapping[str, str] = {
    "quiet": "too few dead steps",
    "cap": "the run has had all its texts",
    "cooldown": "cooldown",
    "duplicate": "there is nothing new to say",
    "dropped": "dropped by on_injection",
    "unavailable": "no evaluation",
    "final": "no call follows",
}


def why(text: Told, decision: StepDecision) -> str:
    """Return why a text of a decision is said: for a monitor's, what was found."""
    return finding(decision) if text.source == MONITOR else ""


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
    """Return the completed steps after which something was said that is no routine."""
    return [index for index, decision in enumerate(replayed.decisions) if intervenes(decision)]


def intervenes(decision: StepDecision) -> bool:
    withheld = () if second_look(decision) else decision.withheld
    return any(injection.source not in ROUTINE for injection in (*decision.injections, *withheld))


def texts(replayed: ReplayedRun) -> list[Told]:
    """Return all texts of a run's interventions, without those that are routine."""
    found = (text for index in interventions(replayed) for text in texts_of(replayed.decisions[index]))
    return [text for text in found if text.source not in ROUTINE]


def monitor_speaks(decision: StepDecision) -> bool:
    return any(text.source == MONITOR for text in texts_of(decision))


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


def is_observed(replayed: ReplayedRun) -> bool:
    """Return True if the run is only observed: what is said is withheld."""
    return any(decision.mode == "observe" for decision in (replayed.start, *replayed.decisions))


# --- the stop

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


def first_stop(replayed: ReplayedRun) -> Stopped | None:
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
    named = _lasting(replayed.decisions[:first], replayed.decisions[first : index + 1])
    who = named[0] if len(named) == 1 else f"one of {', '.join(named)}"
    return f"{who} was told of, and fired on each of the last {LASTING_STEPS} steps" if named else ""


def _lasting(before: Sequence[StepDecision], newest: Sequence[StepDecision]) -> list[str]:
    """Return the monitor that fired on all the newest steps after a text, or all that this may be true of.

    A decision does not name the monitor whose text it has, but the kind of its finding, which some texts lack.
    """
    told = [_speaker(decision) for decision in before if decision.gate_decision == "inject"]
    lasting = sorted(set.intersection(*(set(decision.monitors_fired) for decision in newest)))
    return [monitor for monitor in lasting if monitor in told][:1] or (lasting if "" in told else [])


def _speaker(decision: StepDecision) -> str:
    return _MONITORS.get(TYPES.get(decision.finding_kind or "", ""), "")


# --- the account

LETTERS = {
    "A": "the same call as one since the mark, with the same result",
    "B": "the same error as one of this tool's last four",
    "C": "a search in vain, at least the third in a row",
    "D": "the same result as of other calls, at least the third time",
}
"""The reasons for which a step is dead, by their letters."""
DUE = {
    "check": "the same check ended in the same way at least for the fourth time, with changes between",
    "series": "the tenth value of a series was tried in vain",
}
"""The reasons for a text whatever the patience is."""
STATES = ("failed", "waiting", "nothing", "changed", "checked", "finished", "refused")


def account_json(replayed: ReplayedRun, index: int) -> dict[str, JSON]:
    """Return the account after a step: its class, the mark, the window of letters, the rung and why it was told."""
    account, patience, *_ = replayed.stands[index]
    did, rung, step = account.did, rung_in_use(patience), replayed.run.steps[index]
    return {
        "letter": did.letter,
        "due": did.due,
        "calls": [{"tool": call.name, "roles": list[JSON](roles_of(replayed, call))} for call in step.tool_calls],
        "did": [name for name in STATES if getattr(did, name)],
        "mark": account.mark,
        "letters": account.letters,
        "rung": rung.name if rung else "",
        "offset": patience.offset,
        "why": reason(replayed, index),
    }


def roles_of(replayed: ReplayedRun, call: ToolCall) -> list[str]:
    """Return what a call is taken for."""
    return sorted(kind_of(call, replayed.tool_roles).roles)


def results(replayed: ReplayedRun, index: int) -> list[tuple[str, str]]:
    """Return how each result of a step is read: its status, and the line that says why it failed."""
    step = replayed.run.steps[index]
    calls = {call.id: call for call in step.tool_calls}
    other = next(iter(calls.values()), ToolCall(id="", name=""))
    made = [calls.get(result.call_id, other) for result in step.tool_results]
    readings = [
        read_result(result, kind=kind_of(call, replayed.tool_roles), given=call.arguments)
        for call, result in zip(made, step.tool_results, strict=True)
    ]
    return [(_status(one), message_line(one.text) if one.failed else "") for one in readings]


def _status(reading: Reading) -> str:
    if reading.failed:
        return "failed"
    return "still runs" if reading.waiting else "nothing found" if reading.nothing else "no failure"


def reason(replayed: ReplayedRun, index: int) -> str:
    """Return in one sentence why something was told after a step, or why nothing was."""
    decision, stand = replayed.decisions[index], replayed.stands[index]
    if gate_of(decision) == "off":
        return "not told: steering is off"
    about = _about(decision, stand)
    if monitor_speaks(decision):
        withheld = any(text.source == MONITOR and text.withheld for text in texts_of(decision))
        return f"{'would be told, but was withheld' if withheld else 'told'}: {about}"
    reason = _silence(replayed, index)
    return f"not told, {reason}: {about}" if reason else f"not told: {about}"


def _silence(replayed: ReplayedRun, index: int) -> str:
    """Return why nothing is told although a monitor could be; "" if what the step did is the reason."""
    decision, stand = replayed.decisions[index], replayed.stands[index]
    gate = gate_of(decision)
    if gate != "quiet":
        return silence(decision, None) or SILENCES.get(gate, "")
    loops = is_told(stand.account, stand.patience)
    able = [name for name in decision.monitors_fired if (loops if name in LOOPS else name not in DOUBTING)]
    told = Counter(one.monitor for one in stand.injected)
    if able and all(told[name] >= TEXTS for name in able):
        return f"{' and '.join(able)} had all {TEXTS} texts"
    if not able:
        return ""
    step, roles = replayed.run.steps[index], replayed.tool_roles
    if loops and text_about(step, index, stand.account, stand.sightings, roles).waits:
        return "the agent goes round, and soon comes to where it can make an untried call"
    return "there is nothing new to say"


def _about(decision: StepDecision, stand: Stand) -> str:
    others = [name for name in decision.monitors_fired if name not in LOOPS]
    return "; ".join([_stood(stand), *[f"{name} fired" for name in others]])


def _stood(stand: Stand) -> str:
    account, patience = stand.account, stand.patience
    did, rung = account.did, rung_in_use(patience)
    if not (did.due or did.dead):
        return "the step is not dead"
    found = DUE[did.due] if did.due else LETTERS[did.letter]
    if explores(patience):
        return f"{found}; the run is left alone to learn from ({patience.name})"
    if did.due:
        return found
    if rung is None:
        return f"{found}; the agent gets out by itself ({patience.name})"
    window = account.letters[-rung.of :]
    count = len(window) - window.count(".")
    if is_reached(account.letters, rung):
        return f"{found}; {count} of the newest {rung.of} steps are dead, as {rung.name} asks"
    return f"{found}; {count} of the newest {rung.of} steps are dead, and {rung.name} asks for {rung.dead}"


# --- as JSON


def replayed_json(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the object of one run."""
    return {
        **run_json(replayed),
        "judged_by": replayed.judged_by,
        "start": {"fsm_state": replayed.start.fsm_state.value, "injections": _injections(replayed.start.injections)},
        "steps": [step_json(replayed, index) for index in range(len(replayed.decisions))],
        "doubts": [asdict(doubt) for doubt in replayed.doubts],
        **_stop(replayed),
    }


def _stop(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the step after which the run is stopped and the reason; None for both if nothing stops it."""
    at = replayed.stopped_at
    return {"stopped_at": at, "stop": None if at is None else replayed.decisions[at].stop}


def run_json(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the keys that name a run."""
    run = replayed.run
    return {"run_id": run.run_id, "file": run.file, "source": run.source, "outcome": run.outcome}


def call_after(replayed: ReplayedRun, index: int) -> int | None:
    """Return the number of the call that was decided after a step; None after the last one."""
    return None if index + 1 == len(replayed.run.steps) else replayed.run.call_after(index)


def step_json(replayed: ReplayedRun, index: int) -> dict[str, JSON]:
    """Return the object of one step; `call` is the call that was decided after it, None after the last step."""
    decision = replayed.decisions[index]
    parts = decision.difficulty_parts
    return {
        "step": index,
        "call": call_after(replayed, index),
        "difficulty": decision.difficulty,
        "difficulty_parts": None if parts is None else asdict(parts),
        "fsm_state": decision.fsm_state.value,
        "scores": dict(decision.scores),
        "composite": decision.composite,
        "fired": list(decision.monitors_fired),
        "failure_type": decision.failure_type,
        "gate_decision": decision.gate_decision,
        "injections": _injections(decision.injections),
        "skipped_reason": decision.skipped_reason,
        "account": account_json(replayed, index),
        **_control(decision),
    }


def _control(decision: StepDecision) -> dict[str, JSON]:
    """Return what observing withheld, the route, the effort and why the run ends, of a decision that has them."""
    reasons = {
        "route": decision.route,
        "withheld_route": decision.withheld_route,
        "effort": decision.effort,
        "withheld_effort": decision.withheld_effort,
        "stop": decision.stop,
        "withheld_stop": decision.withheld_stop,
    }
    return {
        **({"withheld": _injections(decision.withheld)} if decision.withheld else {}),
        **{name: reason for name, reason in reasons.items() if reason is not None},
    }


def _injections(injections: Sequence[Injection]) -> list[JSON]:
    return [{"source": injection.source, "text": injection.text} for injection in injections]
