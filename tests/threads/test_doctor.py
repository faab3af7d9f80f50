"""The doctor: each damage of a database is found, reported, and repaired; without damage there is nothing to find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks_threads import Finding, Phase, ReadOnly, Thread
from reasonblocks_threads.codec import head_json
from reasonblocks_threads.engine.doctor import Doctor
from reasonblocks_threads.phases import CATEGORIES
from reasonblocks_threads.values import NewWork
from tests.threads.checks import check
from tests.threads.driver import MARA, Driver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    """Threads in a file, which a test damages."""
    with Driver(tmp_path / "threads.db") as driver:
        yield driver


def kinds(findings: tuple[Finding, ...]) -> list[tuple[str, bool]]:
    return [(finding.kind, finding.repaired) for finding in findings]


def checked(driver: Driver, thread: Thread, kind: str) -> None:
    """Assert that the damage is reported, repaired, and then gone."""
    events = len(driver.threads.feed())
    assert kinds(driver.threads.doctor()) == [(kind, False)]
    assert len(driver.threads.feed()) == events
    assert kinds(driver.threads.doctor(repair=True)) == [(kind, True)]
    assert driver.threads.doctor() == ()
    if not driver.get(thread.id).phase.is_terminal:
        assert driver.threads.log(thread.id)[-1].kind == "reconciled"
    check(driver, driver.replayed(repairs=True))


@pytest.mark.parametrize("phase", CATEGORIES)
def test_every_phase_is_well(phase: Phase) -> None:
    with Driver() as driver:
        driver.reach(phase.value)
        assert driver.threads.doctor() == ()
        assert driver.threads.doctor(repair=True) == ()


@pytest.mark.parametrize("phase", ["proposed", "awaiting_inference", "inferring_intent", "executing", "cleaning_up"])
def test_a_missing_work_is_added(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    driver.damage("DELETE FROM work WHERE thread_id = ? AND kind <> 'timeout'", thread.id)
    checked(driver, thread, "work_missing")
    driver.mind.mood = {}
    driver.drain()
    assert driver.get(thread.id).phase.value != phase


@pytest.mark.parametrize("phase", ["proposed", "awaiting_inference", "awaiting_confirmation", "awaiting_review"])
def test_a_missing_timer_is_added(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    driver.damage("DELETE FROM work WHERE thread_id = ? AND kind = 'timeout'", thread.id)
    checked(driver, thread, "timer_missing")


def test_a_lost_timer_of_a_deferred_card_comes_after_it(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    until = driver.clock() + 30 * 86_400
    driver.answer(thread.id, "later", until=until)
    driver.damage("DELETE FROM work WHERE thread_id = ? AND kind = 'timeout'", thread.id)
    checked(driver, thread, "timer_missing")
    driver.clock.advance(29 * 86_400)
    driver.drain()
    assert driver.get(thread.id).phase is Phase.AWAITING_CONFIRMATION


@pytest.mark.parametrize(
    "phase", ["awaiting_intent_confirmation", "awaiting_action_clarification", "awaiting_redirect", "awaiting_review"]
)
def test_a_missing_card_is_shown_again(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    card = driver.card(thread.id)
    driver.damage("DELETE FROM card WHERE thread_id = ?", thread.id)
    driver.damage("UPDATE thread SET card = NULL WHERE id = ?", thread.id)
    checked(driver, thread, "card_missing")
    again = driver.card(thread.id)
    assert (again.id, again.answers, again.proposal) == (card.id, card.answers, card.proposal)
    assert driver.threads.answer(again, "take_over", by=MARA, to="lea").phase is Phase.HANDED_OFF


def test_a_lease_that_is_over_is_free_again(driver: Driver) -> None:
    thread = driver.reach("proposed")
    driver.claim()
    doctor = Doctor(driver.engine)
    assert doctor.visit(repair=False) == ()
    driver.clock.advance(31)
    assert kinds(doctor.visit(repair=False, whole=False)) == [("lease_over", False)]
    checked(driver, thread, "lease_over")
    driver.drain()
    assert driver.get(thread.id).phase is not Phase.PROPOSED


def test_a_parent_hears_of_children_that_have_ended(driver: Driver) -> None:
    parent = driver.reach("monitoring")
    for child in parent.children:
        driver.threads.dismiss(child.id, by=MARA)
    driver.damage("DELETE FROM work WHERE kind = 'cascade_up'")
    assert kinds(driver.threads.doctor()) == [("parent_waits", False)] * 2
    assert kinds(driver.threads.doctor(repair=True)) == [("parent_waits", True)] * 2
    assert driver.threads.doctor() == ()
    driver.drain()
    assert driver.get(parent.id).phase is Phase.DONE


def test_the_children_of_an_ended_parent_are_closed(driver: Driver) -> None:
    parent = driver.reach("monitoring")
    driver.threads.dismiss(parent.id, by=MARA)
    driver.damage("DELETE FROM work WHERE kind = 'cascade_down'")
    assert kinds(driver.threads.doctor()) == [("child_lives", False)]
    assert kinds(driver.threads.doctor(repair=True)) == [("child_lives", True)]
    driver.drain()
    assert [driver.get(child.id).phase for child in parent.children] == [Phase.DISMISSED] * 2
    assert driver.threads.doctor() == ()


def test_nothing_is_left_over_of_an_ended_thread(driver: Driver) -> None:
    thread = driver.reach("done")
    with driver.store.write([thread.id]) as writing:
        writing.add_works(thread.id, thread.entered, [NewWork(kind="infer", due_at=driver.clock())])
    checked(driver, thread, "leftover")


def test_the_card_of_an_ended_thread_is_withdrawn(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.dismiss(thread.id, by=MARA)
    driver.damage("UPDATE card SET state = 'open' WHERE id = ?", card.id)
    assert kinds(driver.threads.doctor(repair=True)) == [("leftover", True)]
    assert driver.threads.cards() == ()


def test_a_card_that_the_log_does_not_have_gives_way_to_the_right_one(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    right = driver.card(thread.id)
    driver.damage("UPDATE card SET id = 'stray', body = replace(body, ?, 'stray') WHERE id = ?", right.id, right.id)
    checked(driver, thread, "leftover")
    assert (driver.card(thread.id).id, driver.card(thread.id).hash) == (right.id, right.hash)


def test_a_card_outside_the_wait_phases_is_withdrawn(driver: Driver) -> None:
    asked, thread = driver.reach("awaiting_confirmation"), driver.reach("awaiting_inference")
    body = "replace(body, card.thread_id, ?)"
    driver.damage(
        f"INSERT INTO card SELECT 'stray', org_id, ?, run_id, opened_at, NULL, 'open', NULL, NULL, {body} FROM card "
        "WHERE thread_id = ? AND state = 'open'",
        thread.id, thread.id, asked.id,
    )  # fmt: skip
    driver.damage("UPDATE thread SET card = 'stray' WHERE id = ?", thread.id)
    checked(driver, thread, "leftover")
    (listed,) = [each for each in driver.threads.list() if each.id == thread.id]
    assert listed.card is None


def spoil_head(driver: Driver, thread: Thread, **changes: object) -> None:
    head = {**json.loads(head_json(thread)), **changes}
    driver.damage("UPDATE thread SET head = ? WHERE id = ?", json.dumps(head), thread.id)


def test_a_head_that_differs_is_read_only_until_it_is_folded_anew(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    spoil_head(driver, thread, reason="nobody wrote this")
    assert kinds(driver.threads.doctor()) == [("head_differs", False)]
    with pytest.raises(ReadOnly, match="doctor"):
        driver.answer(thread.id, "approve")
    assert kinds(driver.threads.doctor(repair=True)) == [("head_differs", True)]
    assert driver.get(thread.id).reason != "nobody wrote this"
    driver.answer(thread.id, "approve")


def test_a_head_of_another_fold_version_is_folded_anew(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    spoil_head(driver, thread, fold=999, reason="of another version")
    assert driver.get(thread.id) == thread
    driver.answer(thread.id, "approve")
    assert driver.threads.doctor() == ()


def test_a_visit_of_a_worker_folds_only_what_has_changed(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    doctor = Doctor(driver.engine)
    assert doctor.visit(repair=True, whole=False) == ()
    spoil_head(driver, thread, reason="nobody wrote this")
    assert doctor.visit(repair=True, whole=False) == ()
    driver.damage("DELETE FROM work WHERE thread_id = ? AND kind = 'timeout'", thread.id)
    found = doctor.visit(repair=True, whole=False)
    assert {finding.kind for finding in found} == {"head_differs", "timer_missing"}
