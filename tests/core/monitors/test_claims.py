"""Claims over results, and values that change without a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.types import Evaluation, Step

Act = Callable[..., Step]
Fired = Callable[[Sequence[Step]], set[str]]
Play = Callable[..., "list[Evaluation]"]
NAME = "claim_contradiction"


def says(*thoughts: str) -> list[Step]:
    return [Step(thought=thought) for thought in thoughts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The total is 420.", "The total is 435."),
        ("Order 7731 ships on 3 May.", "Order 7731 ships on 12 May."),
        ("The total of invoice 2207 is $412.00.", "Invoice 2207 comes to a total of $389.00."),
        ("I looked it up. The fee for booking B-330 is 25 euros.", "The fee for booking B-330 is 40 euros."),
    ],
)
def test_another_value_for_the_same_thing_is_a_contradiction(fired: Fired, one: str, other: str) -> None:
    assert NAME in fired(says(one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The total is 420.", "The total is 420.00."),
        ("The total is 420.", "I forgot a line before: the total is 435."),
        ("The total of invoice 1 is 420.", "The total of invoice 2 is 435."),
        ("The total is 420.", "The total should be 435."),
        ("The total is 420.", "Is the total 435?"),
        ("The next page is 3.", "The next page is 4."),
        ("There are 5 files.", "There are 6 files."),
        ("The price is 3.\nThe price is 4.", "The price is 5.\nThe price is 6."),
    ],
)
def test_these_values_do_not_contradict_each_other(fired: Fired, one: str, other: str) -> None:
    assert fired(says(one, other)) == set()


def test_a_new_result_is_reason_enough_for_another_value(act: Act, fired: Fired) -> None:
    pays = act("pay", '{"paid": 100}', account="12", amount="100")
    assert fired([*says("The balance is 500."), pays, *says("The balance is 400.")]) == set()


def test_the_place_of_both_statements_is_named(play: Play) -> None:
    text = play(says("Good morning.", "The total is 420.", "Thank you.", "The total is 435."))[-1].intervention_text
    assert text is not None
    assert text.startswith("You have given different values for the same thing (your last message, 3 messages ago).")


REFUSED = {"is_error": True, "id": "r1"}


@pytest.mark.parametrize(
    "claim",
    [
        "The booking has been cancelled.",
        "I've sent the message to the channel.",
        "Everything works now.",
        "All 37 tests pass.",
        "Record r1 was updated successfully.",
    ],
)
def test_success_claimed_over_a_refusal_is_a_contradiction(act: Act, fired: Fired, claim: str) -> None:
    assert NAME in fired([act("update_record", "Error: locked by audit", **REFUSED), *says(claim)])


@pytest.mark.parametrize(
    "thought",
    [
        "The booking has not been cancelled.",
        "Let me see how this works.",
        "It would have been updated, but the record is locked.",
        "Most of it works, except the last call.",
        "Confirmed: the call works without the lock only.",
    ],
)
def test_doubt_is_no_claim(act: Act, fired: Fired, thought: str) -> None:
    assert fired([act("update_record", "Error: locked by audit", **REFUSED), *says(thought)]) == set()


def test_placeholders_of_a_language_are_no_assumption(act: Act, play: Play) -> None:
    steps = [
        act("run", f"ok {n}", n=n, thought="The SQL has two placeholders, %s and %s, in its template.")
        for n in range(4)
    ]
    assert all(said.scores[NAME] < 0.3 for said in play(steps))


def test_a_refusal_is_not_forgotten_by_talking(act: Act, fired: Fired) -> None:
    refused = act("update_record", "Error: locked by audit", **REFUSED)
    assert NAME in fired([refused, *says("One moment, please.", "The record has been updated.")])


def test_a_refusal_is_over_with_the_next_result(act: Act, fired: Fired) -> None:
    refused = act("update_record", "Error: locked by audit", **REFUSED)
    again = act("update_record", '{"state": "saved"}', id="r1", unlock=1)
    assert fired([refused, again, *says("The record has been updated.")]) == set()
