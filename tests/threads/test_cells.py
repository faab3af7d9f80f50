"""Every cell of the table is walked by public commands, and every trigger that a phase lacks is refused there."""

from __future__ import annotations

import pytest

from reasonblocks_threads import Budget, Phase, Policy, Thread, Threads, Trigger
from reasonblocks_threads.errors import InvalidTrigger
from reasonblocks_threads.values import SYSTEM, Command, Expect, ExpectCard, ExpectPhase
from tests.threads.checks import check
from tests.threads.driver import MARA, Driver
from tests.threads.statement import CARDS, CELLS, EARLIEST, HUMAN, PHASES, TERMINAL, answers
from tests.threads.walks import ANSWERS


@pytest.mark.parametrize(("phase", "trigger"), CELLS, ids=map(" ".join, CELLS))
def test_a_cell_leads_where_the_statement_says(driver: Driver, phase: str, trigger: str) -> None:
    driver.parent = driver.open("above").id
    thread = reach(driver, phase, trigger)
    before = driver.get(thread.id)
    assert before.phase.value == phase
    pull(driver, thread, trigger)
    replay = driver.replayed()
    check(driver, replay)
    moves = [
        (line["data"]["trigger"], line["data"]["to"])
        for line in driver.lines()
        if line["thread_id"] == thread.id and line["kind"] == "phase_changed" and line["seq"] > before.version
    ]
    assert moves[0][0] == trigger
    assert moves[0][1] in CELLS[phase, trigger]


def reach(driver: Driver, phase: str, trigger: str) -> Thread:
    if (phase, trigger) == ("executing", "execution_failed"):
        return driver.answer(driver.reach_consent("plain", "fail").id, "approve")
    thread = driver.reach(phase)
    if phase == "awaiting_inference" and trigger == "inference_rejected":
        driver.threads.set_policy(thread.id, Policy(budget=Budget(calls=0)), by=MARA)
    return thread


def pull(driver: Driver, thread: Thread, trigger: str) -> None:
    """Do what a person, the system or the time does so that a trigger moves a thread."""
    phase, threads = thread.phase.value, driver.threads
    driver.mind.mood = dict.fromkeys(("intent", "context", "action"), "raise") if trigger == "inference_failed" else {}
    driver.broom.works = trigger != "cleanup_failed"
    if trigger in HUMAN and phase in CARDS:
        what, given = ANSWERS[trigger]
        offered = answers(phase, cleaner=True)
        if (phase, trigger) == ("awaiting_confirmation", "edited"):
            given = {"parameters": {"n": 5}}
        driver.answer(
            thread.id, what if what in offered else {t: name for name, t in offered.items()}[trigger], **given
        )
    elif trigger == "dismissed_by_user":
        threads.dismiss(thread.id, by=MARA)
    elif trigger == "handed_off_by_user":
        threads.take_over(thread.id, by=MARA, to="mara")
    elif trigger == "source_resolved":
        threads.resolve(thread.id, "it is over")
    elif trigger == "decomposed":
        driver.open("below", parent=thread.id)
    elif trigger == "timeout":
        driver.clock.advance(max(1000.0, EARLIEST.get(phase, 0)))
        if phase == "proposed":  # a process dies with the work that would begin it
            driver.faults.at = driver.faults.commits + 1
            assert driver.dies()
        with Threads(driver.store, clock=driver.clock) as other:  # it cannot infer, act or clean up
            other.drain()
    else:
        if trigger == "parent_force_close":
            threads.dismiss(driver.parent or "", by=MARA)
        for child in thread.children if trigger == "execution_done" else ():
            threads.dismiss(child.id, by=MARA)
        for _ in range(20):
            if driver.get(thread.id).phase.value != phase:
                break
            driver.clock.advance(0 if driver.drain(limit=1) else 10)


@pytest.mark.parametrize("phase", PHASES)
def test_a_trigger_that_a_phase_lacks_is_refused_and_moves_nothing(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    lines = driver.lines()
    for trigger in Trigger:
        if (phase, trigger.value) in CELLS:
            continue
        human = trigger.value in HUMAN
        expect: Expect = ExpectPhase(phase=thread.phase, entered=thread.entered)
        if human and phase in CARDS:
            expect = ExpectCard(card=driver.card(thread.id).id)
        command = Command(
            id=f"mine-{trigger.value}",
            thread_id=thread.id,
            trigger=trigger,
            expect=expect,
            actor=MARA if human else SYSTEM,
            at=driver.clock(),
        )
        with pytest.raises(InvalidTrigger) as refused:
            driver.submit(command)
        assert refused.value.phase is Phase(phase)
        assert {*refused.value.possible} == {possible for start, possible in CELLS if start == phase}
    assert driver.lines() == lines
    assert (phase in TERMINAL) == (not [cell for cell in CELLS if cell[0] == phase])
    check(driver, driver.replayed())
