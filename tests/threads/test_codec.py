"""Every value comes back from the JSON that is stored of it, and JSON of another value is an error that names it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_threads import codec
from reasonblocks_threads.codec import Decoder, encode
from reasonblocks_threads.phases import Phase, Stage
from reasonblocks_threads.values import (
    Approval,
    Budget,
    Card,
    Cause,
    Child,
    Evidence,
    Execution,
    Fact,
    Failed,
    Malformed,
    Policy,
    Problem,
    Proposal,
    Report,
    Spent,
    Thread,
)

TEXT = st.text(max_size=8)
MAYBE = st.none() | TEXT
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
COST = st.floats(0, 2**53)
COUNT = st.integers(0, 2**53)
OBJECT = st.dictionaries(
    TEXT, st.none() | st.booleans() | COUNT | NUMBER | TEXT | st.lists(TEXT, max_size=2), max_size=3
)
WORDS = TEXT.filter(str.strip)
BODY = st.one_of(
    st.builds(lambda stage, text: (stage, {"text": text}), st.sampled_from([Stage.INTENT, Stage.CONTEXT]), WORDS),
    st.builds(lambda text: (Stage.ACTION, {"question": text}), WORDS),
    st.builds(lambda name, given: (Stage.ACTION, {"action": name, "parameters": given}), TEXT, OBJECT),
)
EVIDENCE = st.builds(Evidence, id=TEXT, label=TEXT, text=TEXT, blob=MAYBE, private=st.booleans())
CAUSE = st.builds(
    Cause, kind=TEXT, key=TEXT, title=TEXT, family=MAYBE, run_id=MAYBE,
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
)  # fmt: skip
PROPOSAL = st.builds(
    lambda body, **given: Proposal(stage=body[0], body=body[1], **given), BODY, id=TEXT, confidence=st.floats(0, 1),
    author=TEXT, refs=st.lists(TEXT, max_size=2).map(tuple),
)  # fmt: skip
REPORT = st.builds(
    Report, succeeded=st.booleans(), disposition=st.sampled_from(["completed", "handed_off", "decomposed"]),
    summary=TEXT, partial=st.booleans(), code=TEXT, retryable=st.booleans(), to=TEXT, output=OBJECT,
)  # fmt: skip
APPROVAL = st.builds(
    Approval, proposal=TEXT, action=TEXT, parameters=OBJECT, hash=TEXT, by=TEXT, auto=st.booleans()
)  # fmt: skip
EXECUTION = st.builds(
    Execution, id=TEXT, thread_id=TEXT, action=TEXT, parameters=OBJECT, hash=TEXT, org_id=TEXT, run_id=MAYBE,
    started_at=NUMBER, deadline_at=NUMBER, cancel_requested=st.booleans(), report=st.none() | REPORT,
)  # fmt: skip
SPENT = st.builds(Spent, calls=COUNT, tokens=COUNT, usd=COST, newest=st.lists(TEXT, max_size=2).map(tuple))
BUDGET = st.builds(Budget, calls=COUNT, tokens=COUNT, usd=COST)
FACT = st.builds(Fact, id=TEXT, by=TEXT, text=TEXT, stage=st.sampled_from(Stage))
ID = st.text("abcth_.0123456789", min_size=1)
RUN = st.sampled_from(["live", "ended", "unknown"])
THREAD = st.builds(
    Thread, id=ID, org_id=TEXT, cause=CAUSE.map(lambda cause: replace(cause, evidence=())),
    phase=st.sampled_from(Phase), stage=st.sampled_from(Stage), version=COUNT, entered=COUNT, entered_at=NUMBER,
    opened_at=NUMBER, policy=st.just(Policy()), run=RUN, rule=st.sampled_from(["all_of", "alternatives"]),
    proposals=st.lists(PROPOSAL, max_size=3).map(lambda found: {each.stage: each for each in found}), spent=SPENT,
    carved=BUDGET, reason=TEXT, redirects=COUNT, attempt=COUNT, facts_bytes=COUNT, evidence_bytes=COUNT,
    facts=st.lists(FACT, max_size=2).map(tuple), evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    ancestors=st.lists(ID, max_size=2).map(tuple),
    children=st.lists(st.builds(Child, id=ID, ended=st.none() | st.sampled_from(Phase)), max_size=2).map(tuple),
    parent=MAYBE, follows=MAYBE, deferred_until=st.none() | NUMBER, unreadable=MAYBE,
    problem=st.none() | st.builds(Problem, code=TEXT, text=TEXT), last=st.none() | PROPOSAL,
    approved=st.none() | APPROVAL, execution=st.none() | EXECUTION,
)  # fmt: skip
CARD = st.builds(
    Card, id=ID, thread_id=ID, org_id=TEXT, kind=st.just("confirmation"), phase=st.sampled_from(Phase),
    stage=st.sampled_from(Stage), title=TEXT, cause=TEXT, opened_at=NUMBER, expires_at=st.none() | NUMBER,
    run_id=MAYBE, run=RUN, evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    facts=st.lists(FACT, max_size=2).map(tuple),
    why_asking=st.lists(st.builds(Failed, gate=TEXT, value=TEXT, limit=TEXT), max_size=2).map(tuple),
    confidence=st.none() | st.floats(0, 1), parameters=OBJECT, spent=SPENT,
    budget=BUDGET | st.just(Budget(usd=float("inf"))), deferred_until=st.none() | NUMBER,
)  # fmt: skip
ODD = "a half of a pair: \ud83d"


@pytest.mark.parametrize(
    ("decoder", "values"),
    [
        (codec.cause, CAUSE), (codec.proposal, PROPOSAL), (codec.report, REPORT), (codec.approval, APPROVAL),
        (codec.carved, BUDGET),
    ],
)  # fmt: skip
@given(data=st.data())
def test_a_value_comes_back_from_its_json(decoder: Decoder[Any], values: st.SearchStrategy[Any], data: Any) -> None:
    value = data.draw(values)
    assert decoder.of(json.loads(json.dumps(encode(value))), "it") == value


@given(values=st.lists(EVIDENCE, max_size=3))
def test_evidence_comes_back_from_its_json_which_is_short_for_what_is_public(values: list[Evidence]) -> None:
    stored = [encode(each) for each in values]
    assert codec.evidence({"items": stored}, "items") == tuple(values)
    assert all(("private" in found) is each.private for found, each in zip(stored, values))


@given(thread=THREAD)
def test_a_head_comes_back_from_its_json(thread: Thread) -> None:
    assert codec.head_of(codec.head_json(thread)) == thread


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(thread=THREAD, approved=APPROVAL, execution=EXECUTION)
def test_a_head_has_parameters_that_run_as_approved_only_once(
    thread: Thread, approved: Approval, execution: Execution
) -> None:
    same = replace(thread, approved=approved, execution=replace(execution, parameters=approved.parameters))
    assert "parameters" not in json.loads(codec.head_json(same))["execution"]
    assert codec.head_of(codec.head_json(same)) == same


@given(card=CARD)
def test_a_card_comes_back_from_its_json(card: Card) -> None:
    assert codec.card_of(codec.card_json(card)) == card


def test_a_text_that_no_utf_8_holds_comes_back() -> None:
    cause = Cause(kind="k", key=ODD, title=ODD)
    assert codec.cause.of(encode(cause), "it") == cause


@pytest.mark.parametrize(
    ("decoder", "value"),
    [
        (codec.count, "1"), (codec.count, 1.0), (codec.count, True), (codec.count, -1), (codec.count, 2**53 + 1),
        (codec.number, "1"), (codec.number, True), (codec.number, float("nan")), (codec.number, 10**400),
        (codec.cost, -0.1), (codec.cost, float("inf")), (codec.flag, 1), (codec.flag, "true"), (codec.text, 1),
        (codec.text, b"x"), (codec.text, None), (codec.words, b"x"), (codec.stage, "Intent"), (codec.run, None),
        (codec.rule, ODD), (codec.texts, "ab"), (codec.mapping, []), (codec.evidence, [{"id": "e"}]),
        (codec.evidence, [{"id": "e", "label": "l", "private": 1}]), (codec.carved, {"calls": -1}),
        (codec.report, {"summary": "no word of its success"}), (codec.report, {"succeeded": True, "output": None}),
        (codec.proposal, {"stage": "intent", "body": {"text": " "}, "confidence": 1}),
        (codec.proposal, {"stage": "intent", "body": {"text": "t"}, "confidence": 1.1}),
        (codec.proposal, {"stage": "action", "body": {"action": "a", "question": "q"}}),
    ],
)  # fmt: skip
def test_json_of_another_value_is_an_error_that_names_it(decoder: Decoder[Any], value: object) -> None:
    with pytest.raises(Malformed, match=r"^the field\b"):
        decoder({"the field": value}, "the field")


def test_a_proposal_without_a_confidence_passes_no_gate() -> None:
    for given_ in ({}, {"confidence": None}):
        assert codec.proposal.of({"stage": "intent", "body": {"text": "t"}, **given_}, "it").confidence == 0.0
