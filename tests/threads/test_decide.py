"""Decisions: guards choose the phase, refusals state what was wrong, and a terminal absorbs everything."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from reasonblocks_threads.catalogue import Catalogue
from reasonblocks_threads.codec import encode, head_json
from reasonblocks_threads.errors import InvalidTrigger, Refused
from reasonblocks_threads.log.limits import HEAD_BYTES
from reasonblocks_threads.phases import HUMAN, STAGES, Addition, Phase, Stage, Trigger, inferring
from reasonblocks_threads.policy import END_TO_END, HANDS_OFF, PLAN_THEN_REVIEW, policy_json
from reasonblocks_threads.rules import Rules
from reasonblocks_threads.table import CARD_KINDS, CELLS
from reasonblocks_threads.values import SYSTEM, Actor, Budget, Cause, Policy, Proposal, Report, thread_id_of
from tests.threads.pure import AGENT, CHILDREN, MARA, OPERATOR, RULES, Walk, given, reached, walk_cause
from tests.whole import QUICK_EXAMPLES, WHOLE

EXAMPLES = 600 if WHOLE else 2 * QUICK_EXAMPLES
STEPS = 20
LIVE = [phase for phase in Phase if not phase.is_terminal]
ENDS = {Phase.DISMISSED, Phase.HANDED_OFF, Phase.CLEANING_UP}
POLICIES = [HANDS_OFF, PLAN_THEN_REVIEW, END_TO_END]


def kinds(events: Any) -> list[str]:
    return [event.kind for event in events]


def who(trigger: Trigger | Addition) -> Actor:
    return MARA if trigger in HUMAN or trigger is Addition.DEFER else SYSTEM


# --- the random walk: every guard stays in the table, and a refusal changes nothing

WORDS = ["try again", "", "x" * 3_000, "é\ud800\0"]


def data_of(walk: Walk, chance: Random) -> dict[str, Any]:
    """Data for a command, mostly such as the engine sends, sometimes not."""
    head = walk.head
    stage = chance.choice(STAGES)
    confidence = chance.choice([0.9, 0.6, 0.1, 0.0, None])
    actions = [given(Stage.ACTION, action=name) for name in ("deploy", "tidy", "check", "nobody's")]
    action = chance.choice([*actions, Proposal.of_question("which service?")])
    proposals = [encode(each) for each in (given(Stage.INTENT), given(Stage.CONTEXT), action)]
    report = Report(
        succeeded=chance.random() < 0.7, partial=chance.random() < 0.3, summary="it ran",
        disposition=chance.choice(["completed", "completed", "handed_off", "decomposed"]),
    )  # fmt: skip
    child = chance.choice(head.children).id if head.children else "th_none"
    hashes = ["0" * 32, *([walk.bound().hash] if "action" in action_body(walk) and is_bound(walk) else [])]
    return {
        "work": "w",
        "code": "failed",
        "detail": "no answer",
        "proposals": [{**each, "confidence": confidence} for each in proposals],
        "call": chance.choice([None, {"id": f"call{walk.sent}", "tokens": 5, "usd": 0.01}]),
        "stored": chance.random() < 0.2,
        "preconditions": chance.choice([[], None, [{"name": "p", "ok": False, "detail": "no"}]]),
        "execution": head.execution.id if head.execution else "x",
        "report": encode(report),
        "children": CHILDREN,
        "rule": chance.choice(["all_of", "alternatives"]),
        "child": child,
        "phase": chance.choice([phase.value for phase in Phase if phase.is_terminal]),
        "reason": chance.choice(WORDS),
        "text": chance.choice(WORDS),
        "feedback": chance.choice(WORDS),
        "redirect_to": chance.choice([None, stage.value]),
        "action": chance.choice([None, None, "tidy", "nobody's"]),
        "parameters": chance.choice([None, {"service": "db"}, {"version": "no"}]),
        "hash": chance.choice([hashes[-1], hashes[-1], hashes[0]]),
        "deadline_at": walk.now + 60,
        "to": chance.choice(["olga", ""]),
        "items": [{"id": f"e{walk.sent}", "label": "l", "text": "t"}],
        "until": walk.now + chance.choice([-5.0, 60.0]),
        "policy": policy_json(chance.choice([HANDS_OFF, PLAN_THEN_REVIEW, END_TO_END])),
        "what": "inference",
    }


def action_body(walk: Walk) -> Any:
    proposal = walk.head.proposals.get(Stage.ACTION)
    return proposal.body if proposal else {}


def is_bound(walk: Walk) -> bool:
    body = action_body(walk)
    return not isinstance(walk.rules.catalogue.bind(body["action"], body["parameters"], walk.head), str)


@settings(max_examples=EXAMPLES, deadline=None)
@drawn(seed=st.integers(0, 2**32), phase=st.sampled_from(LIVE))
def test_any_commands_keep_every_rule_of_a_thread(seed: int, phase: Phase) -> None:
    walk, chance = reached(phase), Random(seed)
    walk.send(Addition.POLICY, {"policy": policy_json(chance.choice(POLICIES))}, by=OPERATOR)
    for _ in range(STEPS):
        trigger = chance.choice(likely(walk, chance.random()))
        step(walk, trigger, data_of(walk, chance), AGENT if chance.random() < 0.02 else who(trigger))
    walk.check()
    assert len(head_json(walk.head).encode()) <= HEAD_BYTES


def likely(walk: Walk, chance: float) -> list[Trigger | Addition]:
    """The triggers that lead on from the present phase; seldom those that end the thread, or any."""
    here = {trigger: targets for (phase, trigger), targets in CELLS.items() if phase is walk.phase}
    on = [trigger for trigger, targets in here.items() if not {*targets} <= ENDS]
    if chance < 0.1:
        return [*Trigger, *Addition]
    return [*here, Addition.NOTE] if chance < 0.2 else [*on, Addition.EXECUTION_STARTED]


def step(walk: Walk, trigger: Trigger | Addition, data: dict[str, Any], actor: Actor) -> None:
    before, entered = walk.head, walk.head.phase
    try:
        events = walk.send(trigger, data, by=actor)
    except Refused as exc:
        refusal = exc
    else:
        moved_on(walk, trigger, events, entered, actor)
        assert len(walk.head.facts) >= len(before.facts)
        return
    assert walk.head is before
    lacking = isinstance(trigger, Trigger) and (entered, trigger) not in CELLS
    assert isinstance(refusal, InvalidTrigger) is lacking


def moved_on(walk: Walk, trigger: Trigger | Addition, events: Any, entered: Phase, actor: Actor) -> None:
    """Check the events of an accepted command, and the rows and the thread after them."""
    moved = [event for event in events if event.kind == "phase_changed"]
    if moved:
        assert [events[-1]] == moved
        assert isinstance(trigger, Trigger)
        assert walk.phase in CELLS[entered, trigger]
        assert (trigger in HUMAN) == actor.is_human
    else:
        assert walk.phase is entered
        assert isinstance(trigger, Addition) or trigger is Trigger.EXECUTION_DONE
    if entered.is_terminal:
        assert {*kinds(events)} <= {"noted", "late_report", "work_dead", "reconciled"}
    rows = walk.rows
    assert (rows.card is not None) == (bool(moved) and walk.phase in CARD_KINDS)
    if walk.phase is Phase.EXECUTING:
        assert walk.head.approved is not None
        assert walk.head.execution is not None
        assert walk.head.execution.hash == walk.head.approved.hash


# --- opening


def test_a_key_of_another_thread_is_refused() -> None:
    walk = Walk()
    walk.id, walk.thread = thread_id_of("org", "other"), None
    with pytest.raises(Refused, match="belongs to the thread"):
        walk.send(Addition.OPEN, {"org_id": "org", "cause": encode(walk_cause())}, by=AGENT)


@pytest.mark.parametrize(
    "cause", [walk_cause(kind=""), walk_cause(run_id="x" * 201), walk_cause(family="a\0"), walk_cause(run_id="\ud800")]
)
def test_names_that_a_store_could_not_hold_are_refused(cause: Cause) -> None:
    with pytest.raises(Refused, match="1 to 200 characters"):
        Walk(cause=encode(cause))


def test_a_persons_long_title_is_refused_and_an_agents_is_cut() -> None:
    walk = Walk(cause=encode(walk_cause(title="t" * 300)))
    assert walk.head.cause.title == "t" * 199 + "…"
    walk.thread = None
    with pytest.raises(Refused, match="300 characters; at most 200"):
        walk.send(Addition.OPEN, {"org_id": "org", "cause": encode(walk_cause(title="t" * 300))}, by=MARA)


def test_a_thread_without_a_policy_has_the_installations() -> None:
    assert Walk(policy=END_TO_END).head.policy == END_TO_END
    walk = Walk(rules=replace(RULES, installation=PLAN_THEN_REVIEW, ancestors=(HANDS_OFF,)))
    opening: Any = {"org_id": "org", "cause": encode(walk_cause())}
    walk.thread = None
    walk.send(Addition.OPEN, opening, by=AGENT)
    assert walk.head.policy == HANDS_OFF


def test_a_childs_looser_policy_is_refused_at_opening() -> None:
    with pytest.raises(Refused, match="an ancestor, but it is in auto_advance"):
        Walk(policy=END_TO_END, rules=replace(RULES, ancestors=(HANDS_OFF,)))


@pytest.mark.parametrize("confidence", [float("nan"), 1.5, -0.1, "high"])
def test_a_proposal_with_an_unreadable_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(Refused, match="confidence"):
        Walk(proposals=[{**encode(given(Stage.INTENT)), "confidence": confidence}])


def test_an_agent_cannot_propose_in_a_persons_name() -> None:
    walk = Walk(proposals=[{**encode(given(Stage.INTENT)), "author": "person"}])
    assert walk.head.proposals[Stage.INTENT].author == "agent"


# --- who may do it


@pytest.mark.parametrize("trigger", sorted(HUMAN))
def test_a_humans_trigger_is_refused_to_agents_and_the_system(trigger: Trigger) -> None:
    phase = next(phase for phase, each in CELLS if each is trigger)
    walk = reached(phase)
    for actor in (AGENT, SYSTEM):
        with pytest.raises(Refused, match="only a person"):
            walk.send(trigger, by=actor)


@pytest.mark.parametrize("trigger", sorted({*Trigger} - HUMAN))
def test_a_systems_trigger_is_refused_to_persons_and_agents(trigger: Trigger) -> None:
    walk = reached(next(phase for phase, each in CELLS if each is trigger))
    for actor in (AGENT, MARA, OPERATOR):
        with pytest.raises(Refused, match="only the system"):
            walk.send(trigger, by=actor)


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "a\0", "\ud800"])
def test_an_actor_needs_a_name_that_can_be_stored(name: str) -> None:
    with pytest.raises(Refused, match="actor's name"):
        reached(Phase.AWAITING_CONFIRMATION).send(Trigger.REJECTED, by=Actor.person(name))


def test_a_trigger_that_the_phase_lacks_names_those_that_it_has() -> None:
    with pytest.raises(InvalidTrigger, match="begin_inference, decomposed, timeout") as caught:
        Walk().send(Trigger.EXECUTE, by=MARA)
    assert caught.value.phase is Phase.PROPOSED


# --- advance


def at_action(policy: Policy = END_TO_END, rules: Rules = RULES) -> Walk:
    walk = Walk(policy=policy, rules=rules)
    walk.send(Trigger.BEGIN_INFERENCE)
    return walk.infer().infer()


def test_an_action_that_passes_every_gate_runs_with_nobody_asked() -> None:
    walk = at_action().infer(given(Stage.ACTION, action="tidy"))
    assert walk.phase is Phase.EXECUTING
    approved = walk.head.approved
    assert approved is not None
    assert (approved.auto, approved.by, approved.parameters["service"]) == (True, "policy", "web")


def test_an_action_whose_parameters_this_process_cannot_check_asks() -> None:
    described = Rules(catalogue=Catalogue(specs=RULES.catalogue.specs, own={}), installation=END_TO_END)
    walk = at_action(rules=described).infer(given(Stage.ACTION, action="tidy"))
    assert walk.phase is Phase.AWAITING_CONFIRMATION
    assert walk.rows.card is not None
    assert not walk.rows.card.checked


@pytest.mark.parametrize("action", ["nobody's", ""])
def test_an_unknown_action_asks_and_cannot_be_approved(action: str) -> None:
    walk = at_action().infer(given(Stage.ACTION, action=action))
    assert walk.phase is Phase.AWAITING_CONFIRMATION
    assert walk.rows.card is not None
    assert walk.rows.card.hash is None
    with pytest.raises(Refused, match="edit it, or redirect it"):
        walk.send(Trigger.EXECUTE, {"hash": "0" * 32}, by=MARA)


@pytest.mark.parametrize("stage", [Stage.INTENT, Stage.CONTEXT])
def test_only_the_proposal_of_an_action_asks_a_question(stage: Stage) -> None:
    walk = reached(inferring(stage))
    proposal = Proposal(stage=stage, body={"text": "it is slow", "question": "which service?"}, confidence=0.9)
    walk.send(Trigger.INFERENCE_DONE, {"proposals": [encode(proposal)]})
    assert walk.head.unreadable is None
    assert walk.phase is Phase(f"awaiting_{stage.value}_confirmation")


@pytest.mark.parametrize(
    "proposals", [[], [given(Stage.CONTEXT)], [given(Stage.INTENT)] * 2, [{"stage": "intent", "body": {}}], [None]]
)
def test_an_inference_without_one_proposal_of_its_stage_is_refused(proposals: Any) -> None:
    walk = reached(Phase.INFERRING_INTENT)
    plain = [encode(each) if isinstance(each, Proposal) else each for each in proposals]
    with pytest.raises(Refused):
        walk.send(Trigger.INFERENCE_DONE, {"proposals": plain})
    assert walk.phase is Phase.INFERRING_INTENT


def test_a_deeply_nested_or_huge_action_is_refused() -> None:
    nested: Any = "web"
    for _ in range(500):
        nested = [nested]
    for value, why in ((nested, "nested"), ("x" * 3_000, "at most 3,000")):
        walk = reached(Phase.INFERRING_ACTION)
        body = {"action": "deploy", "parameters": {"service": value}}
        with pytest.raises(Refused, match=why):
            walk.send(Trigger.INFERENCE_DONE, {"proposals": [{"stage": "action", "body": body, "confidence": 0.9}]})


# --- budget


def test_a_spent_budget_refuses_the_start_of_an_inference_but_no_stored_proposal() -> None:
    rules = replace(RULES, installation=replace(END_TO_END, budget=Budget(calls=0)))
    walk, stored = Walk(rules=rules), Walk(rules=rules, proposals=[encode(given(Stage.INTENT))])
    for each in (walk, stored):
        each.send(Trigger.BEGIN_INFERENCE)
    with pytest.raises(Refused, match="submit inference_rejected"):
        walk.send(Trigger.INFERENCE_STARTED, {"work": "w"})
    stored.send(Trigger.INFERENCE_STARTED, {"work": "w"})
    assert stored.phase is Phase.INFERRING_INTENT


# --- consent


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "changes nothing"),
        ({"action": "nobody's", "parameters": {}}, "nobody's"),
        ({"parameters": {"version": "no"}}, "version"),
        ({"parameters": {"volume": 1}}, "volume"),
        ({"action": "tidy"}, "service"),
        ({"parameters": {"service": "x" * 4_000}}, "at most 3,000"),
        ({"parameters": {"service": float("nan")}}, "JSON"),
        ({"parameters": [1]}, "not an object"),
    ],
)
def test_an_edit_that_could_not_run_is_refused_and_states_why(data: dict[str, Any], why: str) -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    before = walk.head
    with pytest.raises(Refused, match=why):
        walk.send(Trigger.EDITED, data, by=MARA)
    assert walk.head is before


def test_an_edited_action_becomes_a_fact() -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    walk.send(Trigger.EDITED, {"parameters": {"version": 2}, "text": "the old one leaks"}, by=MARA)
    assert [fact.text for fact in walk.head.facts] == ['the old one leaks (deploy: {"version": 2})']


def test_a_picked_action_is_asked_about_and_words_alone_infer_anew() -> None:
    walk = reached(Phase.AWAITING_ACTION_CLARIFICATION)
    with pytest.raises(Refused, match="needs the parameter"):
        walk.send(Trigger.PROVIDED, {"action": "deploy", "parameters": {}}, by=MARA)
    data = {"action": "deploy", "parameters": {"service": "db"}, "text": "db, not web"}
    events = walk.send(Trigger.PROVIDED, data, by=MARA)
    assert kinds(events) == ["provided", "picked", "phase_changed"]
    assert walk.phase is Phase.AWAITING_CONFIRMATION
    assert walk.head.proposals[Stage.ACTION].author == "person"


@pytest.mark.parametrize(
    ("phase", "data", "why"),
    [
        (Phase.AWAITING_INTENT_CLARIFICATION, {"action": "deploy"}, "takes only text"),
        (Phase.AWAITING_INTENT_CLARIFICATION, {}, "needs the field 'text'"),
        (Phase.AWAITING_INTENT_CLARIFICATION, {"text": "x" * 2_001}, "2,001 characters; at most 2,000"),
        (Phase.AWAITING_ACTION_CLARIFICATION, {"parameters": {"service": "web"}}, "name of their action"),
        (Phase.AWAITING_ACTION_CLARIFICATION, {"text": "x", "redirect_to": "intent"}, "use redirect"),
        (Phase.AWAITING_REDIRECT, {"action": "deploy"}, "takes only text"),
    ],
)
def test_an_answer_that_does_not_fit_its_card_is_refused(phase: Phase, data: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        reached(phase).send(Trigger.PROVIDED, data, by=MARA)


# --- redirect


@pytest.mark.parametrize("stage", STAGES)
def test_a_redirect_drops_the_proposals_from_its_stage_on(stage: Stage) -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    data = {"redirect_to": stage.value, "feedback": "no", "keep": {"version": 2}}
    walk.send(Trigger.REDIRECTED, data, by=MARA)
    assert (walk.phase, walk.head.stage) == (Phase.AWAITING_INFERENCE, stage)
    assert [*walk.head.proposals] == [*STAGES[: STAGES.index(stage)]]
    assert [fact.text for fact in walk.head.facts] == ['no (keep: {"version": 2})']
    assert walk.head.redirects == 1
    assert walk.head.last is not None
    assert walk.head.last.stage is stage


def test_words_on_the_redirect_card_lead_back_to_their_stage_and_void_the_approval() -> None:
    walk = reached(Phase.AWAITING_REDIRECT)
    walk.send(Trigger.PROVIDED, {"text": "it is not web", "redirect_to": "context"}, by=MARA)
    assert (walk.head.stage, [*walk.head.proposals]) == (Stage.CONTEXT, [Stage.INTENT])
    assert walk.head.approved is None
    assert walk.head.problem is not None, "the next inference learns why the last execution failed"


# --- executions


def test_an_execution_is_started_once_with_the_approved_hash() -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION).execute()
    execution = walk.head.execution
    assert execution is not None
    data = {"execution": execution.id, "hash": execution.hash, "deadline_at": 5_000.0}
    for wrong in ({"execution": "x"}, {"hash": "0" * 32}):
        with pytest.raises(Refused):
            walk.send(Addition.EXECUTION_STARTED, {**data, **wrong})
    with pytest.raises(Refused, match="was not started"):
        walk.finish(Report.ok())
    assert kinds(walk.send(Addition.EXECUTION_STARTED, data)) == ["execution_started"]
    assert walk.send(Addition.EXECUTION_STARTED, data) == ()
    assert walk.head.attempt == 1


@pytest.mark.parametrize(
    ("action", "report", "phase"),
    [
        ("tidy", Report.ok(), Phase.DONE),
        ("tidy", Report.ok(partial=True), Phase.AWAITING_REVIEW),
        ("check", Report.ok(), Phase.AWAITING_REVIEW),
        ("deploy", Report.ok(), Phase.AWAITING_REVIEW),
        ("deploy", Report(succeeded=True, disposition="handed_off", to="olga"), Phase.HANDED_OFF),
        ("tidy", Report.failed("no"), Phase.AWAITING_REDIRECT),
    ],
)
def test_a_report_decides_what_comes_of_an_execution(action: str, report: Report, phase: Phase) -> None:
    assert Walk().to_executing(action).finish(report).phase is phase


def test_an_action_that_left_the_catalogue_is_reviewed() -> None:
    walk = Walk().to_executing("tidy")
    walk.rules = replace(RULES, catalogue=Catalogue(specs={}, own={}))
    assert walk.finish(Report.ok()).phase is Phase.AWAITING_REVIEW


@pytest.mark.parametrize("report", [{}, {"succeeded": "yes"}, {"succeeded": True, "disposition": "gone"}, None])
def test_a_report_that_cannot_be_read_is_refused(report: Any) -> None:
    walk = reached(Phase.EXECUTING)
    assert walk.head.execution is not None
    with pytest.raises(Refused):
        walk.send(Trigger.EXECUTION_DONE, {"execution": walk.head.execution.id, "report": report})


@pytest.mark.parametrize(("started", "code"), [(True, "outcome_unknown"), (False, "not_started")])
def test_an_execution_that_times_out_tells_if_it_may_have_acted(started: bool, code: str) -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION).execute()
    if started:
        walk.started()
    walk.send(Trigger.TIMEOUT)
    assert walk.phase is Phase.AWAITING_REDIRECT
    assert walk.head.problem is not None
    assert walk.head.problem.code == code


def test_a_result_of_another_execution_is_refused() -> None:
    walk = Walk().to_executing("tidy")
    report = encode(Report.ok())
    with pytest.raises(Refused, match="is not the present execution"):
        walk.send(Trigger.EXECUTION_DONE, {"execution": f"{walk.id}.x1", "report": report})
    assert walk.phase is Phase.EXECUTING


def test_a_closed_execution_is_asked_to_stop_and_its_late_result_is_only_noted() -> None:
    walk = reached(Phase.EXECUTING)
    events = walk.send(Trigger.PARENT_FORCE_CLOSE, {"by": "th_parent"})
    assert kinds(events) == ["cancel_requested", "force_closed", "phase_changed"]
    with pytest.raises(InvalidTrigger):
        walk.finish(Report.ok())
    walk.send(Addition.LATE_REPORT, {"what": "execution", "detail": "it worked"})
    assert walk.phase is Phase.DISMISSED


# --- cards and ends


def test_a_card_is_deferred_to_a_time_within_a_year() -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    walk.send(Addition.DEFER, {"until": walk.now + 3_600}, by=MARA)
    assert walk.head.deferred_until == walk.now + 3_600 - 1
    for until in (walk.now, walk.now + 400 * 86_400, float("nan"), "soon"):
        with pytest.raises(Refused, match="until"):
            walk.send(Addition.DEFER, {"until": until}, by=MARA)
    walk.send(Trigger.REJECTED, by=MARA)
    assert walk.head.deferred_until is None


def test_a_clean_up_needs_a_cleaner_for_the_cause() -> None:
    walk = reached(Phase.AWAITING_INTENT_CONFIRMATION)
    walk.rules = replace(RULES, cleaned=frozenset({"other"}))
    with pytest.raises(Refused, match="'stall'; kinds with a cleaner: other"):
        walk.send(Trigger.CLEANUP_REQUESTED, by=MARA)


def test_a_hand_over_needs_somebody() -> None:
    walk = reached(Phase.AWAITING_INTENT_CONFIRMATION)
    with pytest.raises(Refused, match="needs the field 'to'"):
        walk.send(Trigger.HANDED_OFF_BY_USER, by=MARA)
    walk.send(Trigger.HANDED_OFF_BY_USER, {"to": "olga", "reason": "she knows"}, by=MARA)
    assert walk.head.reason == "handed to olga: she knows"


def test_a_long_reason_is_whole_in_the_log_and_cut_in_the_head() -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    walk.send(Trigger.DISMISSED_BY_USER, {"reason": "r" * 2_000}, by=MARA)
    assert walk.log[-1].data["reason"] == "r" * 2_000
    assert walk.head.reason == "r" * 300


def test_a_failure_is_known_until_an_action_is_proposed_again() -> None:
    """Whoever leads a failed thread back to its intent: each inference on the way learns why it failed."""
    walk = reached(Phase.AWAITING_REDIRECT)
    walk.send(Trigger.REDIRECTED, {"redirect_to": "intent"}, by=MARA)
    walk.infer().send(Trigger.EDITED, {"text": "free the disk"}, by=MARA)
    assert walk.infer().head.problem is not None
    walk.send(Trigger.CONFIRMED, by=MARA)
    assert walk.infer().head.problem is None


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase.is_terminal])
def test_a_terminal_takes_notes_and_late_reports_only(phase: Phase) -> None:
    walk = reached(phase)
    for trigger in Trigger:
        with pytest.raises(InvalidTrigger, match="the thread has ended"):
            walk.send(trigger, by=who(trigger))
    for addition in (Addition.EVIDENCE, Addition.POLICY, Addition.DEFER, Addition.CANCEL):
        with pytest.raises(Refused, match="open a new one that follows it"):
            walk.send(addition, by=MARA)
    walk.send(Addition.NOTE, {"text": "well done"}, by=MARA)
    walk.send(Addition.LATE_REPORT, {"what": "inference"})
    walk.check()


def test_evidence_that_is_known_is_not_added_again() -> None:
    walk = Walk()
    items = {"items": [{"id": "e1", "label": "l", "text": "t" * 500}]}
    assert kinds(walk.send(Addition.EVIDENCE, items, by=AGENT)) == ["evidence_added"]
    assert walk.head.evidence[0].text == "t" * 399 + "…"
    assert walk.send(Addition.EVIDENCE, items, by=AGENT) == ()
    assert kinds(walk.send(Addition.EVIDENCE, {**items, "run": "ended"}, by=AGENT)) == ["evidence_added"]
    assert walk.head.run == "ended"
