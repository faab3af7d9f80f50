"""The texts that count as one, as none, and as evidence; test_engine_rules.py has the other rules of gates."""

from __future__ import annotations

import pytest

from reasonblocks.engine import gates
from reasonblocks.types import Evaluation, FSMState, TraceState


def test_an_evaluation_that_wants_to_inject_nothing_is_quiet() -> None:
    nothing = Evaluation(inject=True, intervention_text=" \n")
    assert gates.may_inject(TraceState(trace_id="run", calls=1), FSMState.NORMAL, nothing) == "quiet"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Look at  it.", True), (" Look\nat it.\t", True), ("Look at it.", True),
        ("look at it.", False), ("Look at it", False), ("Look atit.", False),
    ],
)  # fmt: skip
def test_a_text_equal_to_the_last_one_white_space_aside_is_a_duplicate(text: str, same: bool) -> None:
    last = TraceState(trace_id="run", injected_text=gates.text_key("Look at it."))
    assert gates.is_duplicate(last, text) is same


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("Step 3 failed. Look again.", "Step 3 failed."),
        ("Step 3 ran v1.2.py twice! Look.", "Step 3 ran v1.2.py twice!"),
        ("No full stop", "No full stop"),
        ("  One.\nTwo.", "One."),
    ],
)
def test_the_evidence_is_the_first_sentence(text: str, evidence: str) -> None:
    assert gates.first_sentence(text) == evidence
