"""Turns a person's answer to a card into a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..cards import trigger_of
from ..errors import Refused
from ..phases import Addition, AnswerName, Stage, Trigger
from ..values import Actor, Card, Command, ExpectCard

if TYPE_CHECKING:
    from ._engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The fields of an answer; None for those that it does not have."""

    text: str | None = None
    parameters: Mapping[str, object] | None = None
    action: str | None = None
    to: str | None = None
    stage: Stage | None = None
    reason: str | None = None
    until: float | None = None

    def names(self) -> list[str]:
        return [name for name in self.__slots__ if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAnswers:
    """The ids of the children that an answer was applied to, of those that refused it, and of those without a card."""

    applied: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def command_of(engine: Engine, card: Card, what: AnswerName, given: Given, by: Actor, hash: str | None) -> Command:
    """Return the command of an answer. Raises `Refused` for one that the card does not offer, or for wrong fields."""
    trigger = trigger_of(card, what)
    _check_fields(card, what, given, engine.now())
    name = f"later:{card.id}:{given.until}" if trigger is Addition.DEFER else f"card:{card.id}"
    return Command(
        id=name,
        thread_id=card.thread_id,
        trigger=trigger,
        expect=ExpectCard(card=card.id),
        actor=by,
        at=engine.now(),
        data=_data(trigger, given, hash),
    )


def _check_fields(card: Card, what: AnswerName, given: Given, now: float) -> None:
    answer = next(each for each in card.answers if each.name == what)
    fits = (*answer.needs, *answer.takes)
    for name in answer.needs:
        if name not in given.names():
            raise Refused(card.thread_id, what, f"it needs {name!r}")
    for name in given.names():
        if name not in fits:
            raise Refused(card.thread_id, what, f"it takes no {name!r}; it takes: {', '.join(fits) or 'nothing'}")
    until: Any = given.until
    if until is not None and not (isinstance(until, int | float) and isfinite(until) and until > now):
        why = "'until' must be a later time, in seconds since the epoch, such as time.time() + 3600"
        raise Refused(card.thread_id, what, why)
    if what == "provide" and not given.names():
        raise Refused(card.thread_id, what, f"it needs one of: {', '.join(fits)}")


def _data(trigger: Trigger | Addition, given: Given, hash: str | None) -> dict[str, Any]:
    if trigger is Trigger.EXECUTE:
        return {"hash": hash}
    found: dict[str, object]
    if trigger is Trigger.REDIRECTED:
        found = {"redirect_to": given.stage and given.stage.value, "feedback": given.text, "keep": given.parameters}
    elif trigger is Trigger.PROVIDED:
        found = {
            "text": given.text,
            "action": given.action,
            "parameters": given.parameters,
            "redirect_to": given.stage and given.stage.value,
        }
    elif trigger is Trigger.EDITED:
        found = {"text": given.text, "action": given.action, "parameters": given.parameters}
    else:
        found = {"to": given.to, "reason": given.reason, "until": given.until}
    return {
        name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items() if value is not None
    }
