"""Notices in a run's events that it needs a person; one memory of bounded size per run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Literal, TypeAlias

from reasonblocks.engine.recovery import has_ended_well
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, completed_of
from reasonblocks.monitors.kinds import TYPES

from .readable import describe_calls, describe_results
from .values import Cause, Evidence

CauseKind: TypeAlias = Literal["run_stalled", "run_struggling", "monitor_unheeded"]
WATCHED: frozenset[str] = frozenset({"run_stalled", "run_struggling", "monitor_unheeded"})
"""The kinds of causes that are noticed here."""
STALL = "stall"
"""The family of the two causes about a run that gets nowhere; they share one thread."""
EVALUATED = frozenset({"quiet", "cap", "cooldown", "duplicate", "inject"})
"""The gate's decisions on steps that the monitors evaluated."""
STEPS_KEPT = 3
"""The newest steps that become evidence."""
MOST_TYPES = 16
"""Types of findings that are remembered of a run: the newest."""
TEXT_CHARS, TITLE_CHARS, ID_CHARS, FAMILY_CHARS, HASH_CHARS = 400, 200, 120, 60, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of the rules.

    `slow_calls`: calls in SLOW, with at least `injections` texts of monitors in the run, that are struggling.
    `firings`: findings of a type after an injection of that type that make it unheeded. `quiet_steps`: steps in a row
    without any finding after which the types start anew.
    """

    slow_calls: int = 12
    injections: int = 2
    firings: int = 3
    quiet_steps: int = 5


NUMBERS = Numbers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A notice about a run, at `call`: a cause is "raised", "lasts" at a later call, or all of its family are "over".

    `first` is the call with which the episode began; `partial` is True if it may have begun earlier, before the first
    call of the run that was seen.
    """

    what: Literal["raised", "lasts", "over"]
    family: str
    call: int
    kind: CauseKind | None = None
    first: int = 0
    text: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A type of finding since its first injection, or since the cap kept one back."""

    first: int
    firings: int = 0
    quiet: int = 0
    raised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchMemory:
    """The memory of one run: the newest call and state, the episode of each cause, and the newest steps as evidence.

    `since` is the first call that was seen; `slow_first` and `slow_calls` count the calls in SLOW since the last one in
    NORMAL or FAST.
    """

    agent: str = ""
    task: str = ""
    since: int | None = None
    call: int = -1
    state: str = ""
    slow_first: int = 0
    slow_calls: int = 0
    injections: int = 0
    stalled: int | None = None
    struggling: int | None = None
    types: Mapping[str, Finding] = field(default_factory=dict)
    steps: tuple[Evidence, ...] = ()


def watch(memory: WatchMemory, event: Event, numbers: Numbers = NUMBERS) -> tuple[WatchMemory, tuple[Noticed, ...]]:
    """Return the memory after an event of its run, and what is to be noticed in it."""
    if isinstance(event, RunStart):
        return WatchMemory(agent=_short(event.run.agent_name, 60), task=_short(event.run.task, 120)), ()
    if isinstance(event, RunFinish):
        over = _all_over(memory) if ended_well(event) else ()
        return WatchMemory(agent=memory.agent, task=memory.task), over
    return _step(memory, event, numbers) if is_call(memory, event) else (memory, ())


def ended_well(event: RunFinish) -> bool:
    """Return True if a run ended with success, and its last step raised no doubt."""
    return has_ended_well(event.outcome, event.doubts)


def is_call(memory: WatchMemory, event: StepEvent) -> bool:
    """Return True for a step's first call that returned: no auxiliary, failed or repeated call, no final judgement."""
    metadata = event.metadata
    ignored = metadata.get("final") or metadata.get("error") or metadata.get("skipped_reason") == "auxiliary"
    return not ignored and event.step_index > memory.call


def cause_of(run_id: str, memory: WatchMemory, noticed: Noticed) -> Cause:
    """Return the cause of what was noticed in a run, with its newest steps as evidence."""
    kind = noticed.kind or "run_stalled"
    finding = Evidence(id=f"{kind}-{noticed.call}", label=f"call {noticed.call}", text=_short(noticed.text, TEXT_CHARS))
    about = f"{memory.agent or 'A run'} {_TITLES[kind]}" + (f": {memory.task}" if memory.task else "")
    return Cause(
        kind=kind,
        key=f"{kind}/{noticed.first}/{_name(run_id, ID_CHARS)}",
        title=_short(about, TITLE_CHARS),
        family=family_of(run_id, noticed.family),
        run_id=run_id,
        evidence=(finding, *memory.steps),
    )


def family_of(run_id: str, family: str) -> str:
    """Return the name of a family of causes of one run."""
    return f"{_name(family.replace('/', '|'), FAMILY_CHARS)}/{_name(run_id, ID_CHARS)}"


_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "run_stalled": "is stalled",
        "run_struggling": "is struggling",
        "monitor_unheeded": "does not act on advice",
    }
)


def _step(memory: WatchMemory, event: StepEvent, numbers: Numbers) -> tuple[WatchMemory, tuple[Noticed, ...]]:
    call = event.step_index
    state = event.metadata.get("fsm_state")
    memory = replace(
        memory,
        since=call if memory.since is None else memory.since,
        call=call,
        injections=memory.injections + _is_injected(event),
        steps=_with_evidence(memory.steps, event),
    )
    memory, stall = _stall(memory, state if isinstance(state, str) else memory.state, call, numbers)
    memory, unheeded = _findings(memory, event, numbers)
    return memory, tuple([replace(one, partial=0 < one.first == memory.since) for one in (*stall, *unheeded)])


def _is_injected(event: StepEvent) -> bool:
    return event.metadata.get("gate_decision") == "inject" and "MonitorSteeringInjection" in event.injection_sources


# --- stalled and struggling


def _stall(memory: WatchMemory, state: str, call: int, numbers: Numbers) -> tuple[WatchMemory, tuple[Noticed, ...]]:
    if state in ("NORMAL", "FAST"):
        over = _stall_over(memory, call)
        return replace(memory, state=state, slow_first=0, slow_calls=0, stalled=None, struggling=None), over
    memory = replace(memory, state=state)
    if state == "SKIP":
        noticed = _noticed(memory.stalled, call, kind="run_stalled", first=call, text=_stalled_text)
        return replace(memory, stalled=noticed.first), (noticed,)
    if state != "SLOW":
        return memory, ()
    calls = memory.slow_calls + 1
    memory = replace(memory, slow_calls=calls, slow_first=memory.slow_first if memory.slow_calls else call)
    if memory.struggling is None and (calls < numbers.slow_calls or memory.injections < numbers.injections):
        return memory, ()
    text = f"The run has been in SLOW for {calls} calls, and monitors advised it {memory.injections} times."
    noticed = _noticed(memory.struggling, call, kind="run_struggling", first=memory.slow_first, text=text)
    return replace(memory, struggling=noticed.first), (noticed,)


_stalled_text = "The run is in SKIP: for many steps, it appears to have made no progress."


def _noticed(episode: int | None, call: int, *, kind: CauseKind, first: int, text: str) -> Noticed:
    """Return the notice of an episode that begins here, unless it began before."""
    what: Literal["raised", "lasts"] = "raised" if episode is None else "lasts"
    return Noticed(
        what=what, family=STALL, call=call, kind=kind, first=first if episode is None else episode, text=text
    )


def _stall_over(memory: WatchMemory, call: int) -> tuple[Noticed, ...]:
    if memory.stalled is None and memory.struggling is None:
        return ()
    return (Noticed(what="over", family=STALL, call=call, text=f"The run makes progress again, since call {call}."),)


# --- unheeded monitors


def _findings(memory: WatchMemory, event: StepEvent, numbers: Numbers) -> tuple[WatchMemory, tuple[Noticed, ...]]:
    gate = event.metadata.get("gate_decision")
    if gate not in EVALUATED or event.metadata.get("mode") == "observe":
        return memory, ()
    if not event.monitors_fired:
        return _quiet_step(memory, event.step_index, numbers)
    types = {name: replace(one, quiet=0) for name, one in memory.types.items()}
    noticed: tuple[Noticed, ...] = ()
    if kind := _type_of(event):
        found = _fired(types.pop(kind, None), event)
        if found is not None:
            if found.raised or found.firings >= numbers.firings or gate == "cap":
                noticed = (_unheeded(kind, found, event),)
                found = replace(found, raised=True)
            types[kind] = found  # the newest last
    return replace(memory, types=dict(list(types.items())[-MOST_TYPES:])), noticed


def _type_of(event: StepEvent) -> str | None:
    """Return the type of the finding that the event's text is about, or that would have been told."""
    kind = event.metadata.get("finding_kind")
    return TYPES.get(kind if isinstance(kind, str) else "", event.failure_type)


def _fired(before: Finding | None, event: StepEvent) -> Finding | None:
    """Return a type's record after it fired; None if the run was never told and could have been."""
    if before is not None:
        return replace(before, firings=before.firings + 1)
    told = _is_injected(event) or event.metadata.get("gate_decision") == "cap"
    return Finding(first=event.step_index) if told else None


def _unheeded(kind: str, found: Finding, event: StepEvent) -> Noticed:
    call = event.step_index
    if event.metadata.get("gate_decision") == "cap":
        text = f"A finding of the type {kind!r}, after the run was given all the texts that monitors may give it."
    else:
        times = "finding" if found.firings == 1 else "findings"
        text = f"{found.firings} {times} of the type {kind!r} since the run was advised about it."
    return Noticed(
        what="lasts" if found.raised else "raised",
        family=_type_family(kind),
        call=call,
        kind="monitor_unheeded",
        first=found.first,
        text=text,
    )


def _quiet_step(memory: WatchMemory, call: int, numbers: Numbers) -> tuple[WatchMemory, tuple[Noticed, ...]]:
    types = {name: replace(one, quiet=one.quiet + 1) for name, one in memory.types.items()}
    heeded = [name for name, one in types.items() if one.quiet >= numbers.quiet_steps]
    text = f"No finding for {numbers.quiet_steps} steps, up to call {call}."
    over = [
        Noticed(what="over", family=_type_family(name), call=call, text=text) for name in heeded if types[name].raised
    ]
    return replace(memory, types={name: one for name, one in types.items() if name not in heeded}), tuple(over)


def _type_family(kind: str) -> str:
    return f"type:{kind}"


def _all_over(memory: WatchMemory) -> tuple[Noticed, ...]:
    families = [STALL] if memory.stalled is not None or memory.struggling is not None else []
    families += [_type_family(name) for name, one in memory.types.items() if one.raised]
    return tuple([Noticed(what="over", family=name, call=memory.call, text=SUCCEEDED) for name in families])


SUCCEEDED = "The run ended with success."


# --- texts


def _with_evidence(steps: tuple[Evidence, ...], event: StepEvent) -> tuple[Evidence, ...]:
    """Return the newest steps with the completed one that this event describes."""
    done = completed_of(event)
    parts = [_short(event.thought, 120), _short(describe_calls(done), 120), _short(describe_results(done), 150)]
    text = "\n".join(filter(None, parts))
    if not text:
        return steps
    step = Evidence(id=f"step-{event.step_index - 1}", label=f"step {event.step_index - 1}", text=text)
    return (*steps, step)[-STEPS_KEPT:]


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _name(text: str, chars: int) -> str:
    """Return a text of at most so many characters, all of them printable ASCII; a changed one ends in its hash."""
    if len(text) <= chars and text.isascii() and text.isprintable():
        return text
    plain = "".join([one if one.isascii() and one.isprintable() else "_" for one in text[:chars]])
    return f"{plain[: chars - HASH_CHARS - 1]}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:HASH_CHARS]}"
