"""The entry point of the package: opens threads, takes answers, and does due work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from reasonblocks.exceptions import ConfigError

from ._wiring import DEFAULT, Database, wire_engine
from .catalogue import Action
from .codec import encode
from .engine import Finding, Worker
from .engine.answering import ChildAnswers, Given, command_of
from .engine.doctor import Doctor
from .engine.opening import A_POLICY, AN_ACTOR, Opening, check, open_thread
from .engine.submit import card_closed
from .errors import CardClosed, Refused, StoreUnavailable, UnknownCard, UnknownThread
from .handlers import withdraw_letter
from .phases import Addition, AnswerName, Phase, RunStatus, Stage, Trigger
from .policy import policy_json
from .ports import Cleaner, ClosedCard, Inferencer, Listed, Notifier, Reading
from .values import (
    SYSTEM,
    Actor,
    Card,
    Cause,
    Command,
    Evidence,
    Expect,
    ExpectCard,
    ExpectPhase,
    ExpectVersion,
    Policy,
    Proposal,
    Thread,
    ThreadEvent,
)

if TYPE_CHECKING:
    from reasonblocks.ports import Mailbox, TelemetrySink

E = TypeVar("E", Phase, Stage)
AGENT = Actor.agent("agent")
LOOKS_S = 0.01, 0.25
"""Seconds between two polls of `wait`: at first and at most."""


def action_has_ended(thread: Thread) -> bool:
    """Return True for a thread whose action has ended, or that ended without one."""
    return thread.phase.action_has_ended


class Threads:
    """Matters that a person decides, in a file, on a PostgreSQL server, or in memory.

    Safe to use from any thread and after a fork. Several processes may use one database; each runs only its own
    actions, inferencer and cleaners, and the built-in ones. Raises `ConfigError` for invalid settings.
    """

    def __init__(
        self,
        database: Database = DEFAULT,
        *,
        actions: Iterable[Action] = (),
        policy: Policy | None = None,
        inferencer: Inferencer | None = None,
        cleaners: Iterable[Cleaner] = (),
        notifier: Notifier | None = None,
        org_id: str = "default",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine, self._owns_store = wire_engine(
            database,
            actions=actions,
            policy=policy,
            inferencer=inferencer,
            cleaners=cleaners,
            notifier=notifier,
            org_id=org_id,
            clock=clock,
        )
        self._begin()

    def _begin(self) -> None:
        """Register the abilities of this process in the store; if it is not available, the first call does so."""
        with suppress(StoreUnavailable):
            self._engine.tell_others()

    # --- opening

    def open(
        self,
        cause: Cause,
        *,
        proposals: Sequence[Proposal] = (),
        policy: Policy | None = None,
        children: Sequence[Cause] = (),
        rule: Literal["all_of", "alternatives"] = "all_of",
        parent: str | None = None,
        follows: str | None = None,
        supersedes: str | None = None,
        by: Actor = AGENT,
        run: RunStatus = "unknown",
    ) -> Thread:
        """Return the thread of the cause's key, and open it if there is none.

        If a thread of the same family is live, that one gets the evidence and is returned. `children` are opened as
        parts of the new thread. With `parent`, the new thread is a part of that one, which must not have begun, or must
        have parts already. `supersedes` names a thread that the new one replaces.

        Raises `Refused`, `UnknownThread`, `Conflict` and `StoreUnavailable`.
        """
        opening = Opening(
            cause=cause,
            by=by,
            proposals=tuple(proposals),
            policy=policy,
            children=tuple(children),
            rule=rule,
            parent=parent,
            follows=follows,
            supersedes=supersedes,
            run=run,
        )
        return open_thread(self._engine, opening)

    # --- a person's answers

    def answer(
        self,
        card: Card | str,
        what: AnswerName,
        *,
        by: Actor,
        text: str | None = None,
        parameters: Mapping[str, object] | None = None,
        action: str | None = None,
        to: str | None = None,
        stage: Stage | str | None = None,
        reason: str | None = None,
        until: float | None = None,
    ) -> Thread:
        """Answer a card and return its thread. The card's `answers` list the possible answers and their fields.

        An approval is valid for the action as the given `Card` shows it; with an id, as the stored card shows it.
        `until` (for "later") is in seconds since the epoch. Raises `CardClosed` if the card is no longer open,
        `UnknownCard`, and `Refused` for an answer or a field that the card does not offer.
        """
        check("by", by, Actor, AN_ACTOR)
        known = self.card(card.id if isinstance(card, Card) else card).card
        given = Given(
            text=text,
            parameters=parameters,
            action=action,
            to=to,
            stage=_member(Stage, "stage", stage),
            reason=reason,
            until=until,
        )
        shown = card if isinstance(card, Card) else known
        command = command_of(self._engine, known, what, given, by, shown.hash)
        submitted = self._engine.submit(command, answer=None if command.trigger is Addition.DEFER else what)
        if submitted.replayed and command.trigger is not Addition.DEFER:
            with self._engine.store.read() as reading:
                raise card_closed(reading, known.id, submitted.thread)
        return submitted.thread

    def answer_children(self, parent_id: str, what: AnswerName, *, by: Actor) -> ChildAnswers:
        """Answer the open card of each child in the same way, one after the other."""
        applied, refused, skipped = [], [], []
        for child in self.get(parent_id).children:
            with self._engine.store.read() as reading:
                card = reading.open_card(child.id)
            if card is None:
                skipped.append(child.id)
                continue
            try:
                self.answer(card, what, by=by)
            except CardClosed:
                skipped.append(child.id)
            except Refused:
                refused.append(child.id)
            else:
                applied.append(child.id)
        return ChildAnswers(applied=tuple(applied), refused=tuple(refused), skipped=tuple(skipped))

    def dismiss(self, id: str, *, by: Actor, reason: str = "") -> Thread:
        """End a thread. Raises `Refused` if that is not possible, such as while an action runs."""
        return self._decide(id, Trigger.DISMISSED_BY_USER, {"reason": reason}, by)

    def take_over(self, id: str, *, by: Actor, to: str, reason: str = "") -> Thread:
        """End a thread by handing it to a person or team, `to`."""
        return self._decide(id, Trigger.HANDED_OFF_BY_USER, {"to": to, "reason": reason}, by)

    def cancel(self, id: str, *, by: Actor) -> Thread:
        """Ask the running action to stop. The thread continues once the action has reported; guidance is withdrawn."""
        thread = self.get(id)
        expect = ExpectPhase(phase=thread.phase, entered=thread.entered)
        self._engine.submit(self._command(thread, Addition.CANCEL, {}, by, expect))
        withdraw_letter(self._engine, id)
        return self.get(id)

    def note(self, id: str, text: str, *, by: Actor) -> Thread:
        """Add a note to the log, even after the end of the thread."""
        return self._add(id, Addition.NOTE, {"text": text}, by)

    def set_policy(self, id: str, policy: Policy, *, by: Actor) -> Thread:
        """Replace the policy of a thread. Anyone may make it stricter; only an operator may loosen it."""
        check("policy", policy, Policy, A_POLICY)
        return self._add(id, Addition.POLICY, {"policy": policy_json(policy)}, by)

    def add_evidence(self, id: str, *evidence: Evidence, by: Actor = AGENT, run: RunStatus | None = None) -> Thread:
        """Add evidence, or set the status of the run."""
        for each in evidence:
            check("evidence", each, Evidence, "must be Evidence")
        data: dict[str, Any] = {"items": [encode(each) for each in evidence]}
        return self._add(id, Addition.EVIDENCE, data | ({"run": run} if run is not None else {}), by)

    def resolve(self, id: str, reason: str) -> Thread:
        """End a thread whose cause no longer exists. Raises `Refused` if that is not possible."""
        return self._add(id, Trigger.SOURCE_RESOLVED, {"reason": reason}, SYSTEM)

    def erase(self, id: str, *, by: Actor) -> int:
        """Erase the texts of the thread's private evidence, and return their number."""
        check("by", by, Actor, AN_ACTOR)
        thread = self.get(id)
        with self._engine.store.write([thread.id]) as writing:
            erased = writing.erase_blobs(thread.id)
        if erased:
            self.note(id, f"{erased} private texts were erased", by=by)
        return erased

    # --- looking

    def get(self, id: str) -> Thread:
        """Return a thread. Raises `UnknownThread`."""
        with self._engine.store.read() as reading:
            return self._own(reading, id)

    def log(self, id: str, *, after: int = 0, limit: int = 10_000) -> tuple[ThreadEvent, ...]:
        """Return the events of a thread after the one with the seq `after`."""
        with self._engine.store.read() as reading:
            self._own(reading, id)
            return tuple(reading.log(id, after=after, limit=limit))

    def list(
        self,
        *,
        live: bool = True,
        run_id: str | None = None,
        phase: Phase | str | None = None,
        parent: str | None = None,
        limit: int = 100,
    ) -> tuple[Listed, ...]:
        """Return the live threads, the last changed first; with `live=False`, ended threads as well."""
        org_id, found = self._engine.org_id, _member(Phase, "phase", phase)
        with self._engine.store.read() as reading:
            return tuple(
                reading.listed(org_id=org_id, live=live, run_id=run_id, phase=found, parent=parent, limit=limit)
            )

    def cards(self, *, run_id: str | None = None, deferred: bool = False, limit: int = 100) -> tuple[Card, ...]:
        """Return the open cards, the oldest first; with `deferred`, also those that a person put off."""
        now = None if deferred else self._engine.now()
        with self._engine.store.read() as reading:
            return tuple(reading.cards(org_id=self._engine.org_id, run_id=run_id, now=now, limit=limit))

    def card(self, id: str) -> ClosedCard:
        """Return a card, open or closed, with its answer. Raises `UnknownCard`."""
        with self._engine.store.read() as reading:
            found = reading.card(id)
        if found is None or found.card.org_id != self._engine.org_id:
            raise UnknownCard(id)
        return found

    def feed(self, after: int = 0, limit: int = 1_000) -> tuple[ThreadEvent, ...]:
        """Return the events of all threads after a position, in an order that never changes."""
        with self._engine.store.read() as reading:
            return tuple(reading.feed(after=after, limit=limit, org_id=self._engine.org_id))

    def wait(self, id: str, timeout: float, *, until: Callable[[Thread], bool] = action_has_ended) -> Thread:
        """Return the thread once `until(thread)` holds (default: the action has ended), or after `timeout` seconds."""
        ends = time.monotonic() + timeout
        look_s, longest_s = LOOKS_S
        thread = self.get(id)
        while not until(thread) and (left := ends - time.monotonic()) > 0:
            self._engine.wait_for_change(self._engine.changes, min(look_s, left))
            look_s = min(longest_s, look_s * 2)
            thread = self._newer(thread)
        return thread

    # --- doing

    def drain(self, *, limit: int | None = None) -> int:
        """Do all due work, and the work that follows from it. Returns the number of work items done or tried."""
        return self._engine.drain(limit=limit)

    def worker(self, *, threads: int = 1) -> Worker:
        """Return a context manager that does due work in daemon threads until its block ends."""
        check("threads", threads, int, "must be a number of at least 1")
        if threads < 1:
            raise ConfigError("threads", threads, "must be a number of at least 1")
        return Worker(self._engine, threads=threads)

    def doctor(self, *, repair: bool = False) -> tuple[Finding, ...]:
        """Return the rows that contradict the logs of their threads; with `repair`, correct them."""
        return Doctor(self._engine).visit(repair=repair)

    def sink(self, *, redact: Callable[[str], str] | None = None) -> TelemetrySink:
        """Return a sink for `ReasonBlocks` that opens threads for stuck runs. `redact` is applied to events first."""
        from .steering import RunSink

        return RunSink(self, self._engine, redact=redact)

    def mailbox(self) -> Mailbox:
        """Return a mailbox for `ReasonBlocks` that delivers approved guidance to runs."""
        from .steering import LetterBox

        return LetterBox(self._engine)

    def close(self) -> None:
        """Close the database; a later call opens it again."""
        if self._owns_store:
            self._engine.store.close()

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside

    def _own(self, reading: Reading, id: str) -> Thread:
        found = reading.head(id)
        if found is None or found.org_id != self._engine.org_id:
            raise UnknownThread(id)
        return found

    def _newer(self, thread: Thread) -> Thread:
        """Return the thread, read again only if its log has grown."""
        with self._engine.store.read() as reading:
            grown = reading.log(thread.id, after=thread.version, limit=1)
            return self._own(reading, thread.id) if grown else thread

    def _decide(self, id: str, trigger: Trigger, data: Mapping[str, object], by: Actor) -> Thread:
        """Submit a person's decision about a thread as it is now; an open card is answered by it."""
        check("by", by, Actor, AN_ACTOR)
        with self._engine.store.read() as reading:
            thread, card = self._own(reading, id), reading.open_card(id)
        given = {name: value for name, value in data.items() if value}
        expect: Expect = ExpectPhase(phase=thread.phase, entered=thread.entered)
        if card is not None:
            expect = ExpectCard(card=card.id)
        name = f"card:{card.id}" if card is not None else None
        return self._engine.submit(self._command(thread, trigger, given, by, expect, name)).thread

    def _add(self, id: str, trigger: Trigger | Addition, data: Mapping[str, object], by: Actor) -> Thread:
        """Submit a command that fits any state of the thread, decided anew if others are faster."""
        check("by", by, Actor, AN_ACTOR)
        self.get(id)
        name = f"client:{self._engine.token()}"

        def make(thread: Thread) -> Command:
            return self._command(thread, trigger, data, by, ExpectVersion(version=thread.version), name)

        submitted = self._engine.submit_latest(id, make)
        return submitted.thread if submitted is not None else self.get(id)

    def _command(
        self,
        thread: Thread,
        trigger: Trigger | Addition,
        data: Mapping[str, object],
        by: Actor,
        expect: Expect,
        name: str | None = None,
    ) -> Command:
        return Command(
            id=name or f"client:{self._engine.token()}",
            thread_id=thread.id,
            trigger=trigger,
            expect=expect,
            actor=by,
            at=self._engine.now(),
            data=data,
        )


def _member(kind: type[E], name: str, value: E | str | None) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError as exc:
        raise ConfigError.unknown(name, value, [str(each.value) for each in kind]) from exc
