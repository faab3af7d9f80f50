"""Cascades: children end their parent, and a parent's end closes all below, whatever crashes on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks_threads import Thread, Work
from reasonblocks_threads.engine import Engine
from reasonblocks_threads.handlers import HANDLERS
from tests.threads.driver import AGENT, MARA, Driver


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


def works(driver: Driver) -> list[Work]:
    with driver.engine.store.read() as reading:
        return list(reading.works())


def below(driver: Driver, thread: Thread) -> list[str]:
    """Return the ids of all threads below one."""
    found: list[str] = []
    for child in driver.get(thread.id).children:
        found += [child.id, *below(driver, driver.get(child.id))]
    return found


@pytest.mark.parametrize(("way", "given"), [("dismiss", {}), ("take_over", {"to": "mara"})])
def test_the_end_of_a_parent_closes_everything_below_it(driver: Driver, way: str, given: dict[str, str]) -> None:
    eldest, *_ = family(driver, depth=3)
    driver.drain()
    getattr(driver.threads, way)(eldest.id, by=MARA, **given)
    driver.drain()
    ids = below(driver, eldest)
    assert len(ids) > 5
    assert {driver.phase(id) for id in ids} == {"dismissed"}
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
    driver.engine.set_suspect(driver.get(first))
    driver.threads.dismiss(parent.id, by=MARA)
    driver.drain()
    assert driver.phase(first) != "dismissed"
    assert driver.phase(last) == "dismissed"
    driver.engine.set_suspect(replace(driver.get(first), version=0))
    driver.clock.advance(60)
    driver.drain()
    assert driver.phase(first) == "dismissed"
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
        driver.engine.handlers = {**HANDLERS, **cascades}
        driver.threads.dismiss(eldest.id, by=MARA)
        driver.drain()
        return [(event.kind, event.seq, dict(event.data)) for event in driver.threads.feed()]


@given(repeats=st.lists(st.integers(1, 3), max_size=12))
@settings(max_examples=10, deadline=None)
def test_a_cascade_that_is_done_again_after_a_crash_changes_nothing_more(repeats: list[int]) -> None:
    assert ended(repeats) == ended([])
