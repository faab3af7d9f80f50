"""Policies: their JSON, the strictest of several, and gates that pass only what is known."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks_threads.catalogue import ActionSpec
from reasonblocks_threads.phases import Stage
from reasonblocks_threads.policy import (
    END_TO_END,
    HANDS_OFF,
    PLAN_THEN_REVIEW,
    GateResult,
    judge,
    looser_axes,
    policy_json,
    policy_of,
    preset,
    strictest,
)
from reasonblocks_threads.values import GRADES, Amplifier, Budget, Gate, Policy, Proposal, Risk
from tests.whole import QUICK_EXAMPLES, WHOLE

quick = settings(max_examples=400 if WHOLE else 2 * QUICK_EXAMPLES, deadline=None)
NAMES = ("deploy", "tidy", "call", "built_in", "")
AMPLIFIERS: tuple[Amplifier, ...] = get_args(Amplifier)
names = st.frozensets(st.sampled_from(NAMES))
grades = st.sampled_from(GRADES)
floors = st.one_of(st.floats(), st.sampled_from([0.0, 0.6, 1.0]))
policies = st.builds(
    Policy,
    auto_advance=st.frozensets(st.sampled_from(Stage)),
    floor=floors,
    consent_for=names,
    kinds=st.none() | names,
    actions=st.none() | names,
    irreversibility=grades,
    regret=grades,
    amplifiers=st.frozensets(st.sampled_from(AMPLIFIERS)),
    review_above=grades,
    budget=st.builds(
        Budget, calls=st.integers(0, 9), tokens=st.integers(0, 10**6), usd=st.floats(0) | st.just(math.nan)
    ),
)
risks = st.builds(
    Risk, irreversibility=grades, regret=grades, amplifiers=st.frozensets(st.sampled_from(AMPLIFIERS), max_size=1)
)


@st.composite
def specs(draw: st.DrawFn) -> ActionSpec:
    risk = draw(risks)
    auto = draw(st.booleans()) and not risk.amplifiers and risk.irreversibility != "high"
    return ActionSpec(name="deploy", kind=draw(st.sampled_from(["call", "built_in"])), risk=risk, auto=auto)


checks = st.lists(st.builds(lambda ok: {"name": "ready", "ok": ok, "detail": "" if ok else "no"}, st.booleans()))
conditions = st.none() | checks.map(tuple)
confidences = st.one_of(st.floats(), st.sampled_from([0.0, 0.6, 0.9, 1.0]))


def proposed(confidence: float, stage: Stage = Stage.ACTION) -> Proposal:
    return Proposal(stage=stage, body={"action": "deploy", "parameters": {}}, confidence=confidence)


def passes(results: tuple[GateResult, ...]) -> bool:
    return all(result.passed for result in results)


@quick
@given(policies)
def test_a_policy_survives_json_with_its_empty_sets(policy: Policy) -> None:
    again = policy_of(json.loads(json.dumps(policy_json(policy), allow_nan=False)))
    assert policy_json(again) == policy_json(policy)
    if not math.isnan(policy.floor) and not math.isnan(policy.budget.usd):
        assert again == policy


@pytest.mark.parametrize("broken", [None, {}, [], 3, {"floor": "x", "budget": 3, "kinds": 3, "auto_advance": "intent"}])
def test_an_unreadable_axis_gets_its_strictest_value(broken: object) -> None:
    found = policy_of(broken)
    assert found.auto_advance == found.kinds == found.actions == found.amplifiers == frozenset()
    assert (found.floor, found.irreversibility, found.review_above) == (math.inf, "low", "low")
    assert found.budget == Budget(calls=0, tokens=0, usd=0.0)


@pytest.mark.parametrize("name", [field.name for field in fields(Policy)])
def test_a_missing_axis_never_makes_a_policy_looser(name: str) -> None:
    whole = policy_json(END_TO_END)
    del whole[name]
    assert looser_axes(policy_of(whole), END_TO_END) == ()


@quick
@given(policies, policies, policies)
def test_strictest_is_associative_commutative_and_idempotent(one: Policy, two: Policy, three: Policy) -> None:
    both = strictest(one, two)
    assert both == strictest(two, one)
    assert strictest(both, three) == strictest(one, strictest(two, three)) == strictest(one, two, three)
    assert strictest(both, both) == both


@quick
@given(policies, policies)
def test_strictest_is_never_looser_than_an_operand(one: Policy, two: Policy) -> None:
    both = strictest(one, two)
    assert looser_axes(both, one) == looser_axes(both, two) == ()


@quick
@given(policies, policies, specs(), confidences, conditions, st.sampled_from(Stage))
def test_what_the_strictest_passes_each_operand_passes(
    one: Policy, two: Policy, spec: ActionSpec, confidence: float, found: Any, stage: Stage
) -> None:
    def passed(policy: Policy) -> bool:
        return passes(judge(stage, proposed(confidence, stage), policy, spec=spec, preconditions=found))

    assert not passed(strictest(one, two)) or (passed(one) and passed(two))


AXES: Mapping[str, Policy] = {
    "auto_advance": replace(END_TO_END, auto_advance=frozenset()),
    "floor": replace(END_TO_END, floor=0.7),
    "consent_for": replace(END_TO_END, consent_for=frozenset({"deploy"})),
    "kinds": replace(END_TO_END, kinds=frozenset()),
    "actions": replace(END_TO_END, actions=frozenset()),
    "irreversibility": replace(END_TO_END, irreversibility="low"),
    "regret": replace(END_TO_END, regret="low"),
    "review_above": replace(END_TO_END, review_above="low"),
    "budget.calls": replace(END_TO_END, budget=Budget(calls=7)),
    "budget.tokens": replace(END_TO_END, budget=Budget(tokens=1)),
    "budget.usd": replace(END_TO_END, budget=Budget(usd=0.1)),
    "amplifiers": END_TO_END,
}


@pytest.mark.parametrize("axis", AXES)
def test_a_looser_axis_is_named(axis: str) -> None:
    looser = replace(END_TO_END, amplifiers=frozenset({"cost"})) if axis == "amplifiers" else END_TO_END
    assert looser_axes(looser, AXES[axis]) == (axis,)
    assert looser_axes(AXES[axis], looser) == ()


def test_every_axis_of_a_policy_is_compared() -> None:
    budget = {f"budget.{field.name}" for field in fields(Budget)}
    assert {field.name for field in fields(Policy)} - {"budget"} | budget == {*AXES}


CAUTIOUS: Mapping[str, Any] = {
    "auto_advance": frozenset(),
    "floor": math.nan,
    "consent_for": frozenset({"deploy"}),
    "kinds": frozenset(),
    "actions": frozenset(),
    "irreversibility": "low",
    "regret": "low",
    "amplifiers": frozenset(),
    "review_above": "low",
    "budget": Budget(calls=0, tokens=0, usd=0),
}


@quick
@given(policies, specs(), confidences, conditions, st.sampled_from(Stage), st.sampled_from(sorted(CAUTIOUS)))
def test_a_stricter_axis_never_turns_ask_into_pass(
    policy: Policy, spec: ActionSpec, confidence: float, found: Any, stage: Stage, axis: str
) -> None:
    def results(of: Policy) -> tuple[GateResult, ...]:
        return judge(stage, proposed(confidence, stage), of, spec=spec, preconditions=found)

    stricter = replace(policy, **{axis: CAUTIOUS[axis]})
    for before, after in zip(results(policy), results(stricter), strict=True):
        assert before.passed or not after.passed


@quick
@given(policies, specs(), confidences, conditions)
def test_more_risk_less_confidence_or_less_knowledge_never_turns_ask_into_pass(
    policy: Policy, spec: ActionSpec, confidence: float, found: Any
) -> None:
    def passed(confidence: float, spec: ActionSpec | None, found: Any) -> bool:
        return passes(judge(Stage.ACTION, proposed(confidence), policy, spec=spec, preconditions=found))

    riskier = replace(spec, auto=False, risk=Risk(irreversibility="high", regret="high"))
    for after in (
        passed(math.nan, spec, found),
        passed(math.inf, spec, found),
        passed(-0.1, spec, found),
        passed(confidence, None, found),
        passed(confidence, replace(spec, auto=False), found),
        passed(confidence, riskier, found),
        passed(confidence, spec, None),
        passed(confidence, spec, ({"name": "ready", "ok": False, "detail": ""},)),
        passed(confidence, spec, ({"name": "ready"},)),
    ):
        assert not after


HARMLESS = ActionSpec(name="deploy", risk=Risk(irreversibility="low", regret="low"), auto=True)


def test_all_gates_are_judged_and_a_harmless_action_passes() -> None:
    results = judge(Stage.ACTION, proposed(0.6), END_TO_END, spec=HARMLESS, preconditions=())
    assert [result.gate for result in results] == [*get_args(Gate)]
    assert passes(results)


def judged(
    policy: Policy = END_TO_END, *, confidence: float = 0.9, spec: ActionSpec | None = HARMLESS, known: bool = True
) -> tuple[GateResult, ...]:
    ready = ({"name": "ready", "ok": True, "detail": ""},) if known else None
    return judge(Stage.ACTION, proposed(confidence), policy, spec=spec, preconditions=ready)


def test_each_gate_alone_can_ask() -> None:
    undoable, regretted = Risk(irreversibility="medium", regret="low"), Risk(irreversibility="low", regret="medium")
    cost = replace(HARMLESS, auto=False, risk=Risk(irreversibility="low", regret="low", amplifiers=frozenset({"cost"})))
    asked: dict[str, tuple[GateResult, ...]] = {
        "auto_advance": judged(PLAN_THEN_REVIEW),
        "confidence": judged(confidence=0.59),
        "consent_for": judged(AXES["consent_for"]),
        "kind": judged(AXES["kinds"]),
        "name": judged(AXES["actions"]),
        "irreversibility": judged(AXES["irreversibility"], spec=replace(HARMLESS, risk=undoable)),
        "regret": judged(AXES["regret"], spec=replace(HARMLESS, risk=regretted)),
        "preconditions": judged(known=False),
        "auto": judged(spec=replace(HARMLESS, auto=False)),
    }
    assert {gate: [r.gate for r in results if not r.passed] for gate, results in asked.items()} == {
        gate: [gate] for gate in asked
    }
    assert [r.gate for r in judged(spec=cost) if not r.passed] == ["amplifiers", "auto"]


def test_what_is_no_confidence_or_no_check_asks() -> None:
    unreadable: list[Any] = [None, "0.9", True]
    for confidence in (math.nan, math.inf, 1.01, -0.1, -math.inf, *unreadable):
        assert [result.gate for result in judged(confidence=confidence) if not result.passed] == ["confidence"]
    assert judged(replace(END_TO_END, floor=-1.0), confidence=-0.1)[1].passed is False
    for check in ({"name": "ready"}, {"name": "ready", "ok": 1}, {"name": "ready", "ok": None}):
        found = judge(Stage.ACTION, proposed(0.9), END_TO_END, spec=HARMLESS, preconditions=(check,))
        assert [result.gate for result in found if not result.passed] == ["preconditions"]
    assert not passes(judge(Stage.CONTEXT, Proposal.of_intent("x", confidence=0.9), END_TO_END))


def test_above_any_policy_a_grave_action_needs_a_person() -> None:
    loosest = replace(END_TO_END, floor=0.0, irreversibility="high", regret="high", amplifiers=frozenset(AMPLIFIERS))
    for risk in (Risk(irreversibility="high"), Risk(amplifiers=frozenset({"data_loss"}))):
        spec = ActionSpec(name="deploy", risk=risk)
        object.__setattr__(spec, "auto", True)  # as no constructor allows
        found = judge(Stage.ACTION, proposed(1.0), loosest, spec=spec, preconditions=())
        assert [result.gate for result in found if not result.passed] == ["auto"]


def test_a_question_or_the_proposal_of_another_stage_passes_no_gate_of_an_action() -> None:
    for odd in (
        Proposal.of_question("which service?", confidence=1.0),
        Proposal.of_intent("deploy", confidence=1.0),
        Proposal.of_action("tidy", {}, confidence=1.0),
    ):
        assert not passes(judge(Stage.ACTION, odd, END_TO_END, spec=HARMLESS, preconditions=()))


def test_presets() -> None:
    passing = {
        name: [
            stage.value
            for stage in Stage
            if passes(judge(stage, proposed(0.9, stage), preset(name), spec=HARMLESS, preconditions=()))
        ]
        for name in ("hands_off", "plan_then_review", "end_to_end")
    }
    assert passing == {
        "hands_off": [],
        "plan_then_review": ["intent", "context"],
        "end_to_end": ["intent", "context", "action"],
    }
    assert looser_axes(HANDS_OFF, PLAN_THEN_REVIEW) == looser_axes(PLAN_THEN_REVIEW, END_TO_END) == ()
    with pytest.raises(ValueError, match="valid: hands_off, plan_then_review, end_to_end"):
        preset("")
