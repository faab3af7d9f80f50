"""The works around a thread: cleaning up its source, telling persons about its card, and its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reasonblocks_threads import Actor, Card, Cause, Cleaned, Thread, Threads
from tests.threads.driver import MARA, Clock

AGENT = Actor.agent("agent")
SECRET = "sk-proj-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz"


class Broom:
    """A cleaner that does what its script says."""

    kinds = ("incident",)

    def __init__(self, script: Callable[[str], Any]) -> None:
        self.script = script
        self.keys: list[str] = []

    def clean_up(self, thread: Thread, key: str) -> Cleaned:
        self.keys.append(key)
        found: Cleaned = self.script(key)
        return found


class Bell:
    """A notifier that fails so many times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.rung: list[Card] = []

    def notify(self, card: Card) -> None:
        self.rung.append(card)
        if len(self.rung) <= self.failures:
            raise ConnectionError("nobody is there")


class World:
    def __init__(self, broom: Broom | None = None, bell: Bell | None = None) -> None:
        self.clock = Clock()
        self.threads = Threads(None, cleaners=[broom] if broom else [], notifier=bell, clock=self.clock)

    def asked(self) -> Thread:
        thread = self.threads.open(Cause(kind="incident", key="disk", title="The disk is full"), by=AGENT)
        self.threads.drain()
        assert self.threads.get(thread.id).phase.value == "awaiting_action_clarification"
        return thread

    def cleaned(self) -> Thread:
        thread = self.asked()
        (card,) = self.threads.cards()
        self.threads.answer(card, "clean_up", by=MARA)
        self.threads.drain()
        return self.threads.get(thread.id)


@pytest.fixture
def made() -> Iterator[Callable[..., World]]:
    worlds: list[World] = []

    def make(**given: Any) -> World:
        worlds.append(World(**given))
        return worlds[-1]

    yield make
    for world in worlds:
        world.threads.close()


@pytest.mark.parametrize("gone", [False, True])
def test_a_source_that_is_clean_or_gone_is_cleaned_up(made: Callable[..., World], gone: bool) -> None:
    broom = Broom(lambda key: Cleaned(succeeded=True, detail="muted", already_gone=gone))
    world = made(broom=broom)
    thread = world.cleaned()
    assert thread.phase.value == "done_cleanup_successful"
    (event,) = [event for event in world.threads.log(thread.id) if event.kind == "source_cleaned_up"]
    assert event.data == {"detail": "muted", "already_gone": gone}


def leaves(key: str) -> Cleaned:
    raise SystemExit(f"token={SECRET}")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (lambda key: Cleaned(succeeded=False, detail="the source does not answer"), "the source does not answer"),
        (lambda key: Cleaned(succeeded=False), "could not be cleaned up"),
        (lambda key: Cleaned(succeeded="no"), "could not be cleaned up"),  # type: ignore[arg-type]
        (lambda key: None, "returned NoneType"),
        (lambda key: True, "returned bool"),
        (leaves, "SystemExit"),
    ],
)
def test_a_clean_up_without_success_asks_a_person(
    made: Callable[..., World], script: Callable[[str], Any], why: str
) -> None:
    world = made(broom=Broom(script))
    thread = world.cleaned()
    assert thread.phase.value == "done_cleanup_unsuccessful"
    (card,) = world.threads.cards()
    assert why in card.problem
    assert SECRET not in card.problem


def test_a_clean_up_that_hangs_is_given_up(made: Callable[..., World]) -> None:
    release = threading.Event()

    def hangs(key: str) -> Cleaned:
        world.clock.advance(56)
        release.wait(30)
        return Cleaned(succeeded=True)

    world = made(broom=Broom(hangs))
    thread = world.cleaned()
    release.set()
    assert thread.phase.value == "done_cleanup_unsuccessful"
    (card,) = world.threads.cards()
    assert "in time" in card.problem


def test_a_person_is_told_once_of_a_card_and_again_only_after_a_failure(made: Callable[..., World]) -> None:
    bell = Bell(failures=2)
    world = made(bell=bell)
    thread = world.asked()
    assert len(bell.rung) == 1
    for _ in range(3):
        world.clock.advance(60)
        world.threads.drain()
    assert len(bell.rung) == 3
    assert {card.thread_id for card in bell.rung} == {thread.id}


def test_nobody_is_told_of_a_card_that_is_closed(made: Callable[..., World]) -> None:
    bell = Bell(failures=1)
    world = made(bell=bell)
    world.asked()
    (card,) = world.threads.cards()
    world.threads.answer(card, "skip", by=MARA)
    world.clock.advance(60)
    world.threads.drain()
    assert len(bell.rung) == 1


def test_nobody_is_told_of_a_card_that_is_put_off(made: Callable[..., World]) -> None:
    bell = Bell(failures=1)
    world = made(bell=bell)
    world.asked()
    (card,) = world.threads.cards()
    world.threads.answer(card, "later", until=world.clock.now + 3600, by=MARA)
    world.clock.advance(60)
    world.threads.drain()
    assert len(bell.rung) == 1
