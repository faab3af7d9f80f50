"""Says what a replayed step did by the account of its run, and why the agent was told something or not."""

from __future__ import annotations

from collections import Counter

from reasonblocks.account.calls import Kind, kind_of
from reasonblocks.account.message import message_line
from reasonblocks.account.results import Reading, read
from reasonblocks.monitors.patience import is_reached, rung_in_use
from reasonblocks.monitors.profile import explores
from reasonblocks.monitors.suite import DOUBTING, is_told
from reasonblocks.monitors.suite import LETTERS as LOOPS
from reasonblocks.monitors.told import TEXTS
from reasonblocks.types import JSON, StepDecision, ToolCall

from ..replay import ReplayedRun, Stand
from ..report.page import MONITOR
from ._said import SILENCES, gate_of, monitor_speaks, said, silence

LETTERS = {
    "A": "the same call as one since the mark, with the same result",
    "B": "the same error as one of this tool's last four",
    "C": "a search in vain, at least the third in a row",
    "D": "the same result as of other calls, at least the third time",
}
"""What makes a step dead."""
DUE = {
    "check": "the same check ended in the same way at least for the fourth time, with changes between",
    "series": "the tenth value of a series was tried in vain",
}
"""What is told whatever the patience."""
STATES = ("failed", "waiting", "nothing", "changed", "checked", "finished", "refused")


def account_json(replayed: ReplayedRun, index: int) -> dict[str, JSON]:
    """Return the account after a step: its class, the mark, the window of letters, the rung and why it was told."""
    account, patience, _ = replayed.stands[index]
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
        "why": why(replayed, index),
    }


def roles_of(replayed: ReplayedRun, call: ToolCall) -> list[str]:
    """Return what a call is taken for."""
    return sorted(kind_of(call, replayed.tool_roles).roles)


def results(replayed: ReplayedRun, index: int) -> list[tuple[str, str]]:
    """Return how each result of a step is read: its status, and the line that says why it failed."""
    step = replayed.run.steps[index]
    kinds = {call.id: kind_of(call, replayed.tool_roles) for call in step.tool_calls}
    other = next(iter(kinds.values()), Kind(frozenset()))
    readings = [read(result, kind=kinds.get(result.call_id, other)) for result in step.tool_results]
    return [(_status(one), message_line(one.text) if one.failed else "") for one in readings]


def _status(reading: Reading) -> str:
    if reading.failed:
        return "failed"
    return "still runs" if reading.waiting else "nothing found" if reading.nothing else "no failure"


def why(replayed: ReplayedRun, index: int) -> str:
    """Return in one sentence why something was told after a step, or why nothing was."""
    decision, stand = replayed.decisions[index], replayed.stands[index]
    if gate_of(decision) == "off":
        return "not told: steering is off"
    about = _about(decision, stand)
    if monitor_speaks(decision):
        withheld = any(text.source == MONITOR and text.withheld for text in said(decision))
        return f"{'would be told, but was withheld' if withheld else 'told'}: {about}"
    reason = _silence(decision, stand)
    return f"not told, {reason}: {about}" if reason else f"not told: {about}"


def _silence(decision: StepDecision, stand: Stand) -> str:
    """Return why nothing is told although a monitor could be; "" if what the step did is the reason."""
    gate = gate_of(decision)
    if gate != "quiet":
        return silence(decision, None) or SILENCES.get(gate, "")
    loops = is_told(stand.account, stand.patience)
    able = [name for name in decision.monitors_fired if (loops if name in LOOPS else name not in DOUBTING)]
    told = Counter(one.monitor for one in stand.injected)
    if able and all(told[name] >= TEXTS for name in able):
        return f"{' and '.join(able)} had all {TEXTS} texts"
    return "there is nothing new to say" if able else ""


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
