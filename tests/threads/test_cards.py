"""Cards: each wait phase asks something that a person can answer, and no answer lacks a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reasonblocks_threads import Card, Cause, Phase, Policy, Proposal, Refused, Stage, Trigger
from reasonblocks_threads.cards import MANY_REDIRECTS, card_of, trigger_of
from reasonblocks_threads.catalogue import Catalogue
from reasonblocks_threads.phases import Addition
from reasonblocks_threads.policy import GateResult, judge
from reasonblocks_threads.render import render_text
from reasonblocks_threads.rules import Rules
from tests.threads.driver import Driver

WAITING = [phase for phase in Phase if phase.waits]
OFFERED: Mapping[str, str] = {
    "awaiting_intent_confirmation": "accept edit redirect take_over clean_up later dismiss",
    "awaiting_context_confirmation": "accept edit redirect take_over clean_up later dismiss",
    "awaiting_intent_clarification": "provide skip redirect take_over clean_up later",
    "awaiting_context_clarification": "provide skip redirect take_over clean_up later",
    "awaiting_action_clarification": "provide skip redirect take_over clean_up later",
    "awaiting_confirmation": "approve edit reject redirect take_over clean_up later dismiss",
    "awaiting_review": "done redirect drop take_over clean_up later",
    "awaiting_redirect": "provide skip redirect take_over clean_up later",
    "done_cleanup_unsuccessful": "retry accept_failure later dismiss",
}


def names(card: Card) -> list[str]:
    return [answer.name for answer in card.answers]


def rules_of(catalogue: Catalogue) -> Rules:
    return Rules(catalogue=catalogue, installation=Policy())


@pytest.mark.parametrize("phase", WAITING)
def test_every_wait_phase_has_a_card_that_can_be_shown_and_answered(phase: Phase, driver: Driver) -> None:
    thread = driver.reach(phase.value)
    card = driver.card(thread.id)
    assert card.id == f"{thread.id}.{thread.entered}"
    assert (card.phase, card.title, card.cause) == (phase, thread.cause.title, thread.cause.kind)
    assert names(card) == OFFERED[phase.value].split()
    shown = render_text(card)
    for answer in card.answers:
        assert answer.label
        assert f"  {answer.name} " in shown
        assert isinstance(trigger_of(card, answer.name), Trigger | Addition)
    assert card.expires_at is not None
    assert card.expires_at > card.opened_at


def test_a_consent_card_shows_the_action_as_it_would_run(driver: Driver) -> None:
    driver.mind.action, driver.mind.parameters = "here", {"thread_id": "th_of_somebody_else"}
    thread = driver.open(policy=Policy())
    thread = driver.until(thread.id, "awaiting_confirmation")
    card = driver.card(thread.id)
    assert card.action == "here"
    assert card.parameters == {"how": "ok", "n": 0, "thread_id": thread.id}
    assert card.checked
    assert card.risk
    assert card.risk.irreversibility == "low"
    assert (card.author, card.confidence) == (thread.proposals[Stage.ACTION].author, 0.9)
    approved = driver.answer(thread.id, "approve").approved
    assert approved
    assert (approved.hash, approved.parameters) == (card.hash, card.parameters)


def test_a_card_states_the_settled_stages_and_the_gates_that_ask(driver: Driver) -> None:
    card = driver.card(driver.reach("awaiting_confirmation").id)
    assert [stage for stage, text in card.passed if text] == [Stage.INTENT, Stage.CONTEXT]
    assert {failed.gate for failed in card.why_asking} == {"auto_advance", "auto"}
    low = driver.card(driver.reach("awaiting_intent_confirmation").id)
    assert [(failed.gate, failed.value, failed.limit) for failed in low.why_asking] == [
        ("confidence", "0.1", "at least 0.6")
    ]
    assert low.proposal.startswith("the intent of ")
    assert low.passed == ()


def test_a_card_says_what_went_wrong(driver: Driver) -> None:
    failed = driver.card(driver.reach("awaiting_intent_clarification").id)
    assert failed.problem
    redirect = driver.card(driver.reach("awaiting_redirect").id)
    assert redirect.report == "it does not work"
    assert (redirect.action, redirect.parameters["how"]) == ("plain", "fail")
    unclean = driver.card(driver.reach("done_cleanup_unsuccessful").id)
    assert "the source does not answer" in unclean.problem
    asked = driver.card(driver.reach("awaiting_action_clarification").id)
    assert asked.question == "What do you need?"
    assert "plain" in asked.actions


def test_a_review_shows_the_report_of_what_ran(driver: Driver) -> None:
    card = driver.card(driver.reach("awaiting_review").id)
    assert (card.action, card.report) == ("check", "check is done")


def test_an_action_that_cannot_run_is_not_offered_for_approval(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = card_of(thread, rules_of(Catalogue()), at=1.0, expires_at=2.0)
    assert card
    assert "there is no action 'plain'" in card.problem
    assert (card.hash, card.risk, card.checked) == (None, None, False)
    assert "approve" not in names(card)
    with pytest.raises(Refused):
        trigger_of(card, "approve")
    assert "not checked" in render_text(card)


def test_clean_up_is_offered_only_if_the_cause_has_a_cleaner(driver: Driver) -> None:
    thread = driver.open(cause=Cause(kind="other", key="o", title="Other"), policy=Policy())
    driver.mind.mood = {"intent": "low"}
    driver.until(thread.id, "awaiting_intent_confirmation")
    assert "clean_up" not in names(driver.card(thread.id))


def test_after_three_redirects_a_card_proposes_to_take_over_first(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    for count in range(MANY_REDIRECTS):
        assert names(driver.card(thread.id)) == OFFERED["awaiting_confirmation"].split(), count
        driver.answer(thread.id, "redirect", text="try again")
        driver.until(thread.id, "awaiting_confirmation")
    assert names(driver.card(thread.id))[:5] == ["approve", "edit", "reject", "take_over", "redirect"]
    assert driver.card(thread.id).redirects == MANY_REDIRECTS


def test_only_gates_that_did_not_pass_are_on_the_card(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    gates = judge(Stage.ACTION, Proposal.of_action("plain", {}, confidence=0.9), Policy(), preconditions=())
    passed = GateResult(gate="regret", passed=True, value="low", limit="at most low")
    card = card_of(thread, rules_of(Catalogue()), at=1.0, expires_at=None, gates=[*gates, passed])
    assert card
    assert [failed.gate for failed in card.why_asking] == [gate.gate for gate in gates if not gate.passed]


def test_fields_are_asked_for_where_an_answer_needs_them(driver: Driver) -> None:
    needed = {
        phase.value: {a.name: a.needs for a in driver.card(driver.reach(phase.value).id).answers if a.needs}
        for phase in WAITING
    }
    common = {"take_over": ("to",), "later": ("until",)}
    assert needed == {
        "awaiting_intent_confirmation": {"edit": ("text",), **common},
        "awaiting_context_confirmation": {"edit": ("text",), **common},
        "awaiting_intent_clarification": {"provide": ("text",), **common},
        "awaiting_context_clarification": {"provide": ("text",), **common},
        "awaiting_action_clarification": common,
        "awaiting_confirmation": common,
        "awaiting_review": common,
        "awaiting_redirect": {"provide": ("text",), **common},
        "done_cleanup_unsuccessful": {"later": ("until",)},
    }


def test_a_card_of_another_budget_shows_the_one_in_force(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    strict = replace(Policy(), budget=replace(Policy().budget, calls=5))
    card = card_of(thread, replace(rules_of(Catalogue()), ancestors=(strict,)), at=1.0, expires_at=None)
    assert card
    assert (card.budget.calls, card.spent) == (5, thread.spent)
