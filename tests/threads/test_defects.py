"""The defects of the design that threads learnt from: each has a test, which fails if it comes back.

Held elsewhere: D7 (every card is shown) by test_cards, D13 (the JSON of a policy) by test_policy, D20 (a late result)
and D25 (every phase is reached) by test_walks.
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_threads import Budget, CardClosed, Cause, Phase, Policy, Proposal, Refused, Stage, Threads, Trigger
from reasonblocks_threads.log import fold_all
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import Command, ExpectCard, ExpectPhase, ExpectWork, Thread
from tests.threads.checks import check, check_rest
from tests.threads.driver import ASK_ALL, END_TO_END, MARA, OPERATOR, Clock, Driver, Hands, Mind
from tests.threads.faults import Killed, Locked
from tests.threads.processes import others
from tests.threads.statement import PHASES, TERMINAL
from tests.whole import WHOLE

RACES = 300 if WHOLE else 30


def consent(driver: Driver, action: str = "plain", **parameters: object) -> Thread:
    """Return a thread that asks for consent to an action."""
    driver.mind.action, driver.mind.parameters, driver.mind.mood = action, dict(parameters), {}
    return driver.until(driver.open(policy=Policy()).id, "awaiting_confirmation")


def test_d01_a_refused_budget_asks_a_person(driver: Driver) -> None:
    thread = driver.open(policy=Policy(budget=Budget(calls=0)))
    driver.drain()
    assert driver.phase(thread.id) == "awaiting_intent_clarification"
    assert "budget" in driver.card(thread.id).problem
    assert driver.mind.asks == []


def test_d02_two_wirings_and_four_workers_run_an_action_once(tmp_path: Path) -> None:
    with Driver(tmp_path / "threads.db") as driver:
        thread = driver.answer(consent(driver, "touch").id, "approve")
        with Driver(tmp_path / "threads.db", clock=driver.clock, hands=driver.hands, mind=driver.mind) as other:
            workers = [threading.Thread(target=one.drain) for one in (driver, driver, other, other)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        assert driver.phase(thread.id) == "done"
        assert len(driver.hands.calls) == 1


def test_d03_an_action_that_asks_for_a_review_is_reviewed(driver: Driver) -> None:
    thread = driver.answer(consent(driver, "check").id, "approve")
    driver.drain()
    assert driver.phase(thread.id) == "awaiting_review"


def test_d04_the_risk_is_the_catalogues_whatever_a_proposal_says(driver: Driver) -> None:
    body = {"action": "ship", "parameters": {}, "risk": {"irreversibility": "low"}, "auto": True}
    proposal = Proposal(stage=Stage.ACTION, body=body, confidence=1.0)
    thread = driver.open(policy=END_TO_END, proposals=[proposal])
    driver.drain()
    assert driver.phase(thread.id) in ("awaiting_confirmation", "awaiting_action_clarification")
    assert driver.hands.calls == []
    card = driver.card(thread.id)
    if card.risk is not None:
        assert card.risk.irreversibility == "high"


def test_d05_an_old_hash_after_an_edit_is_refused(driver: Driver) -> None:
    thread = consent(driver, "plain", n=1)
    old = driver.card(thread.id)
    driver.answer(thread.id, "edit", parameters={"n": 2})
    new = driver.card(thread.id)
    assert old.hash != new.hash
    with pytest.raises(CardClosed):
        driver.threads.answer(old, "approve", by=MARA)
    for wrong in (old.hash, None, ""):
        command = Command(
            id=f"mine-{wrong}",
            thread_id=thread.id,
            trigger=Trigger.EXECUTE,
            expect=ExpectCard(card=new.id),
            actor=MARA,
            at=driver.clock(),
            data={"hash": wrong},
        )
        with pytest.raises(Refused):
            driver.submit(command)
    driver.answer(thread.id, "approve")
    driver.drain()
    assert [parameters["n"] for _, _, parameters in driver.hands.calls] == [2]


def test_d06_an_answer_to_children_is_an_ordinary_answer_to_each(driver: Driver) -> None:
    parent = driver.open(policy=Policy(), children=[driver.cause(name) for name in ("open", "closed", "denied")])
    ids = {driver.get(child.id).cause.key.rpartition("/")[2]: child.id for child in parent.children}
    driver.threads.dismiss(ids["closed"], by=MARA)
    driver.mind.text = lambda ask: "" if ask.thread_id == ids["denied"] else "it"
    driver.drain()
    assert driver.phase(ids["open"]) == "awaiting_confirmation"
    assert driver.phase(ids["denied"]) == "awaiting_intent_clarification"
    found = driver.threads.answer_children(parent.id, "approve", by=MARA)
    assert (found.applied, found.skipped, found.refused) == ((ids["open"],), (ids["closed"],), (ids["denied"],))
    assert driver.phase(ids["open"]) == "executing"


@pytest.mark.parametrize("end", TERMINAL)
def test_d08_each_end_of_the_last_child_releases_its_parent(driver: Driver, end: str) -> None:
    parent = driver.open(children=[driver.cause("one"), driver.cause("two")])
    first, last = (child.id for child in parent.children)
    driver.threads.dismiss(first, by=MARA)
    driver.mind.action = "plain"
    match end:
        case "dismissed":
            driver.threads.dismiss(last, by=MARA)
        case "handed_off":
            driver.threads.take_over(last, by=MARA, to="mara")
        case "done":
            driver.until(last, "awaiting_confirmation")
            driver.answer(last, "approve")
        case _:
            driver.until(last, "awaiting_confirmation")
            driver.answer(last, "clean_up")
    driver.drain()
    assert (driver.phase(last), driver.phase(parent.id)) == (end, "done")


def tree(driver: Driver) -> list[str]:
    """Open a thread with a child that has a child that has one. Return their ids from above."""
    ids = [driver.open("top").id]
    for name in ("middle", "low", "lowest"):
        ids.append(driver.open(name, parent=ids[-1]).id)
    return ids


def test_d09_the_end_of_a_thread_reaches_all_levels_below(tmp_path: Path) -> None:
    with Driver(tmp_path / "plain.db") as driver:
        tree(driver)
        before = driver.faults.commits
        driver.threads.dismiss(tree(driver)[0], by=MARA)
        driver.drain()
        commits = driver.faults.commits - before
    for at in range(1, commits + 1, 1 if WHOLE else 3):
        with Driver(tmp_path / f"{at}.db") as driver:
            ids = tree(driver)
            driver.faults.at = driver.faults.commits + at
            try:
                driver.threads.dismiss(ids[0], by=MARA)
                driver.drain()
            except Killed:
                pass
            with driver.again() as after:
                after.clock.advance(31)
                after.drain()
                replay = after.replayed()
                check_rest(after, replay)
                assert {one.phase for one in replay.matters.values()} == {"dismissed"}, f"killed at {at}"


def test_d10_one_answer_for_three_stages_leaves_no_call_behind(driver: Driver) -> None:
    driver.mind.mood, driver.mind.action = {"intent": "ahead"}, "plain"
    thread = driver.until(driver.open(policy=Policy()).id, "awaiting_confirmation")
    assert len(driver.mind.asks) == 1
    kinds = Counter(line["kind"] for line in driver.lines())
    assert kinds["gate_judged"] == 3
    check(driver, driver.replayed())
    assert driver.drain() == 0
    assert driver.phase(thread.id) == "awaiting_confirmation"


def test_d11_the_fold_of_a_log_is_its_head_in_every_phase(driver: Driver) -> None:
    for name in PHASES:
        thread = driver.reach(name)
        assert fold_all(driver.threads.log(thread.id)) == driver.get(thread.id)


@pytest.mark.parametrize(
    "at", ["awaiting_intent_confirmation", "awaiting_context_confirmation", "awaiting_confirmation"]
)
def test_d12_a_redirect_to_the_intent_asks_for_the_intent(driver: Driver, at: str) -> None:
    thread = driver.reach(at)
    driver.mind.asks.clear()
    driver.mind.mood = {}
    driver.answer(thread.id, "redirect", stage=Stage.INTENT, text="something else")
    driver.drain()
    assert driver.mind.asks[0].stage is Stage.INTENT


def test_d14_a_parent_that_was_tightened_makes_its_child_ask(driver: Driver) -> None:
    driver.mind.action = "tidy"
    parent = driver.open(policy=END_TO_END, children=[driver.cause()])
    (child,) = parent.children
    driver.threads.set_policy(parent.id, ASK_ALL, by=MARA)
    driver.drain()
    assert driver.phase(child.id) == "awaiting_intent_confirmation"
    driver.threads.set_policy(child.id, ASK_ALL, by=MARA)
    with pytest.raises(Refused):
        driver.threads.set_policy(child.id, END_TO_END, by=OPERATOR)


def test_d15_a_lock_does_not_end_the_worker() -> None:
    clock = Clock()
    store = Locked(open_store(None))
    with Threads(store, clock=clock, actions=Hands(clock).catalogue(), inferencer=Mind()) as threads:
        cause = Cause(kind="stall", key="one", title="One")
        thread = threads.open(cause, proposals=[Proposal.of_action("plain", {}, confidence=0.9)])
        store.locked = 10
        with threads.worker():
            found = threads.wait(thread.id, 30, until=lambda thread: thread.phase is Phase.AWAITING_CONFIRMATION)
        assert store.locked == 0
        assert found.phase is Phase.AWAITING_CONFIRMATION
    store.close()


def test_d16_a_command_without_an_expectation_is_refused(driver: Driver) -> None:
    thread = consent(driver)
    given: dict[str, Any] = {"id": "x", "thread_id": thread.id, "trigger": Trigger.REJECTED, "actor": MARA, "at": 0.0}
    for nothing in (None, "", ExpectCard, 0):
        with pytest.raises(ValueError, match="expects"):
            Command(expect=nothing, **given)  # type: ignore[arg-type]
    for empty in (
        lambda: ExpectCard(card=""),
        lambda: ExpectWork(work="", lease="a"),
        lambda: ExpectWork(work="a", lease=""),
    ):
        with pytest.raises(ValueError, match="expects"):
            Command(expect=empty(), **given)
    with pytest.raises(Refused):
        driver.submit(Command(expect=ExpectPhase(phase=thread.phase, entered=thread.entered), **given))
    assert driver.phase(thread.id) == "awaiting_confirmation"


@pytest.mark.parametrize("mood", ["raise", "nothing", "nan", "unknown evidence"])
@pytest.mark.parametrize("stage", ["intent", "context", "action"])
def test_d17_an_error_of_the_inferencer_asks_a_person(driver: Driver, mood: str, stage: str) -> None:
    driver.mind.mood = {stage: mood}
    thread = driver.open(policy=END_TO_END)
    driver.drain()
    assert driver.phase(thread.id) == f"awaiting_{stage}_clarification"
    assert driver.card(thread.id).problem
    assert driver.hands.calls == []
    assert driver.get(thread.id).spent.calls > 0, "a call that failed costs too"


def test_d18_a_name_outside_the_catalogue_is_never_called(driver: Driver) -> None:
    thread = driver.open(policy=END_TO_END, proposals=[Proposal.of_action("os.system", {"n": 1}, confidence=1.0)])
    driver.drain()
    assert driver.card(thread.id).action != "os.system"
    assert driver.card(thread.id).kind in ("consent", "clarification")
    asking = driver.reach("awaiting_action_clarification")
    with pytest.raises(Refused):
        driver.answer(asking.id, "provide", action="os.system", parameters={})
    driver.drain()
    assert driver.hands.calls == []


def test_d19_of_two_answers_at_the_same_time_one_wins(tmp_path: Path) -> None:
    with Driver(tmp_path / "threads.db", policy=Policy()) as driver:
        driver.mind.action = "plain"
        cards = [driver.card(consent(driver).id).id for _ in range(RACES)]
        wins: Counter[str] = Counter()
        with others(tmp_path / "threads.db", 2) as (one, two):
            for card in cards:
                one.tell("answer", card, "approve")
                two.tell("answer", card, "reject")
                results = sorted([one.hear(), two.hear()])
                assert results in (["CardClosed", "executing"], ["CardClosed", "dismissed"])
                wins.update(results)
        assert wins["CardClosed"] == RACES
        check(driver, driver.replayed())


def test_d21_a_second_click_never_answers_the_next_card(driver: Driver) -> None:
    thread = driver.reach("awaiting_context_confirmation")
    card = driver.card(thread.id)
    driver.mind.mood = {}
    driver.threads.answer(card, "accept", by=MARA)
    driver.until(thread.id, "awaiting_confirmation")
    with pytest.raises(CardClosed) as closed:
        driver.threads.answer(card, "accept", by=MARA)
    assert (closed.value.by, closed.value.answer) == ("mara", "accept")
    assert closed.value.next_card == driver.card(thread.id).id
    assert driver.hands.calls == []


def test_d22_one_call_for_three_stages_is_booked_once(driver: Driver) -> None:
    driver.mind.mood = {"intent": "ahead"}
    thread = driver.open(policy=Policy())
    driver.drain()
    spent = driver.get(thread.id).spent
    assert (spent.calls, spent.tokens, spent.usd) == (1, driver.mind.tokens, driver.mind.usd)


@pytest.mark.parametrize(
    ("at", "what"),
    [
        ("awaiting_intent_clarification", "provide"),
        ("awaiting_intent_confirmation", "edit"),
        ("awaiting_confirmation", "redirect"),
        ("awaiting_redirect", "provide"),
    ],
)
def test_d23_what_a_person_says_is_in_the_next_ask(driver: Driver, at: str, what: str) -> None:
    thread = driver.reach(at)
    driver.mind.asks.clear()
    driver.mind.mood = {}
    driver.answer(thread.id, what, text="it is the network")
    driver.drain()
    assert driver.mind.asks
    assert all("it is the network" in {fact.text for fact in ask.facts} for ask in driver.mind.asks)


def test_d24_words_to_a_question_are_no_action(driver: Driver) -> None:
    thread = driver.reach("awaiting_action_clarification")
    driver.mind.asks.clear()
    driver.mind.mood = {}
    driver.answer(thread.id, "provide", text="restart it")
    assert driver.phase(thread.id) == "awaiting_inference"
    driver.drain()
    assert [ask.stage for ask in driver.mind.asks] == [Stage.ACTION]
    assert driver.card(thread.id).action == "plain"
