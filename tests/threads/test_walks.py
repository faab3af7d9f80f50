"""The thirty golden walks: each from the opening to its end by commands alone, and killed at each of its commits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reasonblocks_threads import CardClosed, Phase, Thread, Threads
from tests.threads.checks import check, check_rest
from tests.threads.driver import MARA, Driver
from tests.threads.model import Matter
from tests.threads.statement import PHASES
from tests.threads.walks import WALKS, Walk, Walker
from tests.whole import WHOLE

ROOT = Path(__file__).parents[2]
KILLED = [(name,) for name in WALKS] if WHOLE else [("W3", "W26", "W28")]


@pytest.mark.parametrize("phase", PHASES)
def test_the_driver_reaches_every_phase_by_public_commands(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    assert thread.phase.value == phase
    check(driver, driver.replayed())


@pytest.mark.parametrize("name", WALKS)
def test_a_golden_walk_comes_to_its_end(driver: Driver, name: str) -> None:
    walker = Walker(driver, WALKS[name])
    matter = walker.go()
    assert matter.path == WALKS[name].moves
    EXTRA.get(name, nothing_more)(walker, matter)
    replay = driver.replayed()
    check(driver, replay)
    if matter.ended:
        driver.drain()
        check_rest(driver, replay)


def nothing_more(walker: Walker, matter: Matter) -> None:
    """A walk whose path says it all."""


def thread_of(walker: Walker) -> Thread:
    return walker.driver.get(walker.id)


def lines(walker: Walker, *kinds: str) -> list[dict[str, object]]:
    return [line["data"] for line in walker.driver.lines() if line["thread_id"] == walker.id and line["kind"] in kinds]


def the_card_states_the_refusal(walker: Walker, matter: Matter) -> None:
    (rejected,) = lines(walker, "inference_rejected")
    assert rejected["code"] == "budget"
    assert walker.driver.mind.asks == []


def the_timeout_has_a_reason(walker: Walker, matter: Matter) -> None:
    assert thread_of(walker).reason
    assert walker.driver.mind.asks == []


def only_the_action_is_asked_again(walker: Walker, matter: Matter) -> None:
    assert [ask.stage.value for ask in walker.driver.mind.asks] == ["intent", "context", "action", "action"]
    assert "another one" in {fact.text for fact in walker.driver.mind.asks[-1].facts}


def the_edited_parameters_ran(walker: Walker, matter: Matter) -> None:
    ((name, _, parameters),) = walker.driver.hands.calls
    assert (name, parameters["n"]) == ("tidy", 7)


def the_words_are_in_the_next_ask(walker: Walker, matter: Matter) -> None:
    assert "the database is slow" in {fact.text for fact in walker.driver.mind.asks[-1].facts}


def it_ran_once(walker: Walker, matter: Matter) -> None:
    assert len(walker.driver.hands.calls) == 1
    walker.driver.clock.advance(10_000)
    walker.driver.drain()
    assert len(walker.driver.hands.calls) == 1


def all_below_are_dismissed(walker: Walker, matter: Matter) -> None:
    walker.driver.drain()
    replay = walker.driver.replayed()
    below = [one for one in replay.matters.values() if walker.id in one.ancestors]
    assert len(below) == 1
    assert {one.phase for one in below} == {"dismissed"}


def the_card_is_withdrawn(walker: Walker, matter: Matter) -> None:
    driver = walker.driver
    card = f"{walker.id}.{max(n for n in range(matter.entered) if exists(driver, f'{walker.id}.{n}'))}"
    with pytest.raises(CardClosed) as closed:
        driver.threads.answer(card, "approve", by=MARA)
    assert (closed.value.by, closed.value.answer, closed.value.next_card) == (None, None, None)


def exists(driver: Driver, card: str) -> bool:
    with driver.store.read() as reading:
        return reading.card(card) is not None


def nothing_is_left_to_do(walker: Walker, matter: Matter) -> None:
    assert walker.driver.drain() == 0
    assert walker.driver.mind.asks == []
    assert thread_of(walker).phase is Phase.DISMISSED


EXTRA: dict[str, Callable[[Walker, Matter], None]] = {
    "W7": the_card_states_the_refusal,
    "W8": the_timeout_has_a_reason,
    "W12": only_the_action_is_asked_again,
    "W14": the_edited_parameters_ran,
    "W17": the_words_are_in_the_next_ask,
    "W21": it_ran_once,
    "W26": all_below_are_dismissed,
    "W29": the_card_is_withdrawn,
    "W30": nothing_is_left_to_do,
}


@pytest.mark.parametrize(("path", "code"), [("W7", "budget"), ("W8", "nobody")])
def test_the_card_after_a_missing_inference_says_why(driver: Driver, path: str, code: str) -> None:
    whole = WALKS[path]
    begun = Walk(" ".join(whole.path.split()[:4]), policy=whole.policy)
    walker = Walker(driver, begun)
    walker.go()
    assert code in driver.card(walker.id).problem


def test_an_action_that_nobody_can_run_asks_a_person(tmp_path: Path) -> None:
    with Driver(tmp_path / "threads.db") as driver:
        thread = driver.reach("executing")
        driver.clock.advance(1000)
        with Threads(driver.store, clock=driver.clock) as other:
            other.drain()
        assert driver.replayed().matters[thread.id].path[-1] == ("timeout", "awaiting_redirect")
        assert driver.card(thread.id).problem
        assert driver.hands.calls == []


def test_what_may_have_acted_is_not_repeated(driver: Driver) -> None:
    """Two rules forbid it: such an execution has one attempt, and a second one would not act."""
    thread = driver.answer(driver.reach_consent("touch", "die").id, "approve")
    assert driver.dies()
    for _ in range(10):
        driver.clock.advance(31)
        driver.drain()
    assert [id for _, id, _ in driver.hands.calls] == [f"{thread.id}.x{thread.entered}"]
    assert driver.get(thread.id).phase is Phase.AWAITING_REDIRECT
    assert driver.card(thread.id).problem


def test_a_result_that_comes_after_the_end_is_a_late_report(driver: Driver) -> None:
    thread = driver.until(driver.open().id, "awaiting_inference")
    driver.mind.during = lambda: driver.threads.dismiss(thread.id, by=MARA)
    driver.drain()
    kinds = [line["kind"] for line in driver.lines() if line["thread_id"] == thread.id]
    assert driver.get(thread.id).phase is Phase.DISMISSED
    assert kinds.count("late_report") == 1
    assert kinds[-2:] == ["phase_changed", "late_report"]
    assert driver.get(thread.id).spent.calls == 1, "the call was made, so it is booked"
    check_rest(driver, driver.replayed())


@pytest.mark.parametrize("names", KILLED, ids=" ".join)
def test_a_walk_killed_at_each_commit_comes_to_the_same_end(names: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.threads.walking", "all" if WHOLE else "half", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["walk"] for one in found] == [*names]
    for one in found:
        assert one["failed"] == [], done.stderr
        assert one["kills"] >= one["commits"] > 0
