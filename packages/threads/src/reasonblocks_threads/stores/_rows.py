"""Rows of the tables: their columns, and the values made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

from reasonblocks.util.json import MAX_INT, compact
from reasonblocks.util.text import cut_with_hash, storable_text

from .. import codec
from ..phases import Phase, Stage
from ..ports import ClosedCard, Listed
from ..values import Actor, Letter, NewWork, Thread, ThreadEvent, Work

Row: TypeAlias = Sequence[Any]

ID_BYTES = 500
"""The longest id in an index; a longer one ends with its hash. PostgreSQL indexes at most 2,704 bytes."""
AGING_S = 30.0
"""Seconds of waiting that count as one of urgency: 5 minutes are 10."""

EVENT = "position, thread_id, seq, kind, form, actor_kind, actor, at, command_id, caused_by, data"
CARD = "body, deferred_until, state, answered_by, answer"
_LISTED, _WORK, _LETTER = (tuple(each.name for each in fields(kind)) for kind in (Listed, Work, Letter))
LISTED, WORK, LETTER = map(", ".join, (_LISTED, _WORK, _LETTER))
"""Columns that are named like the fields."""


def id_of(text: str) -> str:
    """Return an id as it is stored."""
    text = storable_text(text)
    return text if len(text) * 4 <= ID_BYTES else cut_with_hash(text, ID_BYTES)


def maybe_id(text: str | None) -> str | None:
    return None if text is None else id_of(text)


def number(value: int) -> int:
    """Return an integer that fits into a column."""
    return max(-MAX_INT, min(value, MAX_INT))


def stored_json(value: Mapping[str, object] | str) -> str:
    """Return compact JSON that every database stores: texts with unpaired surrogates are escaped."""
    text = compact(value)  # type: ignore[arg-type]
    return text if is_whole(text) else json.dumps(value)


def is_whole(text: str) -> bool:
    """Return False for a text with unpaired surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_json(text: str) -> object:
    found: object = json.loads(text)
    return found


def head_json(thread: Thread) -> str:
    text = codec.head_json(thread)
    return text if is_whole(text) else json.dumps(json.loads(text))


def card_of(row: Row) -> ClosedCard | None:
    """Return a card; None if its row is damaged, so that it does not hide the others: the doctor writes it anew."""
    body, deferred_until, state, by, answer = row
    try:
        card = codec.card_of(body)
    except ValueError:
        return None
    if card.deferred_until != deferred_until:
        card = replace(card, deferred_until=deferred_until)
    return ClosedCard(card=card, state=state, by=by, answer=answer)


def event_of(row: Row) -> ThreadEvent:
    position, thread_id, seq, kind, form, actor_kind, actor, at, command_id, caused_by, data = row
    return ThreadEvent(
        thread_id=thread_id, seq=seq, kind=kind, actor=Actor(kind=actor_kind, name=json.loads(actor)), at=at,
        data=json.loads(data), command_id=command_id, form=form, caused_by=caused_by, position=position,
    )  # fmt: skip


def event_row(org_id: str, event: ThreadEvent) -> Row:
    actor = event.actor
    return (
        id_of(org_id), event.thread_id, event.seq, event.kind, event.form, actor.kind, stored_json(actor.name),
        event.at, id_of(event.command_id), event.caused_by, stored_json(event.data),
    )  # fmt: skip


def listed_of(row: Row) -> Listed:
    found = dict(zip(_LISTED, row))
    return Listed(**{**found, "phase": Phase(found["phase"]), "stage": Stage(found["stage"])})


def work_of(row: Row) -> Work:
    found = dict(zip(_WORK, row))
    return Work(**{**found, "data": _data(found["data"])})


def _data(text: str) -> dict[str, object]:
    """Return the data of a work; {} if they are damaged, so that the queue goes on."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def new_work(thread_id: str, entered: int, work: NewWork) -> Work:
    return Work(
        id=f"{thread_id}.{entered}.{work.kind}", thread_id=thread_id, kind=work.kind, entered=entered,
        due_at=work.due_at, urgency=work.urgency, needs=work.needs, data=work.data,
    )  # fmt: skip


def rank(urgency: int, due_at: float) -> float:
    """Return the place in the queue, the first the smallest. Waiting lowers all alike, so it does not depend on now."""
    return urgency * AGING_S + due_at


def work_row(org_id: str, work: Work) -> Row:
    urgency, most, lease_s = number(work.urgency), work.data.get("attempts"), work.data.get("lease_s")
    return (
        work.id, id_of(org_id), work.thread_id, work.kind, work.entered, work.due_at, urgency,
        rank(urgency, work.due_at), work.attempts, most, lease_s, id_of(work.needs), work.error, stored_json(work.data),
    )  # fmt: skip


def letter_of(row: Row) -> Letter:
    return Letter(**dict(zip(_LETTER, row)))
