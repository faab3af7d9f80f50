"""One key, one decision: a step that is asked for again advances nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasonblocks.exceptions import StaleKey
from reasonblocks.session import SteeringSession
from reasonblocks.types import StepOutcome, Usage
from tests.core.world import (
    QUIET,
    Scores,
    ScriptedEvaluator,
    ScriptedReasonBlocks,
    ScriptedStore,
    begin,
    called,
    client,
    found,
    speaks,
)


def keyed(calls: int, **options: object) -> SteeringSession:
    """A run after `calls` calls with the keys k0, k1, ..."""
    session: SteeringSession = client(*[speaks(f"Text {at}.") for at in range(calls)], **options).session()  # type: ignore[arg-type]
    for number in range(calls):
        session.end_step(begin(session, number, key=f"k{number}"), called(number))
    return session


def test_the_last_key_gives_its_decision_again_whatever_is_said_of_the_completed_step() -> None:
    session = keyed(2)
    decision = begin(session, 2, key="k2")
    assert not decision.replayed
    assert begin(session, 2, key="k2") == replace(decision, replayed=True)
    assert begin(session, 7, key="k2", model="another") == replace(decision, replayed=True)


def test_a_replay_moves_nothing() -> None:
    session = keyed(3)
    begin(session, 3, key="k3")
    before = session.trace.state
    for _ in range(4):
        begin(session, 3, key="k3")
    assert (session.trace.state, len(session.step_log)) == (before, 4)


def test_a_replay_asks_no_backend() -> None:
    evaluator, store = ScriptedEvaluator([QUIET] * 9), ScriptedStore(lambda request: found("e2-a"))
    scorer = Scores()
    rb = ScriptedReasonBlocks(
        evaluator=evaluator, pattern_store=store, scorer=scorer, strict=True, step_deadline_ms=20_000
    )
    session = rb.session()
    begin(session, 0, key="k0")
    begin(session, 1, key="k1")
    asked = (len(evaluator.asked), len(store.asked), len(scorer.seen))
    begin(session, 1, key="k1")
    assert (len(evaluator.asked), len(store.asked), len(scorer.seen)) == asked


@pytest.mark.parametrize("strict", [True, False])
def test_an_older_key_is_refused_and_moves_nothing(strict: bool) -> None:
    session = keyed(3, strict=strict)
    before = session.trace.state
    with pytest.raises(StaleKey, match="'k1' is older than the run's last key 'k2'"):
        begin(session, 3, key="k1")
    assert (session.trace.state, len(session.step_log)) == (before, 3)


def test_none_is_always_a_new_step() -> None:
    session = client().session()
    assert [begin(session, number).step for number in range(3)] == [0, 1, 2]


def test_a_key_is_older_once_a_step_without_a_key_has_come() -> None:
    session = keyed(2)
    begin(session, 2)
    with pytest.raises(StaleKey):
        begin(session, 3, key="k1")


def test_the_empty_key_is_a_key() -> None:
    session = client().session()
    begin(session, 0, key="")
    assert begin(session, 0, key="").replayed


def test_keys_that_differ_at_their_end_only_are_two_keys() -> None:
    session = client().session()
    begin(session, 0, key="k" * 5_000 + "a")
    assert not begin(session, 1, key="k" * 5_000 + "b").replayed


def test_a_faulted_step_is_replayed_as_it_was() -> None:
    session = client(strict=False, scorer=lambda step: 7.0).session()
    begin(session, 0, key="k0")
    decision = begin(session, 1, key="k1")
    assert begin(session, 1, key="k1") == replace(decision, replayed=True)


def test_a_step_that_raised_with_strict_can_be_begun_again_with_its_key() -> None:
    answers = iter([7.0, 0.4])
    session = client(strict=True, scorer=lambda step: next(answers)).session()
    begin(session, 0, key="k0")
    with pytest.raises(Exception, match="must be in"):
        begin(session, 1, key="k1")
    assert begin(session, 1, key="k1").difficulty == 0.4


def test_an_outcome_for_a_replayed_decision_goes_into_the_entry_of_the_first() -> None:
    session = keyed(1)
    session.end_step(begin(session, 1, key="k1"), StepOutcome(model="a", usage=Usage(input=5), error="Boom: no"))
    session.end_step(begin(session, 1, key="k1"), StepOutcome(model="b", usage=Usage(input=7)))
    entry = session.step_log[1]
    assert (len(session.step_log), entry.model_id, entry.attempts, entry.tokens, entry.error) == (2, "b", 2, 12, None)
