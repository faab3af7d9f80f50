"""Cascades: children end their parent, and a parent's end closes all below, whatever crashes on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks_threads import Cause, Thread, Work
from reasonblocks_threads.engine import Engine
from reasonblocks_threads.handlers import HANDLERS
from tests.threads.driver import AGENT, MARA, Driver


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver() as made:
        yield made


def family(driver: Driver, *, rule: str = "all_of", depth: int = 1, width: int = 2) -> list[Thread]:
    """Open a thread with children, and below the first child more, down to a depth; the eldest first."""
    eldest = driver.open(children=[driver.cause() for _ in range(width)], rule=rule, by=AGENT)
    found, parent = [eldest], eldest
    for _ in range(depth - 1):
        child = driver.threads.open(
            driver.cause(), parent=parent.id, children=[driver.cause() for _ in range(width)], by=AGENT
        )
        found.append(child)
        parent = child
    return found


def phase(driver: Driver, id: str) -> str:
    return driver.get(id).phase.value


def works(driver: Driver) -> list[Work]:
    with driver.threads._engine.store.read() as reading:
        return list(reading.works())


def below(driver: Driver, thread: Thread) -> list[str]:
    """Return the ids of all threads below one."""
    found: list[str] = []
    for child in driver.get(thread.id).children:
        found += [child.id, *below(driver, driver.get(child.id))]
    return found


ENDS = ["dismissed", "handed_off", "done", "done_cleanup_successful"]


@pytest.mark.parametrize("end", ENDS)
def test_the_last_child_releases_its_parent_by_each_of_its_ends(driver: Driver, end: str) -> None:
    (parent,) = family(driver)
    first, last = (child.id for child in parent.children)
    driver.threads.dismiss(first, by=MARA)
    driver.drain()
    assert phase(driver, parent.id) == "monitoring"
    if end == "dismissed":
        driver.threads.dismiss(last, by=MARA)
    elif end == "handed_off":
        driver.threads.take_over(last, by=MARA, to="mara")
    elif end == "done":
        driver.answer(last, "approve")
    else:
        driver.answer(last, "clean_up")
    driver.drain()
    assert phase(driver, last) == end
    assert phase(driver, parent.id) == "done"


def test_alternatives_that_are_all_dismissed_dismiss_their_parent(driver: Driver) -> None:
    (parent,) = family(driver, rule="alternatives")
    for child in parent.children:
        driver.threads.dismiss(child.id, by=MARA)
    driver.drain()
    assert phase(driver, parent.id) == "dismissed"


@pytest.mark.parametrize("way", ["dismiss", "take_over"])
def test_the_end_of_a_parent_closes_everything_below_it(driver: Driver, way: str) -> None:
    eldest, *_ = family(driver, depth=3)
    driver.drain()
    if way == "dismiss":
        driver.threads.dismiss(eldest.id, by=MARA)
    else:
        driver.threads.take_over(eldest.id, by=MARA, to="mara")
    driver.drain()
    ids = below(driver, eldest)
    assert len(ids) > 5
    assert {phase(driver, id) for id in ids} == {"dismissed"}
    assert driver.threads.cards() == ()
    driver.replayed()


def test_an_ended_child_stays_as_it_is_when_its_parent_ends(driver: Driver) -> None:
    (parent,) = family(driver)
    first, _ = (child.id for child in parent.children)
    driver.threads.take_over(first, by=MARA, to="mara")
    driver.drain()
    before = driver.get(first)
    driver.threads.dismiss(parent.id, by=MARA)
    driver.drain()
    assert driver.get(first) == before
    assert works(driver) == []


def test_a_child_that_cannot_be_closed_now_does_not_keep_the_others_open(driver: Driver) -> None:
    (parent,) = family(driver)
    driver.drain()
    first, last = (child.id for child in parent.children)
    engine = driver.threads._engine
    engine.set_suspect(driver.get(first))
    driver.threads.dismiss(parent.id, by=MARA)
    driver.drain()
    assert phase(driver, first) != "dismissed"
    assert phase(driver, last) == "dismissed"
    engine.set_suspect(replace(driver.get(first), version=0))
    driver.clock.advance(60)
    driver.drain()
    assert phase(driver, first) == "dismissed"
    assert works(driver) == []


def ended(repeats: list[int]) -> list[tuple[str, int, dict[str, object]]]:
    """Dismiss a thread over three generations; each cascade is done so many times before its work is gone."""
    counts = iter(repeats)

    def repeated(handler: Callable[[Engine, Work], None]) -> Callable[[Engine, Work], None]:
        def handle(engine: Engine, work: Work) -> None:
            for _ in range(next(counts, 1)):
                handler(engine, work)

        return handle

    with Driver() as driver:
        eldest, *_ = family(driver, depth=2)
        cascades = {kind: repeated(handler) for kind, handler in HANDLERS.items() if kind.startswith("cascade")}
        driver.threads._engine.handlers = {**HANDLERS, **cascades}
        driver.threads.dismiss(eldest.id, by=MARA)
        driver.drain()
        return [(event.kind, event.seq, dict(event.data)) for event in driver.threads.feed()]


@given(repeats=st.lists(st.integers(1, 3), max_size=12))
@settings(max_examples=10, deadline=None)
def test_a_cascade_that_is_done_again_after_a_crash_changes_nothing_more(repeats: list[int]) -> None:
    assert ended(repeats) == ended([])


def test_a_cause_with_the_key_of_another_matter_is_not_taken_as_a_child(driver: Driver) -> None:
    other = driver.open("shared")
    with pytest.raises(Exception, match="exists"):
        driver.threads.open(driver.cause(), children=[Cause(kind="part", key="shared", title="Shared")], by=AGENT)
    assert driver.get(other.id).parent is None
