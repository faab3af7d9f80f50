"""Opens threads: by key, by family, as children, or in place of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reasonblocks.exceptions import ConfigError

from ..codec import encode
from ..errors import Conflict, Refused, UnknownThread
from ..phases import Addition, Phase, RunStatus, Trigger
from ..policy import policy_json
from ..ports import Reading
from ..values import (
    SYSTEM,
    Actor,
    Cause,
    Command,
    ExpectPhase,
    ExpectVersion,
    Policy,
    Proposal,
    Thread,
    digest,
    thread_id_of,
)
from ._engine import TRIES
from .submit import Effects

if TYPE_CHECKING:
    from ._engine import Engine

A_POLICY = "must be a Policy, such as PLAN_THEN_REVIEW"
AN_ACTOR = "must be an Actor, such as Actor.person('mara')"


def check(name: str, value: object, kind: type, rule: str) -> None:
    """Raise `ConfigError` for a value of another type."""
    if not isinstance(value, kind):
        raise ConfigError(name, value, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A request to open a thread. Raises `ConfigError` for values of another type."""

    cause: Cause
    by: Actor
    proposals: Sequence[Proposal] = ()
    policy: Policy | None = None
    children: Sequence[Cause] = ()
    rule: str = "all_of"
    parent: str | None = None
    follows: str | None = None
    supersedes: str | None = None
    run: RunStatus = "unknown"

    def __post_init__(self) -> None:
        check("cause", self.cause, Cause, "must be a Cause")
        check("by", self.by, Actor, AN_ACTOR)
        if self.policy is not None:
            check("policy", self.policy, Policy, A_POLICY)
        for proposal in self.proposals:
            check("proposals", proposal, Proposal, "must be Proposals")
        for child in self.children:
            check("children", child, Cause, "must be Causes")


def open_thread(engine: Engine, opening: Opening) -> Thread:
    """Return the thread of a key, opened if there is none; a live one of the same family gets the evidence instead.

    Raises `Refused`, `UnknownThread` for a parent or predecessor that does not exist, and `Conflict` if other
    processes are faster 5 times.
    """
    tries = TRIES
    while True:
        try:
            return _Attempt(engine, opening).thread()
        except Conflict:
            tries -= 1
            if not tries:
                raise


class _Attempt:
    """One attempt to open a thread, with what exists at its beginning."""

    def __init__(self, engine: Engine, opening: Opening) -> None:
        self._engine = engine
        self._asked = opening
        self._id = thread_id_of(engine.org_id, opening.cause.key)
        self._at = engine.now()

    def thread(self) -> Thread:
        with self._engine.store.read() as reading:
            known = reading.head(self._id)
            if known is not None:
                return known
            relative = self._live_relative(reading)
            parent = self._existing(reading, self._asked.parent)
            before = self._existing(reading, self._asked.supersedes)
        if relative is not None:
            return self._with_evidence(relative)
        commands: list[tuple[Command, Effects | None]] = [
            *self._superseded(before),
            self._opened(parent),
            *self._split(),
        ]
        self._engine.submit_all(commands)
        found = self._engine.thread(self._id)
        if found is None:
            raise UnknownThread(self._id)
        return found

    def _live_relative(self, reading: Reading) -> Thread | None:
        """Return the live thread of the same family, unless this one takes its place."""
        family = self._asked.cause.family
        found = reading.by_family(self._engine.org_id, family) if family is not None else None
        return reading.head(found) if found is not None and found != self._asked.supersedes else None

    def _existing(self, reading: Reading, thread_id: str | None) -> Thread | None:
        if thread_id is None:
            return None
        found = reading.head(thread_id)
        if found is None or found.org_id != self._engine.org_id:
            raise UnknownThread(thread_id)
        return found

    def _with_evidence(self, thread: Thread) -> Thread:
        items = [encode(each) for each in self._asked.cause.evidence]
        if not items:
            return thread
        command = self._command(
            self._name_of_evidence(thread, items),
            thread.id,
            Addition.EVIDENCE,
            {"items": items},
            ExpectVersion(version=thread.version),
        )
        return self._engine.submit(command).thread

    def _name_of_evidence(self, thread: Thread, items: list[dict[str, Any]]) -> str:
        """Return the command's id: the same for the same evidence, unless it is private, which no id may reveal."""
        if any(each.private for each in self._asked.cause.evidence):
            return f"{self._name}:{self._engine.token()}"
        by = self._asked.by
        return f"{self._name}:{digest({'to': thread.id, 'by': [by.kind, by.name], 'items': items})}"

    def _superseded(self, before: Thread | None) -> list[tuple[Command, None]]:
        """Return the command that ends a thread whose place the new one takes."""
        if before is None:
            return []
        if before.attempt:
            raise Refused(before.id, "supersedes", "it has executed an action, so no other thread can take its place")
        if before.phase.is_terminal:
            return []
        command = self._command(
            f"superseded:{before.id}:{self._id}",
            before.id,
            Trigger.SOURCE_RESOLVED,
            {"reason": f"superseded by {self._id}"},
            ExpectPhase(phase=before.phase, entered=before.entered),
            by=SYSTEM,
        )
        return [(command, None)]

    def _opened(self, parent: Thread | None) -> tuple[Command, None]:
        if parent is None:
            expect = ExpectVersion(version=0)
            return self._command(self._name, self._id, Addition.OPEN, self._data(), expect), None
        trigger = Trigger.DECOMPOSED if parent.phase is Phase.PROPOSED else Addition.CHILDREN
        name, under = f"{self._name}:under:{parent.id}", ExpectPhase(phase=parent.phase, entered=parent.entered)
        return self._command(name, parent.id, trigger, {"children": [self._data()]}, under, by=SYSTEM), None

    def _split(self) -> list[tuple[Command, None]]:
        """Return the command that opens the children of the new thread."""
        children = [{"cause": encode(each)} for each in self._asked.children]
        if not children:
            return []
        data = {"children": children, "rule": self._asked.rule}
        name, new = f"{self._name}:children", ExpectPhase(phase=Phase.PROPOSED, entered=1)
        return [(self._command(name, self._id, Trigger.DECOMPOSED, data, new, by=SYSTEM), None)]

    @property
    def _name(self) -> str:
        return f"open:{self._id}"  # which is of organisation and key, both of which may have colons

    def _data(self) -> dict[str, Any]:
        asked = self._asked
        return {
            "org_id": self._engine.org_id,
            "cause": encode(asked.cause),
            "policy": policy_json(asked.policy) if asked.policy else None,
            "proposals": [encode(each) for each in asked.proposals],
            "parent": None,
            "ancestors": [],
            "rule": asked.rule,
            "follows": asked.follows,
            "run": asked.run,
        }

    def _command(
        self,
        name: str,
        thread_id: str,
        trigger: Trigger | Addition,
        data: dict[str, Any],
        expect: ExpectPhase | ExpectVersion,
        *,
        by: Actor | None = None,
    ) -> Command:
        return Command(
            id=name,
            thread_id=thread_id,
            trigger=trigger,
            expect=expect,
            actor=by or self._asked.by,
            at=self._at,
            data=data,
        )
