"""Inference: what an inferencer is asked, which answers are used, and what becomes of the others."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from reasonblocks_threads import (
    END_TO_END,
    Action,
    Ask,
    Budget,
    Cause,
    Evidence,
    Execution,
    Inferred,
    Policy,
    Proposal,
    Report,
    Stage,
    Thread,
)
from tests.threads.driver import MARA, problem_of
from tests.threads.faults import Killed
from tests.threads.world import SECRET, World, makes

CAUSE = Cause(kind="incident", key="disk", title="The disk of db-3 is full")


class Move(BaseModel):
    to: str
    n: int = 0


def even(given: Move, thread: Thread) -> str | None:
    return None if given.n % 2 == 0 else "n is odd"


class Mind:
    """An inferencer that answers from a script, the last entry for ever."""

    name = "scripted"

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asks: list[Ask] = []

    def infer(self, ask: Ask) -> Inferred:
        self.asks.append(ask)
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        found: Inferred = now(ask) if callable(now) else now
        return found


class Inferring(World):
    """Threads with a scripted inferencer and one action."""

    def __init__(self, *script: Any, policy: Policy = END_TO_END) -> None:
        self.mind, self.done = Mind(*script), list[Execution]()
        action = Action("move", Move, self._move, auto=True, preconditions=[even])
        super().__init__(actions=[action], inferencer=self.mind, policy=policy)

    def _move(self, given: Move, execution: Execution) -> Report:
        self.done.append(execution)
        return Report.ok("moved")

    def inferred(self, cause: Cause = CAUSE, **given: Any) -> Thread:
        return self.opened(cause, **given)


@pytest.fixture
def made() -> Iterator[Callable[..., Inferring]]:
    yield from makes(Inferring)


def proposal(stage: Stage, *, confidence: float = 0.9, **given: Any) -> Proposal:
    body: dict[str, Any] = (
        {"action": "move", "parameters": {"to": "/data2"}} if stage is Stage.ACTION else {"text": "t"}
    )
    return replace(Proposal(stage=stage, body=body, confidence=confidence), **given)


def good(ask: Ask) -> Inferred:
    return Inferred(proposals=(proposal(ask.stage),), tokens=100, usd=0.01)


def whole(ask: Ask) -> Inferred:
    return Inferred(proposals=tuple(proposal(stage) for stage in Stage), tokens=100, usd=0.01)


def raises(ask: Ask) -> Inferred:
    raise RuntimeError(f"the provider refused token={SECRET}")


def leaves(ask: Ask) -> Inferred:
    raise SystemExit(3)


def of(**given: Any) -> Callable[[Ask], Inferred]:
    return lambda ask: Inferred(proposals=(proposal(ask.stage, **given),))


BAD: dict[str, tuple[Any, str]] = {
    "raises": (raises, "RuntimeError"),
    "leaves": (leaves, "SystemExit"),
    "None": (None, "None"),
    "{}": ({}, "dict"),
    "nothing": (Inferred(proposals=()), "no proposal of the stage"),
    "no proposals": (Inferred(proposals=None), "proposals are None"),  # type: ignore[arg-type]
    "NaN": (of(confidence=math.nan), "confidence is nan"),
    "too sure": (of(confidence=1.5), "confidence is 1.5"),
    "a text as confidence": (of(confidence="high"), "confidence is high"),
    "True as confidence": (of(confidence=True), "confidence is True"),
    "empty": (of(body={}), "text is None"),
    "blank": (of(body={"text": "  "}), "text is empty"),
    "no body": (of(body=None), "body is None"),
    "unknown evidence": (of(refs=("e-nowhere",)), "evidence that does not exist: 'e-nowhere'"),
    "no refs": (of(refs=None), "refs are None"),
    "a number without end": (of(confidence=10**5000), "could not be checked: "),
    "another stage": (Inferred(proposals=(proposal(Stage.ACTION),)), "no proposal of the stage 'intent'"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_unusable_answer_is_repaired_once_then_a_failure_and_never_a_proposal(
    made: Callable[..., Inferring], name: str
) -> None:
    script, why = BAD[name]
    world = made(script)
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_clarification"
    assert thread.proposals == {}
    assert problem_of(thread).code in ("error", "invalid")
    assert why in problem_of(thread).text
    assert SECRET not in problem_of(thread).text
    assert len(world.mind.asks) == 2
    assert world.mind.asks[0].errors == ()
    assert why in world.mind.asks[1].errors[0]
    assert world.events(thread, "intent_inferred") == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"action": "rm_rf", "parameters": {}}, "there is no action 'rm_rf'"),
        ({"action": "move", "parameters": {"to": 3}}, "to:"),
        ({"action": "move", "parameters": {}}, "'to'"),
        ({"action": "move", "parameters": None}, "not an object"),
        ({"action": "move", "parameters": {"to": "x", "n": math.inf}}, "not an object"),
        ({"action": "move", "parameters": {"to": "x" * 5000}}, "bytes"),
        ({"question": " "}, "question is empty"),
        ({}, "there is no action"),
    ],
)
def test_an_action_that_cannot_run_is_no_proposal(
    made: Callable[..., Inferring], body: dict[str, Any], why: str
) -> None:
    world = made(good, good, of(body=body))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_action_clarification"
    assert why in problem_of(thread).text
    assert why in world.mind.asks[-1].errors[0]
    assert world.done == []


def test_a_repaired_answer_is_used_and_its_two_calls_are_one_cost(made: Callable[..., Inferring]) -> None:
    bad = Inferred(proposals=(), tokens=40, usd=0.001)
    world = made(bad, good, policy=Policy(auto_advance=frozenset()))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_confirmation"
    (event,) = world.events(thread, "intent_inferred")
    assert event["call"]["tokens"] == 140
    assert thread.spent.tokens == 140
    assert thread.spent.calls == 2


@pytest.mark.parametrize(("tokens", "usd"), [(math.nan, math.nan), (-5, -1.0), ("many", None), (True, math.nan)])
def test_a_cost_that_is_no_number_is_booked_as_nothing(made: Callable[..., Inferring], tokens: Any, usd: Any) -> None:
    answer = Inferred(proposals=(proposal(Stage.INTENT),), tokens=tokens, usd=usd)
    world = made(answer, policy=Policy(auto_advance=frozenset()))
    spent = world.inferred().spent
    assert (spent.calls, spent.tokens, spent.usd) == (1, 0, 0.0)


def test_a_cost_beyond_all_bounds_ends_the_budget(made: Callable[..., Inferring]) -> None:
    answer = Inferred(proposals=(proposal(Stage.INTENT),), tokens=10**400, usd=math.inf)
    thread = made(answer).inferred()
    assert thread.phase.value == "awaiting_context_clarification"
    assert problem_of(thread).code == "budget"


def test_a_text_that_no_file_can_hold_is_cleaned(made: Callable[..., Inferring]) -> None:
    answer = Inferred(proposals=(proposal(Stage.INTENT, body={"text": "a \ud800 b \x00 c"}),))
    thread = made(answer, policy=Policy(auto_advance=frozenset())).inferred()
    assert thread.phase.value == "awaiting_intent_confirmation"
    assert "\x00" not in str(thread.proposals[Stage.INTENT].body["text"])


def test_a_repair_is_not_made_beyond_the_budget(made: Callable[..., Inferring]) -> None:
    world = made(Inferred(proposals=()), policy=Policy(budget=Budget(calls=1)))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_clarification"
    assert len(world.mind.asks) == 1


# --- budget


@pytest.mark.parametrize("budget", [Budget(calls=0), Budget(tokens=0), Budget(usd=0.0), Budget(usd=math.nan)])
def test_without_budget_nobody_is_called_and_the_card_says_why(made: Callable[..., Inferring], budget: Budget) -> None:
    world = made(good, policy=Policy(budget=budget))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_clarification"
    assert world.mind.asks == []
    (event,) = world.events(thread, "inference_rejected")
    assert event["code"] == "budget"
    assert "0 calls, 0 tokens and 0.00 USD are used" in event["detail"]
    assert "budget" in world.card(thread).problem


def test_a_call_is_refused_once_the_budget_is_used(made: Callable[..., Inferring]) -> None:
    world = made(good, policy=Policy(budget=Budget(calls=2)))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_action_clarification"
    assert len(world.mind.asks) == 2
    assert "2 calls, 200 tokens and 0.02 USD are used" in world.events(thread, "inference_rejected")[0]["detail"]


# --- stored proposals


def test_proposals_given_at_open_are_used_without_a_call_and_each_gate_judges(made: Callable[..., Inferring]) -> None:
    world = made(raises, policy=replace(END_TO_END, budget=Budget(calls=0)))
    thread = world.inferred(proposals=[proposal(stage) for stage in Stage])
    assert thread.phase.value == "done"
    assert world.mind.asks == []
    assert [event["stage"] for event in world.events(thread, "gate_judged")] == ["intent", "context", "action"]
    assert thread.spent.calls == 0
    assert [(event["stored"], event["call"]) for event in world.events(thread, "intent_inferred")] == [(True, None)]


def test_a_persons_fact_outdates_stored_proposals_and_is_in_the_next_question(made: Callable[..., Inferring]) -> None:
    unsure = Inferred(proposals=(proposal(Stage.INTENT, confidence=0.1), proposal(Stage.CONTEXT)))
    world = made(unsure, good)
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_confirmation"
    after = world.answered(thread, "edit", text="Only free the disk, move nothing")
    assert after.phase.value == "done"
    assert [ask.stage for ask in world.mind.asks] == [Stage.INTENT, Stage.CONTEXT, Stage.ACTION]
    assert all("move nothing" in ask.facts[0].text for ask in world.mind.asks[1:])
    assert [each.stage for each in world.mind.asks[2].accepted] == [Stage.INTENT, Stage.CONTEXT]


def test_an_unusable_proposal_from_the_opening_is_a_question_with_its_fault(made: Callable[..., Inferring]) -> None:
    world = made(good)
    given = Proposal.of_action("move", {"n": 2}, confidence=0.9)
    world.inferred(proposals=[given])
    asked = [ask for ask in world.mind.asks if ask.stage is Stage.ACTION]
    assert "'to'" in asked[0].errors[0]


def test_an_answer_does_not_replace_what_the_opener_proposed(made: Callable[..., Inferring]) -> None:
    given = Proposal.of_action("move", {"to": "/opener"}, confidence=0.9)
    world = made(whole)
    world.inferred(proposals=[given])
    assert [execution.parameters["to"] for execution in world.done] == ["/opener"]


def test_proposals_of_later_stages_that_cannot_run_are_asked_for_anew(made: Callable[..., Inferring]) -> None:
    bad = proposal(Stage.ACTION, body={"action": "rm_rf", "parameters": {}})
    world = made(Inferred(proposals=(proposal(Stage.INTENT), proposal(Stage.CONTEXT), bad)), good)
    assert world.inferred().phase.value == "done"
    assert [ask.stage for ask in world.mind.asks] == [Stage.INTENT, Stage.ACTION]


# --- the question


def test_evidence_is_given_as_data_without_secrets_and_with_private_texts(made: Callable[..., Inferring]) -> None:
    evidence = (
        Evidence(id="e1", label="log", text=f"export API_KEY={SECRET}"),
        Evidence(id="e2", label="mail", text="the private text", private=True),
    )
    world = made(good)
    world.inferred(replace(CAUSE, evidence=evidence))
    found = {item.id: item.text for item in world.mind.asks[0].evidence}
    assert SECRET not in found["e1"]
    assert found["e2"] == "the private text"


def test_erased_evidence_is_marked(made: Callable[..., Inferring]) -> None:
    world = made(good, policy=Policy(auto_advance=frozenset()))
    private = Evidence(id="e2", label="mail", text="the private text", private=True)
    thread = world.inferred(replace(CAUSE, evidence=(private,)))
    world.threads.erase(thread.id, by=MARA)
    world.answered(thread, "redirect", text="look again")
    assert world.mind.asks[-1].evidence[0].text == "(erased)"


def test_the_catalogue_is_offered_with_what_is_not_available(made: Callable[..., Inferring]) -> None:
    world = made(good)
    world.inferred()
    offered = {each.name: each.unavailable for each in world.mind.asks[0].actions}
    assert offered["move"] is None
    assert offered["inject_guidance"] == "the thread has no run"


def test_a_redirected_proposal_is_shown_to_the_next_inference(made: Callable[..., Inferring]) -> None:
    world = made(good, policy=Policy())
    thread = world.inferred()
    assert thread.phase.value == "awaiting_confirmation"
    world.answered(thread, "redirect", text="to another disk")
    last = world.mind.asks[-1]
    assert last.stage is Stage.ACTION
    assert last.last is not None
    assert last.last.body["parameters"] == {"to": "/data2"}
    assert last.facts[-1].text == "to another disk"


def test_a_precondition_that_fails_asks_a_person(made: Callable[..., Inferring]) -> None:
    odd = {"action": "move", "parameters": {"to": "/data2", "n": 1}}
    world = made(good, good, of(body=odd))
    thread = world.inferred()
    assert thread.phase.value == "awaiting_confirmation"
    assert "preconditions" in {failed.gate for failed in world.card(thread).why_asking}
    assert world.done == []


# --- time


def test_a_slow_inferencer_is_given_up_and_its_late_answer_changes_nothing(made: Callable[..., Inferring]) -> None:
    release, finished = threading.Event(), threading.Event()

    def slow(ask: Ask) -> Inferred:
        world.clock.advance(61)
        release.wait(30)
        finished.set()
        return good(ask)

    world = made(slow)
    thread = world.inferred()
    assert thread.phase.value == "awaiting_intent_clarification"
    assert problem_of(thread).code == "deadline"
    assert thread.spent.calls == 1
    release.set()
    finished.wait(30)
    late = world.threads.wait(thread.id, timeout=30, until=lambda now: now.version > thread.version)
    assert late.phase is thread.phase
    assert late.proposals == {}
    last = world.threads.log(thread.id)[-1]
    assert last.kind == "late_report"
    assert str(last.data["detail"]).endswith("answered too late, for 100 tokens and 0.01 USD")


# --- lost workers


def dies(ask: Ask) -> Inferred:
    raise Killed


def after_deaths(world: Inferring, number: int = 1) -> Thread:
    """Return the thread whose inference has ended so many processes, after the lease of the last one."""
    for _ in range(number):
        with pytest.raises(Killed):
            world.inferred()
        world.clock.advance(61)
    world.threads.drain()
    (listed,) = world.threads.list()
    return world.threads.get(listed.id)


def test_an_inference_whose_process_died_is_made_and_booked_once_more(made: Callable[..., Inferring]) -> None:
    world = made(dies, good, policy=Policy(auto_advance=frozenset()))
    thread = after_deaths(world)
    assert thread.phase.value == "awaiting_intent_confirmation"
    assert len(world.events(thread, "inference_started")) == 1
    assert thread.spent.calls == len(world.mind.asks) == 2


def test_an_inference_that_kills_every_process_asks_a_person(made: Callable[..., Inferring]) -> None:
    world = made(dies)
    thread = after_deaths(world, 2)
    assert thread.phase.value == "awaiting_intent_clarification"
    assert problem_of(thread).code == "worker_lost"
    assert len(world.mind.asks) == 2
    assert (thread.spent.calls, thread.spent.tokens) == (2, 4_000), "each may have made its call"


def test_a_lost_call_counts_when_the_next_attempt_is_admitted(made: Callable[..., Inferring]) -> None:
    world = made(dies, good, policy=Policy(budget=Budget(calls=1)))
    thread = after_deaths(world)
    assert thread.phase.value == "awaiting_intent_clarification"
    assert problem_of(thread).code == "budget"
    assert len(world.mind.asks) == 1
    assert thread.spent.calls == 1
