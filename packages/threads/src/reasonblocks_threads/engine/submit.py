"""One transaction of the one writer: checks a command, decides it, and appends its events with all their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, cast

from ..cards import answers_of, card_of
from ..decide import child_opens, decide
from ..entry import entry
from ..errors import CardClosed, Conflict, ReadOnly, Refused, UnknownThread
from ..log import fold
from ..phases import Addition, AnswerName, Phase, Trigger
from ..ports import Known, Reading, Writing
from ..rules import Rules
from ..values import (
    Card,
    Command,
    ExpectCard,
    ExpectPhase,
    ExpectVersion,
    ExpectWork,
    Rows,
    Thread,
    ThreadEvent,
    thread_id_of,
)
from ._private import content_of, keep_private, without_private

if TYPE_CHECKING:
    from ._engine import Engine

Effects: TypeAlias = Callable[[Writing, Thread], None]
"""Writes other rows in the transaction of a command, with the head after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The outcome of a command: the head after it, and the events that it wrote. `replayed`: it was known before."""

    thread: Thread
    events: tuple[ThreadEvent, ...]
    replayed: bool = False


class Submission:
    """Commands in one transaction, with the rules of an engine."""

    def __init__(self, engine: Engine, writing: Writing) -> None:
        self._engine = engine
        self._writing = writing

    def submit(self, command: Command, effects: Effects | None = None, answer: AnswerName | None = None) -> Submitted:
        """Apply a command, or return what it came to before. `answer` names that of a person, if it is not unique."""
        content = content_of(command)
        known = self._writing.known(command.id)
        if known is not None:
            return self._again(known, command, content)
        before = self._writing.head(command.thread_id)
        self._check_expectation(command, before)
        data, blobs = without_private(command.data, self._engine.token)
        command = replace(command, data=data)
        rules = self._engine.rules(self._writing, before, ancestors=_ancestors(command))
        submitted = self._append(command, before, rules, content, answer)
        keep_private(self._writing, blobs, submitted.events)
        if before is not None:
            self._open_children(before, command, rules, submitted.events)
        if effects is not None:
            effects(self._writing, submitted.thread)
        return submitted

    def _again(self, known: Known, command: Command, content: str) -> Submitted:
        thread = _found(self._writing.head(known.thread_id), known.thread_id)
        if known.content != content:
            if isinstance(command.expect, ExpectCard):
                raise card_closed(self._writing, command.expect.card, thread)
            raise Conflict(command.thread_id, f"the command {command.id!r} was submitted before with another content")
        number = known.last - known.first + 1
        events = self._writing.log(known.thread_id, after=known.first - 1, limit=number) if number > 0 else ()
        return Submitted(thread=thread, events=tuple(events), replayed=True)

    def _check_expectation(self, command: Command, before: Thread | None) -> None:
        if command.trigger is Addition.OPEN:
            if before is not None:
                raise Conflict(command.thread_id, "it exists already")
            return
        thread = _found(before, command.thread_id)
        if why := self._engine.suspect(thread):
            raise ReadOnly(thread.id, command.trigger.value, why)
        match command.expect:
            case ExpectCard(card=card):
                now = self._writing.open_card(thread.id)
                if now is None or now.id != card:
                    raise card_closed(self._writing, card, thread)
            case ExpectWork(work=work, lease=lease):
                found = self._writing.work(work)
                if found is None or found.lease != lease:
                    raise LeaseLost(thread.id, work)
            case ExpectPhase(phase=phase, entered=entered):
                if (thread.phase, thread.entered) != (phase, entered):
                    raise Conflict(thread.id, f"it left {phase.value!r} and is {thread.phase.value!r} now")
                self._check_card_named(command, thread)
            case ExpectVersion(version=version):
                if thread.version != version:
                    raise Conflict(thread.id, f"version {version} was expected, but it is at {thread.version}")
                self._check_card_named(command, thread)

    def _check_card_named(self, command: Command, thread: Thread) -> None:
        """Refuse an answer that does not name the card it answers."""
        if command.actor.is_human and isinstance(command.trigger, Trigger) and thread.phase.waits:
            why = "a card is open, and an answer must name it"
            raise Refused(thread.id, command.trigger.value, why)

    def _append(
        self, command: Command, before: Thread | None, rules: Rules, content: str, answer: AnswerName | None
    ) -> Submitted:
        events = decide(before, command, rules)
        if not events:
            return Submitted(thread=_found(before, command.thread_id), events=())
        after = _found(reduce(fold, events, before), command.thread_id)
        if after.unreadable is not None:
            raise Refused(after.id, command.trigger.value, f"its events could not be read: {after.unreadable}")
        rows = entry(before, after, rules, at=command.at, events=events)
        if isinstance(command.expect, ExpectCard) and rows.withdraw_card:
            self._close(command, answer)
        known = Known(
            command_id=command.id, thread_id=after.id, content=content, first=events[0].seq, last=events[-1].seq
        )
        self._writing.append(before, after, events, rows, known)
        self._withdraw_letter(before, after)
        self._change_card(after, rows, events, rules, command.at)
        return Submitted(thread=after, events=tuple(events))

    def _withdraw_letter(self, before: Thread | None, after: Thread) -> None:
        """Let no letter outlive the execution that wrote it; `effects` may change its state afterwards."""
        if before is None or before.phase is not Phase.EXECUTING or after.phase is Phase.EXECUTING:
            return
        letter = self._writing.letter(before.execution.id) if before.execution else None
        if letter is not None and letter.state == "waiting":
            self._writing.change_letter(letter.id, state="withdrawn")

    def _close(self, command: Command, answer: AnswerName | None) -> None:
        card = self._writing.open_card(command.thread_id)
        if card is None or not command.actor.is_human:
            return
        name = answer or next(
            (name for name, trigger in answers_of(card.phase).items() if trigger is command.trigger), None
        )
        if name is not None:
            self._writing.close_card(card.id, by=command.actor.name, answer=name)

    def _change_card(self, after: Thread, rows: Rows, events: Sequence[ThreadEvent], rules: Rules, at: float) -> None:
        """Keep the card that stays open up to date: hide it for a while, or show new evidence on it."""
        kinds = {event.kind for event in events}
        if rows.card is not None or not after.phase.waits or not kinds & {"deferred", "evidence_added"}:
            return
        card = self._writing.open_card(after.id)
        if card is None:
            return
        if "deferred" in kinds and after.deferred_until is not None:
            self._hide(card, after.deferred_until, at)
        else:
            self._writing.put_card(_refreshed(card, after, rules))

    def _hide(self, card: Card, until: float, at: float) -> None:
        """Hide a card until then; its timeout comes later by the time it is hidden."""
        hidden_before = max(card.deferred_until or at, at)
        expires = None if card.expires_at is None else card.expires_at + max(0.0, until - hidden_before)
        self._writing.put_card(replace(card, deferred_until=until, expires_at=expires))
        if expires is not None:
            self._writing.move_timer(card.thread_id, expires)

    def _open_children(self, parent: Thread, command: Command, rules: Rules, events: Sequence[ThreadEvent]) -> None:
        """Open the children of a thread in the transaction that makes it their parent."""
        opening = next((event for event in events if event.kind == "children_opened"), None)
        if opening is None:
            return
        for data in child_opens(parent, command, rules):
            key = data["cause"]["key"]
            child = Command(
                id=f"open:{thread_id_of(parent.org_id, key)}",
                thread_id=thread_id_of(parent.org_id, key),
                trigger=Addition.OPEN,
                expect=ExpectVersion(version=0),
                actor=command.actor,
                at=command.at,
                data=data,
                caused_by=f"{parent.id}:{opening.seq}",
            )
            if self._writing.head(child.thread_id) is not None:
                raise Refused(child.thread_id, "open", f"a thread of the key {key!r} exists, so it is no new child")
            self.submit(child)


def child_ids(org_id: str, data: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of the threads that a command opens as children."""
    children = data.get("children")
    causes = (each.get("cause") for each in children if isinstance(each, Mapping)) if isinstance(children, list) else ()
    return tuple(thread_id_of(org_id, str(cause.get("key"))) for cause in causes if isinstance(cause, Mapping))


class LeaseLost(Conflict):
    """A result of a work that is gone, or that another process does now: `work`."""

    def __init__(self, thread_id: str, work: str) -> None:
        self.work = work
        super().__init__(thread_id, f"the work {work!r} is not leased to this process any more")


def card_closed(reading: Reading, card_id: str, thread: Thread) -> CardClosed:
    """Return the error of an answer that came too late, with what is open now."""
    now, closed = reading.open_card(thread.id), reading.card(card_id)
    return CardClosed(
        thread.id,
        card_id,
        by=closed.by if closed else None,
        answer=closed.answer if closed else None,
        phase=thread.phase,
        next_card=now.id if now else None,
    )


def _found(thread: Thread | None, thread_id: str) -> Thread:
    if thread is None:
        raise UnknownThread(thread_id)
    return thread


def _ancestors(command: Command) -> Sequence[str]:
    return cast("Sequence[str]", command.data.get("ancestors") or ()) if command.trigger is Addition.OPEN else ()


def _refreshed(card: Card, thread: Thread, rules: Rules) -> Card:
    """Return the open card with new evidence; the action, as a person saw it, stays."""
    now = card_of(thread, rules, at=card.opened_at, expires_at=card.expires_at)
    if now is None:
        return card
    return replace(card, evidence=now.evidence, run=now.run, answers=now.answers)
