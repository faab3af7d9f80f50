"""Threads with a clock by hand: an agent opens them, Mara answers, and what is due is done at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from reasonblocks_threads import Actor, Card, Cause, Thread, Threads
from tests.threads.driver import MARA, Clock

AGENT = Actor.agent("agent")
SECRET = "sk-proj-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz"


class World:
    """`Threads` in memory, or in a file."""

    def __init__(self, database: Path | None = None, *, clock: Clock | None = None, **settings: Any) -> None:
        self.clock = clock or Clock()
        self.threads = Threads(database, clock=self.clock, **settings)

    def opened(self, cause: Cause, **given: Any) -> Thread:
        return self.drained(self.threads.open(cause, by=AGENT, **given))

    def answered(self, thread: Thread, what: Any, **given: Any) -> Thread:
        self.threads.answer(self.card(thread), what, by=MARA, **given)
        return self.drained(thread)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.threads.drain()

    def drained(self, thread: Thread) -> Thread:
        """Do what is due. Return the thread as it is then."""
        self.threads.drain()
        return self.threads.get(thread.id)

    def card(self, thread: Thread) -> Card:
        (card,) = [card for card in self.threads.cards() if card.thread_id == thread.id]
        return card

    def kinds(self, thread: Thread) -> list[str]:
        return [event.kind for event in self.threads.log(thread.id)]

    def events(self, thread: Thread, kind: str) -> list[dict[str, Any]]:
        return [dict(event.data) for event in self.threads.log(thread.id) if event.kind == kind]


Made = TypeVar("Made", bound=World)


def makes(kind: Callable[..., Made]) -> Iterator[Callable[..., Made]]:
    """Yield a function that makes such worlds, and close them."""
    worlds: list[Made] = []

    def make(*given: Any, **options: Any) -> Made:
        worlds.append(kind(*given, **options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.threads.close()
