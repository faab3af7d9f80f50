"""The third column of the transition table: the rows that a thread has beside its log on entering a phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import get_args

from .cards import card_of
from .phases import STAGES, Phase, Trigger, WorkKind, inferring
from .policy import GateResult
from .rules import Rules
from .table import (
    CARD_KINDS,
    CLEANUP_S,
    INFERRING_S,
    PROPOSED_S,
    QUEUED_LIVE_S,
    QUEUED_S,
    REVIEW_S,
    WAIT_S,
)
from .values import Gate, NewWork, Rows, Thread, ThreadEvent

URGENT, SOON, USUAL = 20, 50, 100
"""Urgencies of works: for a run that waits, for a person that waits, and all others."""
LEASE_MARGIN_S = 30.0
"""The time that a worker has, after an action's deadline, to write its result."""
TIMER_MARGIN_S = 60.0
"""The time after an action's deadline at which nobody waits for its result any more."""
IDEMPOTENT_ATTEMPTS = 3
UNKNOWN_DEADLINE_S = 120.0
"""The deadline of an action that left the catalogue after its approval; nobody will run it."""
GUIDANCE = "inject_guidance"
"""The action whose work only writes a letter: its deadline is that of the run which has to carry it."""
BUILT_IN = frozenset({GUIDANCE, "hand_off", "decompose", "acknowledge"})
"""Actions that every process can run."""
CASCADES: tuple[WorkKind, ...] = ("cascade_up", "cascade_down")
CANCELLED: tuple[WorkKind, ...] = tuple(kind for kind in get_args(WorkKind) if kind not in CASCADES)
"""The works that a change of phase ends."""

Works = tuple[NewWork, ...]


def entry(before: Thread | None, after: Thread, rules: Rules, *, at: float, events: Sequence[ThreadEvent] = ()) -> Rows:
    """Return the change of the rows with which a thread enters its phase; an empty one if it stays.

    Without `before` it returns all rows of the phase. `events` are the command's, whose judged gates the card shows.
    """
    if before is not None and before.entered == after.entered:
        return Rows()
    timer = _timer_s(after, rules)
    works = _WORKS.get(after.phase, _none)(after, rules, at)
    if timer is not None:
        works = (*works, NewWork(kind="timeout", due_at=at + timer, urgency=SOON))
    expires_at = None if timer is None else at + timer
    return Rows(
        withdraw_card=before is not None and before.phase.waits,
        cancel=() if before is None else _cancelled(events),
        works=works,
        card=card_of(after, rules, at=at, expires_at=expires_at, gates=_gates(events)),
    )


def _cancelled(events: Sequence[ThreadEvent]) -> tuple[WorkKind, ...]:
    """Return the works that the change of phase ends: all live ones, but an inference that starts goes on."""
    starts = any(each.data.get("trigger") == Trigger.INFERENCE_STARTED.value for each in events)
    return tuple(kind for kind in CANCELLED if not (starts and kind == "infer"))


def _timer_s(thread: Thread, rules: Rules) -> float | None:
    """Return the seconds after which the phase times out, None if it never does."""
    if thread.phase is Phase.AWAITING_INFERENCE:
        return QUEUED_LIVE_S if thread.run == "live" else QUEUED_S
    if thread.phase is Phase.EXECUTING:
        return _deadline_s(thread, rules) + TIMER_MARGIN_S
    return _TIMES.get(thread.phase)


_TIMES: Mapping[Phase, float] = MappingProxyType(
    {
        Phase.PROPOSED: PROPOSED_S,
        Phase.CLEANING_UP: CLEANUP_S,
        **{inferring(stage): INFERRING_S for stage in STAGES},
        **dict.fromkeys(CARD_KINDS, WAIT_S),
        Phase.AWAITING_REVIEW: REVIEW_S,
    }
)


def _deadline_s(thread: Thread, rules: Rules) -> float:
    spec = rules.catalogue.specs.get(thread.approved.action) if thread.approved else None
    return spec.deadline_s if spec else UNKNOWN_DEADLINE_S


def _none(thread: Thread, rules: Rules, at: float) -> Works:
    return ()


def _begin(thread: Thread, rules: Rules, at: float) -> Works:
    return (NewWork(kind="begin", due_at=at, urgency=_urgency(thread)),)


def _infer(thread: Thread, rules: Rules, at: float) -> Works:
    return (NewWork(kind="infer", due_at=at, urgency=_urgency(thread), needs=f"inferencer:{rules.inferencer}"),)


def _urgency(thread: Thread) -> int:
    return URGENT if thread.run == "live" else USUAL


def _execute(thread: Thread, rules: Rules, at: float) -> Works:
    """Run the approved action; one that has begun and is not idempotent is never begun again."""
    action = thread.approved.action if thread.approved else ""
    spec = rules.catalogue.specs.get(action)
    idempotent, begun = spec is not None and spec.idempotent, thread.execution and thread.execution.started_at
    if begun and not idempotent:
        return ()
    data = {
        "lease_s": LEASE_MARGIN_S + (0.0 if action == GUIDANCE else _deadline_s(thread, rules)),
        "attempts": IDEMPOTENT_ATTEMPTS if idempotent else 1,
    }
    needs = "" if action in BUILT_IN else f"action:{action}"
    return (NewWork(kind="execute", due_at=at, urgency=_urgency(thread), needs=needs, data=data),)


def _clean_up(thread: Thread, rules: Rules, at: float) -> Works:
    return (NewWork(kind="clean_up", due_at=at, urgency=SOON, needs=f"cleaner:{thread.cause.kind}"),)


def _notify(thread: Thread, rules: Rules, at: float) -> Works:
    """Tell persons about every card but a plain confirmation."""
    if not rules.notified or CARD_KINDS[thread.phase] == "confirmation":
        return ()
    return (NewWork(kind="notify", due_at=at, urgency=SOON, needs="notifier"),)


def _cascade(thread: Thread, rules: Rules, at: float) -> Works:
    up, down = thread.parent is not None, any(child.ended is None for child in thread.children)
    wanted = zip(CASCADES, (up, down), strict=True)
    return tuple(NewWork(kind=kind, due_at=at, urgency=URGENT) for kind, is_wanted in wanted if is_wanted)


_WORKS: Mapping[Phase, Callable[[Thread, Rules, float], Works]] = MappingProxyType(
    {
        Phase.PROPOSED: _begin,
        Phase.AWAITING_INFERENCE: _infer,
        Phase.EXECUTING: _execute,
        Phase.CLEANING_UP: _clean_up,
        **dict.fromkeys(CARD_KINDS, _notify),
        **{phase: _cascade for phase in Phase if phase.is_terminal},
    }
)


def _gates(events: Sequence[ThreadEvent]) -> tuple[GateResult, ...]:
    """Return the gates that a command's events judged."""
    judged = [each.data.get("gates") for each in events if each.kind == "gate_judged"]
    found = judged[-1] if judged else ()
    if not isinstance(found, list | tuple):
        return ()
    return tuple(_gate(each) for each in found if isinstance(each, Mapping))


def _gate(data: Mapping[str, object]) -> GateResult:
    names: tuple[Gate, ...] = get_args(Gate)
    name = next((each for each in names if each == data.get("gate")), names[0])
    value, limit = str(data.get("value", "")), str(data.get("limit", ""))
    return GateResult(gate=name, passed=data.get("passed") is True, value=value, limit=limit)
