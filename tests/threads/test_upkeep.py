"""The works around a thread: cleaning up its source, telling persons about its card, and its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reasonblocks_threads import Card, Cause, Cleaned, Thread
from tests.threads.driver import Clock
from tests.threads.world import SECRET, World, makes


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


class Kept(World):
    """Threads with a cleaner and a notifier, if there are any."""

    def __init__(self, broom: Broom | None = None, bell: Bell | None = None) -> None:
        super().__init__(cleaners=[broom] if broom else [], notifier=bell)

    def asked(self) -> Thread:
        thread = self.opened(Cause(kind="incident", key="disk", title="The disk is full"))
        assert thread.phase.value == "awaiting_action_clarification"
        return thread

    def cleaned(self) -> Thread:
        return self.answered(self.asked(), "clean_up")


@pytest.fixture
def made() -> Iterator[Callable[..., Kept]]:
    yield from makes(Kept)


@pytest.mark.parametrize("gone", [False, True])
def test_a_source_that_is_clean_or_gone_is_cleaned_up(made: Callable[..., Kept], gone: bool) -> None:
    broom = Broom(lambda key: Cleaned(succeeded=True, detail="muted", already_gone=gone))
    world = made(broom=broom)
    thread = world.cleaned()
    assert thread.phase.value == "done_cleanup_successful"
    assert world.events(thread, "source_cleaned_up") == [{"detail": "muted", "already_gone": gone}]


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
    made: Callable[..., Kept], script: Callable[[str], Any], why: str
) -> None:
    world = made(broom=Broom(script))
    thread = world.cleaned()
    assert thread.phase.value == "done_cleanup_unsuccessful"
    assert why in world.card(thread).problem
    assert SECRET not in world.card(thread).problem


def test_a_clean_up_that_hangs_is_given_up(made: Callable[..., Kept]) -> None:
    release = threading.Event()

    def hangs(key: str) -> Cleaned:
        world.clock.advance(56)
        release.wait(30)
        return Cleaned(succeeded=True)

    world = made(broom=Broom(hangs))
    thread = world.cleaned()
    release.set()
    assert thread.phase.value == "done_cleanup_unsuccessful"
    assert "in time" in world.card(thread).problem


def test_a_person_is_told_once_of_a_card_and_again_only_after_a_failure(made: Callable[..., Kept]) -> None:
    bell = Bell(failures=2)
    world = made(bell=bell)
    thread = world.asked()
    assert len(bell.rung) == 1
    for _ in range(3):
        world.later(60)
    assert len(bell.rung) == 3
    assert {card.thread_id for card in bell.rung} == {thread.id}


@pytest.mark.parametrize(("answer", "given"), [("skip", {}), ("later", {"until": Clock().now + 3_600})])
def test_nobody_is_told_of_a_card_that_is_closed_or_put_off(
    made: Callable[..., Kept], answer: str, given: dict[str, Any]
) -> None:
    bell = Bell(failures=1)
    world = made(bell=bell)
    world.answered(world.asked(), answer, **given)
    world.later(60)
    assert len(bell.rung) == 1
