"""A framework that keeps what it is told in its own transcript is not told the same twice."""

from __future__ import annotations

import json

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.types import AdapterCaps, Evaluation, Step, StepDecision, StepInput
from reasonblocks_testing import ScriptedEvaluator, ScriptedReasonBlocks

CONTEXT = AdapterCaps(ephemeral=False, placements=frozenset({"context"}))
TEXTS = ("Read the error.", "Run another test.", "Read the error.", "Ask.")


def speaking(text: str) -> Evaluation:
    return Evaluation(inject=True, intervention_text=text, fired=("semantic_loop",), scores={"semantic_loop": 1.0})


def client() -> ReasonBlocks:
    spread = [speaking(TEXTS[at // 3]) for at in range(12)]  # the cooldown lets every third of them pass
    return ScriptedReasonBlocks(
        evaluator=ScriptedEvaluator(spread), pattern_store=LocalStore(), scorer=lambda step: 0.4, strict=True
    )


def decided(caps: AdapterCaps, *, resume_at: int | None = None) -> list[StepDecision]:
    rb = client()
    session, found = rb.session(caps=caps), []
    for call in range(12):
        if call == resume_at:
            session = rb.session(caps=caps, snapshot=json.loads(json.dumps(session.trace.snapshot())))
        found.append(session.begin_step(StepInput(completed=Step(thought="I look.") if call else None)))
    return found


def guided(decisions: list[StepDecision]) -> list[str]:
    """What was said after the first call, which has the standing rules."""
    return [one.guidance.removeprefix("[REASONBLOCKS]\n") for one in decisions[1:] if one.guidance]


def test_a_text_that_was_sent_is_not_sent_again_and_its_place_is_the_only_one_there() -> None:
    assert guided(decided(CONTEXT)) == ["Read the error.", "Run another test.", "Ask."]
    assert {one.placement for one in decided(CONTEXT)} == {"context"}


def test_elsewhere_a_text_comes_again() -> None:
    assert guided(decided(AdapterCaps())) == list(TEXTS)


def test_it_is_decided_alike_and_the_log_says_what_was_left_out() -> None:
    context, elsewhere = decided(CONTEXT), decided(AdapterCaps())
    assert [one.gate_decision for one in context] == [one.gate_decision for one in elsewhere]
    assert [one.step for one in context if one.dropped] == [7]
    assert context[7].dropped == ("MonitorSteeringInjection",)


def test_whoever_resumes_the_run_knows_what_was_sent() -> None:
    assert guided(decided(CONTEXT, resume_at=5)) == guided(decided(CONTEXT))
