"""A command's events in the making, and the checks of texts that all commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from reasonblocks.util.text import cut_to_bytes, whole
from reasonblocks.util.text import size as text_size

from .. import codec
from ..catalogue import Bound
from ..codec import size
from ..errors import Refused
from ..log.limits import (
    ACTION_BYTES,
    CALL_CHARS,
    FACTS_BYTES,
    PERSON_BYTES,
    PERSON_CHARS,
    PROPOSAL_BYTES,
    PROPOSAL_CHARS,
    REFS_BYTES,
    TEXT_CHARS,
    fact_size,
)
from ..phases import Phase, Stage
from ..rules import Rules
from ..values import JSON, Actor, Command, EventKind, Fact, Malformed, Proposal, Thread, ThreadEvent

ELLIPSIS_BYTES = 3


class Draft:
    """The events that a command leads to on a thread."""

    def __init__(self, thread: Thread, command: Command, rules: Rules) -> None:
        self.thread, self.command, self.rules = thread, command, rules
        self.data: Mapping[str, Any] = command.data
        self.events: list[ThreadEvent] = []

    @property
    def seq(self) -> int:
        """The seq of the next event."""
        return self.thread.version + len(self.events) + 1

    def add(self, kind: EventKind, data: JSON) -> None:
        self.events.append(event_of(self.command, self.seq, kind, data))

    def move(self, to: Phase, *, stage: Stage | None = None, reason: str = "") -> None:
        """Add the change of phase, the last event."""
        data = {
            "from": self.thread.phase.value,
            "to": to.value,
            "trigger": self.command.trigger.value,
            "stage": (stage or self.thread.stage).value,
            "reason": shortened(reason, TEXT_CHARS),
        }
        self.add("phase_changed", data)

    def refused(self, why: str) -> Refused:
        return Refused(self.thread.id, self.command.trigger.value, why)

    def proposal_id(self) -> str:
        """Return the id of a proposal that the next event holds."""
        return f"{self.thread.id}.p{self.seq}"

    def open_proposal(self) -> Proposal:
        """Return the proposal of the present stage. Raises `Refused` without one."""
        found = self.thread.proposals.get(self.thread.stage)
        if found is None:
            raise self.refused(
                f"the stage {self.thread.stage.value!r} has no proposal: redirect the thread, or provide one"
            )
        return found

    def bind(self, name: object, parameters: object) -> Bound | str:
        """Return the action as it would run, or a sentence why it cannot."""
        bound = self.rules.catalogue.bind(name, parameters, self.thread)
        if isinstance(bound, str):
            return bound
        taken = size({"action": bound.action, "parameters": bound.parameters})
        if taken > ACTION_BYTES:
            return f"the action {bound.action!r} and its parameters have {taken:,} bytes; at most {ACTION_BYTES:,}"
        return bound

    def words(self, name: str, *, needed: bool = False, chars: int = TEXT_CHARS) -> str:
        """Return a text of the command, without white space around it; too long a person's is refused, others cut."""
        found = clean(codec.words(self.data, name)).strip()
        if needed and not found:
            raise self.refused(f"it needs the field {name!r}")
        if len(found) <= chars:
            return found
        if self.command.actor.is_human:
            raise self.refused(f"the {name} has {len(found):,} characters; at most {chars:,}: shorten it")
        return shortened(found, chars)

    def fact(self, words: str, stage: Stage) -> str:
        """Return words that become a fact. Raises `Refused` if the thread has no room for them."""
        fact = Fact(id=f"{self.thread.id}.f{self.seq}", by=self.command.actor.name, text=words, stage=stage)
        if words and self.thread.facts_bytes + fact_size(fact) > FACTS_BYTES:
            raise self.refused(
                f"all answers together would have more than {FACTS_BYTES:,} bytes: "
                "shorten this one, take the thread over, or open a new thread that follows it"
            )
        return words

    def call(self) -> JSON | None:
        """Return the costs of the command's inference, if it has any."""
        if self.data.get("call") is None:
            return None
        call = codec.mapping(self.data, "call")
        return {
            "id": codec.text(call, "id")[-CALL_CHARS:],
            "tokens": codec.count(call, "tokens", 0),
            "usd": codec.cost(call, "usd", 0.0),
            "calls": codec.count(call, "calls", 1),
        }


def event_of(command: Command, seq: int, kind: EventKind, data: JSON) -> ThreadEvent:
    return ThreadEvent(
        thread_id=command.thread_id, seq=seq, kind=kind, actor=command.actor, at=command.at, data=data,
        command_id=command.id, caused_by=command.caused_by,
    )  # fmt: skip


def clean(words: str) -> str:
    """Return the text without what a store cannot hold: unpaired surrogates and NUL."""
    return whole(words).replace("\0", "")


def shortened(words: str, chars: int, limit: int | None = None) -> str:
    """Return a text of at most so many characters, and bytes of JSON; a cut one ends with an ellipsis."""
    words = clean(words)
    if len(words) <= chars and (limit is None or text_size(words) <= limit):
        return words
    start = words[: chars - 1]
    return (start if limit is None else cut_to_bytes(start, limit - ELLIPSIS_BYTES)) + "…"


def usable(proposal: Proposal) -> Proposal:
    """Return a proposal within the limits. Raises `Malformed` for one that cannot be cut."""
    refs = list(proposal.refs[:REFS_BYTES])
    while refs and size(refs) > REFS_BYTES:
        refs.pop()
    body = {**proposal.body}
    for name in ("text", "question"):
        if isinstance(body.get(name), str):
            body[name] = shortened(str(body[name]), PROPOSAL_CHARS, PROPOSAL_BYTES)
    if (taken := size(body)) > ACTION_BYTES:
        raise Malformed(f"the proposed action has {taken:,} bytes; at most {ACTION_BYTES:,}")
    author = shortened(proposal.author, PERSON_CHARS, PERSON_BYTES)
    return replace(proposal, body=body, refs=tuple(refs), author=author)


def faults_of(actor: Actor, at: object) -> str | None:
    """Return why nobody may write so, if that is the case."""
    if not actor.name.strip() or shortened(actor.name, PERSON_CHARS, PERSON_BYTES) != actor.name:
        needed = f"1 to {PERSON_CHARS} characters ({PERSON_BYTES} bytes) that can be stored"
        return f"the actor's name is {actor.name[:200]!r}; it must have {needed}"
    if not isinstance(at, int | float) or isinstance(at, bool) or not isfinite(at):
        return f"the time is {at!r}; it must be a finite number of seconds"
    return None
