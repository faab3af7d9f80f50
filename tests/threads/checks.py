"""The invariants of a store of threads: its heads, cards and works are those that the slow model has of the logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasonblocks_threads.log import fold_all
from reasonblocks_threads.ports import Reading
from reasonblocks_threads.values import Thread
from tests.threads import statement
from tests.threads.driver import CAUSE_KIND, IDEMPOTENT, Driver
from tests.threads.model import Matter, Replay
from tests.threads.statement import CARDS, WORKS

NEWEST = 64
"""Pieces of evidence in a head."""


def check(driver: Driver, replay: Replay, *, only_changed: bool = False) -> None:
    """Replay what is new in the feed, and compare every thread with its rows, or those with new lines."""
    new = driver.lines(after=replay.position)
    replay.take_all(new)
    changed = {line["thread_id"] for line in new} if only_changed else {*replay.matters}
    with driver.store.read() as reading:
        for matter in (replay.matters[id] for id in changed):
            check_head(reading, matter)
            check_card(reading, matter)
            check_works(reading, matter)
    check_executions(driver, replay)


def check_head(reading: Reading, matter: Matter) -> None:
    head = reading.head(matter.id)
    assert head is not None
    assert head == fold_all(reading.log(matter.id)), f"the head of {matter.id} is not the fold of its log"
    assert seen(head) == {
        "phase": matter.phase,
        "stage": matter.stage,
        "version": matter.version,
        "entered": matter.entered,
        "parent": matter.parent,
        "ancestors": matter.ancestors,
        "children": matter.children,
        "rule": matter.rule,
        "redirects": matter.redirects,
        "calls": matter.spent[0],
        "tokens": matter.spent[1],
    }
    assert {*matter.facts} <= {fact.text for fact in head.facts}, "a head forgot a fact"
    assert [one.id for one in head.evidence] == matter.evidence[-NEWEST:][-len(head.evidence) :]
    for stage, proposal in head.proposals.items():
        assert proposal.body == matter.proposals[stage.value]["body"], (
            f"the {stage.value} of {matter.id} is not the newest"
        )


def seen(head: Thread) -> dict[str, Any]:
    children: Mapping[str, str | None] = {one.id: one.ended and one.ended.value for one in head.children}
    return {
        "phase": head.phase.value,
        "stage": head.stage.value,
        "version": head.version,
        "entered": head.entered,
        "parent": head.parent,
        "ancestors": head.ancestors,
        "children": children,
        "rule": head.rule,
        "redirects": head.redirects,
        "calls": head.spent.calls,
        "tokens": head.spent.tokens,
    }


def check_card(reading: Reading, matter: Matter) -> None:
    card = reading.open_card(matter.id)
    if matter.phase not in CARDS:
        assert card is None, f"{matter.id} is {matter.phase} with an open card"
        return
    assert card is not None, f"{matter.id} is {matter.phase} without a card"
    assert (card.id, card.thread_id, card.kind) == (f"{matter.id}.{matter.entered}", matter.id, CARDS[matter.phase])
    assert (card.phase.value, card.stage.value, card.title) == (matter.phase, matter.stage, matter.title)
    offered = {answer.name for answer in card.answers}
    expected = {*statement.answers(matter.phase, cleaner=card.cause == CAUSE_KIND), "later"}
    assert offered in (expected, expected - {"approve"}), (matter.phase, offered, expected)
    if "approve" in offered:
        assert card.hash
        assert card.action == matter.proposals["action"]["body"]["action"]


def check_works(reading: Reading, matter: Matter) -> None:
    kinds = sorted(work.kind for work in reading.works(matter.id))
    expected = [WORKS[matter.phase]] if matter.phase in WORKS else []
    if matter.ended:
        assert {*kinds} <= {"cascade_up", "cascade_down"}, f"{matter.id} has ended with {kinds}"
    else:
        timers = [] if matter.phase == "monitoring" else ["timeout"]
        assert [kind for kind in kinds if kind != "notify"] == sorted(expected + timers), f"{matter.phase}: {kinds}"


def check_executions(driver: Driver, replay: Replay) -> None:
    """Every call of an action was approved as it ran, and what is not idempotent ran once at most."""
    started = {id: run for matter in replay.matters.values() for id, run in matter.executions.items()}
    for name, id, parameters in driver.hands.calls:
        assert id in started, f"{name} ran without a line in the log"
        assert name == started[id]["action"]
        assert {key: parameters[key] for key in started[id]["parameters"]} == started[id]["parameters"]
    ran = [id for name, id, _ in driver.hands.calls if name not in IDEMPOTENT]
    assert len(ran) == len({*ran}), "an action that is not idempotent ran twice"
    for matter in replay.matters.values():
        assert {run["hash"] for run in matter.executions.values()} <= {*matter.approvals}


def check_rest(driver: Driver, replay: Replay) -> None:
    """At rest, when no work is due, every thread has ended, asks somebody, or waits for children that do."""
    check(driver, replay)
    for matter in replay.matters.values():
        above = replay.matters.get(matter.parent or "")
        assert matter.ended or above is None or not above.ended, f"{matter.id} is open below {above}"
        waits = matter.phase == "monitoring" and None in matter.children.values()
        assert matter.ended or matter.phase in CARDS or waits, f"{matter.id} is stuck in {matter.phase}"
        for child, end in matter.children.items():
            if not matter.ended:
                assert (end is not None) == replay.matters[child].ended, f"{matter.id} does not know the end of {child}"


def check_asks(driver: Driver, replay: Replay) -> None:
    """Every text that a person gave before is in each ask. Call it after each command: asks are forgotten then."""
    for ask in driver.mind.asks:
        missing = {*replay.matters[ask.thread_id].facts} - {fact.text for fact in ask.facts}
        assert not missing, f"an ask about {ask.thread_id} without {missing}"
    driver.mind.asks.clear()
