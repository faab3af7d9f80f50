"""Each yes-or-no rule by itself: its table, its bounds, the order in which reasons are named."""

from __future__ import annotations

import pytest

from reasonblocks.engine import gates
from reasonblocks.types import Evaluation, FSMState, Injected, TierUse, TraceState
from tests.core.world import speaks

NORMAL = FSMState.NORMAL


def state(call: int, *injected: int, text: str | None = None, **more: object) -> TraceState:
    """Before call `call`, with monitor injections before those calls."""
    marks = tuple(Injected(step=at, monitor="semantic_loop") for at in injected)
    key = None if text is None else gates.text_key(text)
    return TraceState(trace_id="run", calls=call, injected=marks, injected_text=key, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("now", "steps"), [("FAST", 5), ("NORMAL", 3), ("SLOW", 2), ("SKIP", 2)])
def test_the_cooldown_of_a_state_is_over_after_exactly_its_steps(now: str, steps: int) -> None:
    decided = [gates.may_inject(state(10 + after, 10), FSMState(now), speaks("Text.")) for after in (steps - 1, steps)]
    assert decided == ["cooldown", None]


def test_nothing_injected_yet_counts_as_long_ago() -> None:
    assert gates.may_inject(state(1), FSMState.FAST, speaks("Text.")) is None


def test_only_the_last_injection_starts_the_cooldown() -> None:
    assert gates.may_inject(state(9, 1, 8), NORMAL, speaks("Text.")) == "cooldown"


@pytest.mark.parametrize(("injections", "gate"), [(4, None), (5, "cap")])
def test_the_cap_is_five_monitor_injections_a_run(injections: int, gate: str | None) -> None:
    assert gates.may_inject(state(100, *range(injections)), NORMAL, speaks("Text.")) == gate


def test_an_unavailable_evaluation_is_named_before_the_cap() -> None:
    assert gates.may_inject(state(100, *range(5)), NORMAL, None) == "unavailable"


def test_quiet_is_named_before_the_cap() -> None:
    assert gates.may_inject(state(100, *range(5)), NORMAL, Evaluation()) == "quiet"


def test_the_cap_is_named_before_the_cooldown() -> None:
    assert gates.may_inject(state(5, *range(5)), NORMAL, speaks("Text.")) == "cap"


def test_an_evaluation_that_wants_to_inject_nothing_is_quiet() -> None:
    assert gates.may_inject(state(1), NORMAL, Evaluation(inject=True, intervention_text=" \n")) == "quiet"


@pytest.mark.parametrize("text", ["Look at  it.", " Look\nat it.\t", "Look at it."])
def test_a_text_equal_to_the_last_one_white_space_aside_is_a_duplicate(text: str) -> None:
    assert gates.is_duplicate(state(50, 1, text="Look at it."), text)


@pytest.mark.parametrize("text", ["look at it.", "Look at it", "Look atit."])
def test_any_other_difference_makes_a_new_text(text: str) -> None:
    assert not gates.is_duplicate(state(50, 1, text="Look at it."), text)


def test_before_the_first_injection_nothing_is_a_duplicate() -> None:
    assert not gates.is_duplicate(state(1), "")


QUIET = Evaluation(scores={"semantic_loop": 0.1})


@pytest.mark.parametrize(
    ("evaluation", "before", "is_open"),
    [
        (Evaluation(fired=("late_sprawl",)), (), True),
        (Evaluation(composite=0.16), (), True),
        (Evaluation(composite=0.15), (), False),
        (QUIET, (), False),
        (QUIET, (True, False), True),
        (QUIET, (False, True), True),
        (QUIET, (False, False), False),
        (None, (True, False), True),
        (None, (False, False), False),
    ],
)
def test_the_e1_gate_is_open_when_something_is_or_was_the_matter(
    evaluation: Evaluation | None, before: tuple[bool, ...], is_open: bool
) -> None:
    assert gates.e1_open(state(5, evaluated=True, fired_before=before), evaluation) is is_open


@pytest.mark.parametrize(("ever", "is_open"), [(False, True), (True, False)])
def test_the_e1_gate_is_open_as_long_as_no_evaluation_has_ever_answered(ever: bool, is_open: bool) -> None:
    assert gates.e1_open(state(5, evaluated=ever), None) is is_open


@pytest.mark.parametrize(
    ("now", "evaluation", "signalled"),
    [
        ("NORMAL", QUIET, False),
        ("NORMAL", None, False),
        ("NORMAL", Evaluation(failure_type="loop"), True),
        ("NORMAL", Evaluation(composite=0.15), False),
        ("NORMAL", Evaluation(composite=0.16), True),
        ("SLOW", None, True),
        ("SKIP", None, True),
    ],
)
def test_a_signal_is_a_failure_type_a_raised_composite_or_a_hard_state(
    now: str, evaluation: Evaluation | None, signalled: bool
) -> None:
    assert gates.e2_signalled(FSMState(now), evaluation) is signalled


def test_an_empty_answer_is_tried_again_3_steps_later() -> None:
    use = gates.after_answer(TierUse(), 4, got_any=False)
    assert [gates.may_ask(use, call) for call in (5, 6, 7)] == [False, False, True]


def test_a_tier_is_used_up_by_an_answer_with_a_pattern() -> None:
    assert not gates.may_ask(gates.after_answer(TierUse(), 4, got_any=True), 1_000)


def test_a_failed_e3_is_tried_on_each_of_3_following_steps_then_never() -> None:
    use, tried = TierUse(), []
    for call in range(6):
        tried.append(gates.may_ask(use, call))
        use = gates.after_failure(use) if tried[-1] else use
    assert tried == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("tier", "top_k", "similarity", "steps"), [("e1", 1, 0.8, 3), ("e2", 2, 0.7, 5), ("e3", 32, 0.0, 0)]
)
def test_the_tiers_are_those_of_the_table(tier: str, top_k: int, similarity: float, steps: int) -> None:
    rule = gates.TIER_RULES[tier]  # type: ignore[index]  # one of the three
    assert (rule.top_k, rule.similarity, rule.steps) == (top_k, similarity, steps)


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


def test_only_the_first_text_of_a_failure_type_may_carry_an_e2() -> None:
    used = state(5, 1, injected_types=("loop",))
    assert [gates.first_of_type(used, kind) for kind in ("loop", "sprawl", None)] == [False, True, False]
