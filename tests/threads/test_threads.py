"""`Threads`: opening, answering, looking, waiting, and the settings."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import reasonblocks_threads
from reasonblocks.exceptions import ConfigError
from reasonblocks_threads import (
    HANDS_OFF,
    PLAN_THEN_REVIEW,
    Action,
    Actor,
    Cause,
    Evidence,
    Phase,
    Policy,
    Proposal,
    Refused,
    Report,
    Stage,
    Thread,
    Threads,
    UnknownCard,
    UnknownThread,
)
from tests.threads.driver import ASK_ALL, END_TO_END, MARA, OPERATOR, Driver, Mind

SECONDS = 20.0


def ids(driver: Driver, **filters: Any) -> list[str]:
    return [listed.id for listed in driver.threads.list(**filters)]


# --- opening


def test_the_same_key_is_the_same_thread(driver: Driver) -> None:
    first = driver.threads.open(Cause(kind="k", key="one", title="first"))
    again = driver.threads.open(Cause(kind="k", key="one", title="second"), by=MARA)
    assert again == first
    assert len(driver.threads.feed()) == 1


def test_of_a_family_one_thread_is_live(driver: Driver) -> None:
    first = driver.threads.open(driver.cause("one", family="stall"))
    evidence = Evidence(id="e1", label="step 4", text="the same call again")
    assert driver.threads.open(driver.cause("two", family="stall", evidence=(evidence,))).id == first.id
    assert driver.get(first.id).evidence == (evidence,)
    driver.threads.dismiss(first.id, by=MARA)
    third = driver.threads.open(driver.cause("three", family="stall"))
    assert third.id != first.id
    assert third.phase is Phase.PROPOSED


def test_organisations_see_only_their_own(tmp_path: Path) -> None:
    with Threads(tmp_path / "t.db", org_id="a") as ours, Threads(tmp_path / "t.db", org_id="b") as theirs:
        cause = Cause(kind="k", key="same key", title="t")
        mine, other = ours.open(cause), theirs.open(cause)
        assert mine.id != other.id
        theirs.drain()
        assert [thread.id for thread in ours.list()] == [mine.id]
        assert ours.get(mine.id).phase is Phase.PROPOSED
        [card] = theirs.cards()
        assert ours.cards() == ()
        assert {event.thread_id for event in ours.feed()} == {mine.id}
        with pytest.raises(UnknownThread):
            ours.get(other.id)
        with pytest.raises(UnknownThread):
            ours.dismiss(other.id, by=MARA)
        with pytest.raises(UnknownThread):
            ours.open(Cause(kind="k", key="new", title="t"), parent=other.id)
        with pytest.raises(UnknownCard):
            ours.answer(card.id, "dismiss", by=MARA)
        assert ours.doctor() == ()


def test_a_child_can_be_added_below_a_parent(driver: Driver) -> None:
    parent = driver.open()
    first = driver.threads.open(driver.cause(), parent=parent.id)
    second = driver.threads.open(driver.cause(), parent=parent.id)
    now = driver.get(parent.id)
    assert now.phase is Phase.MONITORING
    assert [child.id for child in now.children] == [first.id, second.id]
    assert (second.parent, second.ancestors) == (parent.id, (parent.id,))
    assert ids(driver, parent=parent.id) == [second.id, first.id]
    assert ids(driver, parent=parent.id, limit=1) == [second.id]


def test_a_child_has_a_part_of_the_budget(driver: Driver) -> None:
    parent = driver.threads.open(driver.cause(), children=[driver.cause(), driver.cause()])
    budgets = [driver.get(child.id).policy.budget for child in parent.children]
    assert [budget.calls for budget in budgets] == [4, 4]


def test_unknown_relatives_are_refused(driver: Driver) -> None:
    for relative in ("parent", "supersedes"):
        with pytest.raises(UnknownThread):
            driver.threads.open(driver.cause(), **{relative: "th_nowhere"})  # type: ignore[arg-type]
    assert driver.threads.feed() == ()


# --- answering


@pytest.mark.parametrize(
    ("phase", "what", "given", "why"),
    [
        ("awaiting_confirmation", "accept", {}, "offers: approve"),
        ("awaiting_confirmation", "approve", {"text": "go"}, "takes no 'text'"),
        ("awaiting_confirmation", "edit", {}, "edit"),
        ("awaiting_confirmation", "take_over", {}, "needs 'to'"),
        ("awaiting_confirmation", "later", {"until": 1.0}, "later time"),
        ("awaiting_confirmation", "later", {"until": "tomorrow"}, "in seconds since the epoch"),
        ("awaiting_confirmation", "later", {"until": float("nan")}, "later time"),
        ("awaiting_intent_confirmation", "edit", {}, "needs 'text'"),
        ("awaiting_intent_confirmation", "redirect", {"stage": "action"}, "action"),
        ("awaiting_action_clarification", "provide", {}, "needs one of"),
        ("awaiting_redirect", "provide", {"text": "x" * 2_001}, "2,000"),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(
    driver: Driver, phase: str, what: Any, given: dict[str, Any], why: str
) -> None:
    thread = driver.reach(phase)
    card = driver.card(thread.id)
    with pytest.raises(Refused, match=why):
        driver.threads.answer(card, what, by=MARA, **given)
    assert driver.get(thread.id) == thread
    assert driver.card(thread.id) == card


def test_the_id_of_a_thread_is_no_id_of_a_card(driver: Driver) -> None:
    with pytest.raises(UnknownCard, match="a card's id ends with a number"):
        driver.threads.answer(driver.reach("awaiting_confirmation").id, "approve", by=MARA)


def test_a_stage_that_does_not_exist_is_named(driver: Driver) -> None:
    card = driver.card(driver.reach("awaiting_confirmation").id)
    with pytest.raises(ConfigError, match="did you mean 'intent'"):
        driver.threads.answer(card, "redirect", by=MARA, stage="intnt")


def test_a_phase_that_does_not_exist_is_named(driver: Driver) -> None:
    with pytest.raises(ConfigError, match="did you mean 'done'"):
        driver.threads.list(phase="dome")


def test_evidence_of_another_type_is_named(driver: Driver) -> None:
    thread = driver.reach("proposed")
    with pytest.raises(ConfigError, match="must be Evidence"):
        driver.threads.add_evidence(thread.id, "the log")  # type: ignore[arg-type]
    assert driver.get(thread.id) == thread


def test_unknown_cards_and_threads_are_named(driver: Driver) -> None:
    with pytest.raises(UnknownCard, match=r"cards\(\)"):
        driver.threads.answer("th_nowhere.3", "approve", by=MARA)
    with pytest.raises(UnknownThread, match=r"list\(\)"):
        driver.threads.get("th_nowhere")


def test_a_card_says_who_closed_it(driver: Driver) -> None:
    thread = driver.reach("awaiting_action_clarification")
    card = driver.card(thread.id)
    assert (driver.threads.card(card.id).state, driver.threads.card(card.id).by) == ("open", None)
    driver.threads.answer(card, "skip", by=MARA)
    closed = driver.threads.card(card.id)
    assert (closed.state, closed.by, closed.answer) == ("answered", "mara", "skip")


def test_later_hides_the_card_and_moves_its_timer(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card, day = driver.card(thread.id), 86_400.0
    until = driver.clock() + 10 * day
    after = driver.answer(thread.id, "later", until=until)
    assert (after.phase, after.deferred_until) == (thread.phase, until)
    assert driver.threads.cards() == ()
    [hidden] = driver.threads.cards(deferred=True)
    assert (hidden.id, hidden.deferred_until) == (card.id, until)
    driver.clock.advance(10 * day)
    driver.drain()
    [shown] = driver.threads.cards()
    assert shown.id == card.id
    assert shown.expires_at == (card.expires_at or 0) + 10 * day
    driver.clock.advance(6.9 * day)
    driver.drain()
    assert driver.get(thread.id).phase is Phase.AWAITING_CONFIRMATION
    driver.clock.advance(0.2 * day)
    driver.drain()
    assert driver.get(thread.id).phase is Phase.DISMISSED


def test_a_hidden_card_can_be_put_off_again_and_answered(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    before = driver.card(thread.id).expires_at or 0.0
    for hours in (1, 3, 2):
        driver.answer(thread.id, "later", until=driver.clock() + hours * 3_600)
    card = driver.card(thread.id)
    assert (card.deferred_until, card.expires_at) == (driver.clock() + 2 * 3_600, before + 3 * 3_600)
    assert driver.answer(thread.id, "approve").phase is Phase.EXECUTING


def test_evidence_is_shown_on_the_open_card(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.add_evidence(thread.id, Evidence(id="e1", label="log", text="it recovered"), run="ended")
    now = driver.card(thread.id)
    assert (now.id, now.hash, now.run) == (card.id, card.hash, "ended")
    assert [each.text for each in now.evidence] == ["it recovered"]
    assert driver.threads.answer(card, "approve", by=MARA).phase is Phase.EXECUTING


@pytest.mark.parametrize("phase", ["proposed", "awaiting_inference", "awaiting_confirmation", "monitoring"])
def test_a_thread_can_be_dismissed_or_taken_over(driver: Driver, phase: str) -> None:
    dismissed = driver.threads.dismiss(driver.reach(phase).id, by=MARA, reason="not needed")
    assert (dismissed.phase, dismissed.reason) == (Phase.DISMISSED, "not needed")
    taken = driver.threads.take_over(driver.reach(phase).id, by=MARA, to="lea")
    assert taken.phase is Phase.HANDED_OFF


def test_a_person_closes_the_open_card_by_dismissing(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.dismiss(thread.id, by=MARA)
    closed = driver.threads.card(card.id)
    assert (closed.by, closed.answer) == ("mara", "dismiss")


def test_a_running_action_is_asked_to_stop(driver: Driver) -> None:
    thread = driver.reach("executing")
    with pytest.raises(Refused):
        driver.threads.dismiss(thread.id, by=MARA)
    cancelled = driver.threads.cancel(thread.id, by=MARA)
    assert cancelled.execution is not None
    assert cancelled.execution.cancel_requested
    driver.drain()
    assert driver.hands.calls == []
    assert driver.get(thread.id).phase is Phase.AWAITING_REDIRECT


def test_nothing_that_does_not_run_is_cancelled(driver: Driver) -> None:
    with pytest.raises(Refused, match="dismiss the thread"):
        driver.threads.cancel(driver.reach("proposed").id, by=MARA)


def test_anyone_tightens_a_policy_and_an_operator_loosens_it(driver: Driver) -> None:
    thread = driver.open()
    tight = driver.threads.set_policy(thread.id, ASK_ALL, by=MARA)
    assert tight.policy == ASK_ALL
    with pytest.raises(Refused, match="operator"):
        driver.threads.set_policy(thread.id, END_TO_END, by=MARA)
    assert driver.threads.set_policy(thread.id, END_TO_END, by=OPERATOR).policy == END_TO_END
    events = len(driver.threads.log(thread.id))
    driver.threads.set_policy(thread.id, END_TO_END, by=MARA)
    assert len(driver.threads.log(thread.id)) == events


def test_notes_are_possible_after_the_end(driver: Driver) -> None:
    thread = driver.reach("done")
    noted = driver.threads.note(thread.id, "it held", by=MARA)
    assert noted.phase is Phase.DONE
    assert driver.threads.log(thread.id, after=thread.version)[0].data["text"] == "it held"


def test_an_approval_of_another_hash_is_refused(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    with pytest.raises(Refused):
        driver.threads.answer(replace(driver.card(thread.id), hash="another"), "approve", by=MARA)
    assert driver.get(thread.id) == thread


# --- looking and waiting


def test_the_feed_goes_on_where_it_was_left(driver: Driver) -> None:
    driver.reach("awaiting_confirmation")
    whole = driver.threads.feed()
    assert driver.threads.feed(limit=3) + driver.threads.feed(after=whole[2].position or 0) == whole


def test_wait_returns_at_its_timeout(driver: Driver) -> None:
    thread = driver.open()
    assert driver.threads.wait(thread.id, 0.0) == thread
    assert driver.threads.wait(thread.id, 0.02) == thread


@pytest.mark.parametrize("phase", ["awaiting_review", "awaiting_redirect", "done_cleanup_unsuccessful", "done"])
def test_wait_returns_once_the_action_has_ended_whatever_a_person_is_still_asked(driver: Driver, phase: str) -> None:
    thread = driver.reach(phase)
    found: list[Thread] = []
    waiting = threading.Thread(target=lambda: found.append(driver.threads.wait(thread.id, 1e6)), daemon=True)
    waiting.start()
    waiting.join(SECONDS)
    assert found == [thread]


@pytest.mark.parametrize("phase", ["awaiting_confirmation", "awaiting_intent_clarification", "monitoring"])
def test_wait_does_not_return_while_an_action_runs_or_may_come(driver: Driver, phase: str) -> None:
    assert not driver.reach(phase).phase.action_has_ended


def test_wait_returns_with_the_answer_of_another_thread(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    begun = threading.Event()

    def until(now: Thread) -> bool:
        begun.set()
        return now.phase is Phase.DISMISSED

    def answer() -> None:
        assert begun.wait(SECONDS)
        driver.answer(thread.id, "dismiss")

    answering = threading.Thread(target=answer)
    answering.start()
    assert driver.threads.wait(thread.id, SECONDS, until=until).phase is Phase.DISMISSED
    answering.join()


def _dismiss(file: str, id: str) -> None:
    with Threads(file) as threads:
        threads.dismiss(id, by=Actor.person("another process"))


def test_wait_sees_what_another_process_does(tmp_path: Path) -> None:
    file = str(tmp_path / "t.db")
    with Threads(file) as threads:
        thread = threads.open(Cause(kind="k", key="k", title="t"))
        process = multiprocessing.get_context("spawn").Process(target=_dismiss, args=(file, thread.id))
        process.start()
        assert threads.wait(thread.id, SECONDS).phase is Phase.DISMISSED
        process.join()


# --- settings


class Nothing(BaseModel):
    pass


def _action(name: str) -> Action:
    return Action(name, Nothing, lambda given, execution: Report.ok())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"actions": [_action("ship"), _action("ship")]}, "two actions"),
        ({"actions": [_action("hand_off")]}, "built-in"),
        ({"actions": ["ship"]}, "must be Actions"),
        ({"policy": "end_to_end"}, "PLAN_THEN_REVIEW"),
        ({"inferencer": "gpt"}, "infer"),
        ({"cleaners": [object()]}, "clean_up"),
        ({"notifier": print}, "notify"),
        ({"org_id": ""}, "not empty"),
        ({"clock": 5}, "function"),
        ({"database": 5}, "path"),
        ({"database": ":memory:"}, "None for one in memory"),
        ({"database": ""}, "path"),
        ({"database": "mysql://user:secret@host/name"}, r"'mysql://\.\.\.': must be a path, a postgresql:// URL"),
        ({"database": "nowhere/at/all/threads.db"}, "create the folder"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Threads(**{"database": None, **settings})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cause": "stall"}, "Cause"),
        ({"proposals": [{"stage": "action"}]}, "Proposal"),
        ({"policy": {}}, "Policy"),
        ({"by": "mara"}, "Actor"),
        ({"children": ["part"]}, "Cause"),
    ],
)
def test_arguments_of_another_type_are_named(driver: Driver, given: dict[str, Any], why: str) -> None:
    arguments: dict[str, Any] = {"cause": driver.cause(), **given}
    with pytest.raises(ConfigError, match=why):
        driver.threads.open(arguments.pop("cause"), **arguments)
    assert driver.threads.feed() == ()


def test_a_proposal_that_cannot_be_stored_is_refused(driver: Driver) -> None:
    for proposal in (
        Proposal.of_intent("go", confidence=float("nan")),
        Proposal(stage=Stage.INTENT, body={"text": object()}, confidence=0.5),
    ):
        with pytest.raises(Refused):
            driver.threads.open(driver.cause("one"), proposals=[proposal])
    assert driver.threads.feed() == ()


def test_the_default_file_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    with Threads() as threads:
        threads.open(Cause(kind="k", key="k", title="t"))
    assert (tmp_path / "home" / "threads.db").exists()


def test_a_process_without_an_inferencer_keeps_that_of_the_agents(tmp_path: Path) -> None:
    with Driver(tmp_path / "t.db") as agent, Threads(tmp_path / "t.db", clock=agent.clock) as console:
        thread = console.open(agent.cause())
        console.drain()
        assert console.get(thread.id).phase is Phase.AWAITING_INFERENCE
        agent.drain()
        assert console.get(thread.id).phase is Phase.AWAITING_CONFIRMATION


def test_the_policy_of_the_installation_holds_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    with Threads(file, policy=HANDS_OFF) as app, Threads(file) as console:
        thread = app.open(Cause(kind="k", key="one", title="t"))
        console.drain()
        assert app.get(thread.id).phase is Phase.AWAITING_INTENT_CONFIRMATION
        own = Policy(auto_advance=frozenset({Stage.INTENT}))
        with Threads(file, policy=own) as newest:
            second = newest.open(Cause(kind="k", key="two", title="t"))
            assert second.policy == own
        console.drain()
        assert console.get(second.id).phase is Phase.AWAITING_CONTEXT_CONFIRMATION
        third = app.open(Cause(kind="k", key="three", title="t"))
        assert third.policy == HANDS_OFF
        console.drain()
        assert console.get(third.id).phase is Phase.AWAITING_INTENT_CONFIRMATION


def test_an_organisation_has_no_offers_of_another(tmp_path: Path) -> None:
    file, theirs = tmp_path / "t.db", Mind()
    with Threads(file, org_id="b") as ours:
        Threads(file, org_id="a", actions=[_action("theirs")], policy=END_TO_END, inferencer=theirs).close()
        thread = ours.open(Cause(kind="k", key="one", title="t"))
        ours.drain()
        (card,) = ours.cards()
    assert thread.policy == PLAN_THEN_REVIEW
    assert card.stage is Stage.ACTION, "no inference waits for an inferencer that the organisation does not have"
    assert "acknowledge" in card.actions
    assert "theirs" not in card.actions


def test_every_public_name_can_be_loaded() -> None:
    for name in reasonblocks_threads.__all__:
        assert getattr(reasonblocks_threads, name) is not None
    assert {*dir(reasonblocks_threads)} >= {*reasonblocks_threads.__all__}
    with pytest.raises(AttributeError, match="Thread_"):
        reasonblocks_threads.Thread_  # noqa: B018
