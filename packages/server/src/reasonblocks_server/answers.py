"""Answers cards of threads in the name of the person who has the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.folding import visible
from reasonblocks.util.text import collapse

from .errors import ApiError
from .threads import OrgThreads
from .values import KeyRow

if TYPE_CHECKING:
    from reasonblocks_threads import CardClosed, Thread

NAME_CHARS, NAME_BYTES = 80, 180
"""The most of a key's name in a log, which has room for 120 characters or 240 bytes."""


class CardIsClosed(ApiError):
    """A card that is not open any more: its `thread_id`, `by` whom and with which `answer` it was closed.

    Both are None if the thread moved on without an answer. `is_asking` is True if another card is open.
    """

    def __init__(self, closed: CardClosed) -> None:
        self.thread_id, self.by, self.answer = closed.thread_id, closed.by, closed.answer
        self.is_asking = closed.next_card is not None
        super().__init__(409, "the card is not open any more")


def person_of(key: KeyRow) -> str:
    """Return the name of a key's person in a log, with the id of the key: names are not unique."""
    name = collapse(visible(key.name))[:NAME_CHARS].encode()[:NAME_BYTES].decode(errors="ignore")
    return f"{name} (key {key.key_id})".strip()


def answer_card(
    threads: OrgThreads, key: KeyRow, card_id: str, what: str, seen: str, given: Mapping[str, Any]
) -> Thread:
    """Answer a card of the key's org, and return its thread as it is after what follows at once.

    `seen` is the hash of the action as the person saw it, which an approval is for; `given` are the fields of the
    answer. Raises `CardIsClosed`, and `ApiError`: 404 for an unknown card, 409 if others were faster, 422 for an answer
    that is refused, and 503 without the database.
    """
    from reasonblocks_threads import Actor, CardClosed, Conflict, Refused

    with threads.of(key.org_id) as org:
        card = replace(org.card(card_id).card, hash=seen or None)
        try:
            thread = org.answer(card, what, by=Actor.person(person_of(key)), **given)  # type: ignore[arg-type]
        except CardClosed as error:
            raise CardIsClosed(error) from error
        except Conflict as error:
            raise ApiError(409, "the thread has changed in this moment: look at it again") from error
        except Refused as error:
            raise ApiError(422, error.why) from error
        except ConfigError as error:
            raise ApiError(422, f"{error.name}: {error.rule}") from error
    threads.settle(key.org_id, thread.id)
    return thread
