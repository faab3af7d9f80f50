"""Claims over results, and values that change without a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.types import Evaluation, Step, ToolCall, ToolResult

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


RED = "1 failed, 36 passed in 0.52s"


def kinds(play: Play, steps: Sequence[Step]) -> set[str]:
    return {evaluation.kind for evaluation in play(steps) if evaluation.kind}


def test_done_over_a_failed_test_is_a_contradiction_however_many_looks_came_after_it(act: Act, play: Play) -> None:
    looks = [act("read_file", f"line {n}", path="parser.py", offset=n) for n in range(3)]
    assert "red" in kinds(play, [act("bash", RED, command="pytest -q"), *looks, act("submit", "", answer="a.diff")])


def test_done_after_the_failed_test_has_passed_is_quiet(act: Act, fired: Fired) -> None:
    tests = [act("bash", text, command="pytest -q") for text in (RED, "37 passed in 0.49s")]
    assert fired([*tests, act("submit", "", answer="a.diff")]) == set()


def test_an_end_that_admits_the_failure_is_quiet(act: Act, fired: Fired) -> None:
    admits = "One test still fails, and I could not find out why."
    steps = [act("bash", RED, command="pytest -q"), act("submit", "", thought=admits, answer="a.diff")]
    assert fired(steps) == set()


def test_another_answer_after_a_refused_one_is_a_new_try(act: Act, fired: Fired) -> None:
    refused = [act("answer", f"Error: {value} is not the port", is_error=True, value=value) for value in ("80", "25")]
    assert NAME not in fired(refused)
    assert NAME in fired([act("set_port", "Error: 80 is taken", is_error=True, port="80"), refused[1]])


def test_expected_failures_are_no_failed_test(act: Act, fired: Fired) -> None:
    green = "Ran 447 tests in 2.1s\n\nOK (skipped=12, expected failures=3)"
    steps = [act("bash", green, command="python tests/runtests.py"), *says("All tests passed.")]
    assert fired(steps) == set()


def test_a_look_that_failed_contradicts_no_claim(act: Act, fired: Fired) -> None:
    steps = [
        act("bash", "ls: cannot access 'old.py': No such file or directory", command="ls old.py"),
        *says("The old module was removed successfully."),
    ]
    assert NAME not in fired(steps)


def test_a_complaint_about_a_step_without_a_call_contradicts_no_claim(fired: Fired) -> None:
    complaint = Step(tool_results=(ToolResult(call_id="", output="Error: no action was given."),))
    assert fired([complaint, *says("The file was created successfully.")]) == set()


def test_a_claim_in_a_step_that_goes_on_to_a_good_result_is_quiet(act: Act, fired: Fired) -> None:
    wanted = "There are three packages here: pandas 2.2, numpy 1.26 and scipy 1.13, all of them built for Python 3.12."
    steps = [
        act("install", "Error: no wheel for numpy", is_error=True, package="numpy"),
        act("list_packages", wanted, thought="The packages were installed successfully."),
    ]
    assert fired(steps) == set()


def test_assumptions_between_results_that_say_something_are_quiet(act: Act, fired: Fired) -> None:
    found = "The account has had a positive balance since March, and no payment was refused in that time: case {}."
    steps = [act("look", found.format(n), thought="I will assume that it is positive.", n=n) for n in range(4)]
    assert NAME not in fired(steps)


def test_a_newer_call_without_a_result_is_what_a_claim_may_be_about(act: Act, fired: Fired) -> None:
    unseen = Step(tool_calls=(ToolCall(id="d", name="create_file", arguments={"path": "b.json"}),))
    failed = act("run_program", "Error: a.json is a folder", is_error=True, path="a.json")
    assert fired([failed, unseen, *says("The file b.json was created successfully.")]) == set()
