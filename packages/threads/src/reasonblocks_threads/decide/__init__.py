"""Decides, as a pure function, which events follow from a thread, a command and the rules, or refuses the command."""

from __future__ import annotations

from ..errors import InvalidTrigger, ReadOnly, Refused
from ..phases import HUMAN, Addition, Trigger
from ..rules import Rules
from ..table import CELLS, possible
from ..values import Command, Malformed, Thread, ThreadEvent
from ._additions import ADDITIONS, AFTER_THE_END, OF_A_PERSON, OF_THE_SYSTEM
from ._children import child_opens as child_opens
from ._children import opening_event
from ._draft import Draft, faults_of
from ._person import ANSWERS
from ._system import MOVES


def decide(thread: Thread | None, command: Command, rules: Rules) -> tuple[ThreadEvent, ...]:
    """Return the events that a command leads to; () if there is nothing to do.

    At most one is a change of phase, the last. Raises `Refused`, `InvalidTrigger` for a trigger that the phase does not
    have, and `ReadOnly` for a thread that this version cannot read.
    """
    try:
        return _decided(thread, command, rules)
    except Malformed as exc:
        raise Refused(command.thread_id, command.trigger.value, str(exc)) from exc


def _decided(thread: Thread | None, command: Command, rules: Rules) -> tuple[ThreadEvent, ...]:
    if fault := faults_of(command.actor, command.at):
        raise Malformed(fault)
    if thread is None:
        if command.trigger is not Addition.OPEN:
            raise Malformed("the thread does not exist: open it first")
        return opening_event(command, rules)
    if thread.unreadable is not None:
        raise ReadOnly(thread.id, command.trigger.value, f"{thread.unreadable}: upgrade the library")
    if command.trigger is Addition.OPEN:
        return ()
    draft = Draft(thread, command, rules)
    if isinstance(command.trigger, Trigger):
        _move(draft, command.trigger)
    else:
        _add(draft, command.trigger)
    return tuple(draft.events)


def _move(draft: Draft, trigger: Trigger) -> None:
    phase, actor = draft.thread.phase, draft.command.actor
    if (phase, trigger) not in CELLS:
        raise InvalidTrigger(draft.thread.id, trigger.value, phase, tuple(each.value for each in possible(phase)))
    if trigger in HUMAN:
        if not actor.is_human:
            raise draft.refused(f"only a person may do this, not the {actor.kind} {actor.name!r}")
        ANSWERS[trigger](draft)
    else:
        if actor.kind != "system":
            raise draft.refused(f"only the system may do this, not the {actor.kind} {actor.name!r}")
        MOVES[trigger](draft)


def _add(draft: Draft, addition: Addition) -> None:
    phase, actor = draft.thread.phase, draft.command.actor
    if addition in OF_A_PERSON and not actor.is_human:
        raise draft.refused(f"only a person may do this, not the {actor.kind} {actor.name!r}")
    if addition in OF_THE_SYSTEM and actor.kind != "system":
        raise draft.refused(f"only the system may do this, not the {actor.kind} {actor.name!r}")
    if phase.is_terminal and addition not in AFTER_THE_END:
        raise draft.refused(f"the thread has ended as {phase.value!r}: open a new one that follows it")
    ADDITIONS[addition](draft)
