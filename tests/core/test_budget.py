"""A budget is told to the unit and ends the run: each sentence that an agent was told is compared with what came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import Budget, ReasonBlocks
from reasonblocks.exceptions import RunStopped
from reasonblocks.session.clock import RunClock
from reasonblocks.types import AdapterCaps, FSMState, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from tests.core.world import begin, called, client, run, speaks, through_json

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)
DELIVER = "Use them to deliver the best result that you have, and say what is missing."
LAST = "This is the last call: give your answer now. No result of a tool is read after it."


@dataclass
class Played:
    """A run as it went: the line before each call, "" for none, the tokens used before it, and why it ended."""

    lines: list[str] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    stop: str | None = None
    extended_at: int | None = None


def completed(number: int, *, dead: bool) -> Step:
    """A step that reads a file: a new one, or for a dead step the same one again."""
    name = "same" if dead else f"file {number}"
    call = ToolCall(id=f"c{number}", name="read_file", arguments={"path": name})
    return Step(
        thought=f"I read {name}.", tool_calls=(call,), tool_results=(ToolResult(call_id=call.id, output=f"{name}!"),)
    )


def play(budget: Budget, tokens: Sequence[int], dead: Sequence[bool], *, most: int = 40, **options: Any) -> Played:
    """Play a run of an agent that never ends by itself, with the answer of call n costing `tokens[n % len]`.

    A call takes as many seconds as a tenth of its tokens.
    """
    rb = ReasonBlocks(budget=budget, e_traces_enabled=False, patience="8 of 9", strict=True, step_deadline_ms=20_000)
    session, played = rb.session(**options), Played()
    for number in range(most):
        done = completed(number - 1, dead=dead[(number - 1) % len(dead)]) if number else None
        try:
            taken = session.trace.state.total_tokens / 10
            decision = session.begin_step(StepInput(key=str(number), completed=done, seconds=taken))
        except RunStopped as stopped:
            played.stop = stopped.reason
            break
        said = [told.text for told in decision.injections if told.source == "BudgetInjection"]
        assert len(said) <= 1
        if said:
            assert decision.guidance.endswith(said[0])
        played.lines += said or [""]
        played.used.append(session.trace.state.total_tokens)
        if session.trace.state.budget_extension and played.extended_at is None:
            played.extended_at = number
        call = completed(number, dead=dead[number % len(dead)]).tool_calls
        session.end_step(decision, StepOutcome(tool_calls=call, usage=Usage(input=tokens[number % len(tokens)])))
    return played


budgets = st.builds(
    Budget,
    calls=st.none() | st.integers(1, 25),
    tokens=st.integers(1, 400),
    seconds=st.none() | st.sampled_from([0.3, 1.5, 7, 20, 33.25]),
    tell_at=st.lists(st.sampled_from([0.9, 0.5, 0.25, 0.1, 0.01]), max_size=4, unique=True).map(tuple),
    land_at=st.integers(0, 5),
    every_call=st.booleans(),
)
costs = st.lists(st.integers(0, 60), min_size=1, max_size=4)
flags = st.lists(st.booleans(), min_size=1, max_size=4)


@quick
@given(budgets, costs, flags)
def test_each_sentence_about_a_budget_is_true(budget: Budget, tokens: list[int], dead: list[bool]) -> None:
    played = play(budget, tokens, dead)
    made = len(played.lines)
    calls = budget.calls
    for number, line in enumerate(played.lines):
        assert len(line.encode()) <= 200
        if line == LAST:
            assert (calls, played.stop, made) == (number + 1, "budget", number + 1)
        if found := re.match(r"At most (\d+) calls are left, this one included\.", line):
            assert calls == number + int(found[1]) >= made
            assert int(found[1]) / calls <= ((budget.tokens or 0) - played.used[number]) / (budget.tokens or 1)
        if found := re.match(r"Budget: (less than )?([\d.]+) of ([\d.]+) seconds (is|are) left\.", line):
            left, limit = (budget.seconds or 0) - played.used[number] / 10, float(found[3])
            assert limit == budget.seconds
            assert (0 < left < float(found[2])) if found[1] else (-1e-9 < left - float(found[2]) < limit / 100)
            assert (found[4] == "is") is (bool(found[1]) or float(found[2]) == 1)
        elif "seconds" in line:
            raise AssertionError(line)
        if found := re.match(r"Budget: ([\d,]+) of ([\d,]+) (calls|tokens) (is|are) left\.", line):
            left, limit = (int(text.replace(",", "")) for text in found.groups()[:2])
            expected = (calls or 0) - number if found[3] == "calls" else (budget.tokens or 0) - played.used[number]
            assert (left, limit) == (expected, calls if found[3] == "calls" else budget.tokens)
            assert (found[4] == "is") is (left == 1)
    assert calls is None or made <= calls
    assert all(used < (budget.tokens or 0) for used in played.used)
    assert all(used / 10 < (budget.seconds or 99) for used in played.used)
    if played.stop is None:
        assert made == 40
    else:
        assert played.stop == "budget"


@quick
@given(st.integers(4, 25), st.integers(1, 8), st.integers(0, 4), flags)
def test_a_limit_that_is_extended_was_not_called_the_last(
    calls: int, extend: int, land_at: int, dead: list[bool]
) -> None:
    played = play(Budget(calls=calls, extend=extend, land_at=land_at), [1], dead)
    made, extended = len(played.lines), played.extended_at is not None
    assert (made, played.stop) == (calls + (extend if extended else 0), "budget")
    assert [number for number, line in enumerate(played.lines) if line == LAST] == [made - 1]
    for number, line in enumerate(played.lines):
        if found := re.search(r"(?<!most )\b(\d+) calls are left, this one included", line):
            assert number + int(found[1]) == made
    said = [line for line in played.lines if line.startswith("Budget: extended")]
    assert len(said) == extended
    assert extended <= (not all(dead) and calls - max(land_at, 1) >= 8)


@quick
@given(st.lists(st.integers(0, 25), max_size=30), st.sampled_from([None, AdapterCaps(stop=False)]))
def test_each_sentence_about_a_frameworks_limit_is_true(spared: list[int], caps: AdapterCaps | None) -> None:
    """The framework leaves as many calls as its adapter says, or fewer: `spared` is how far an adapter is off."""
    session = client(budget="auto").session(caps=caps)
    most = 40
    for number in range(40):
        most = min(most - 1, 30 - number + sum(spared[number:]))
        done = completed(number - 1, dead=False) if number else None
        decision = session.begin_step(StepInput(key=str(number), completed=done, calls_left=most))
        said = [told.text for told in decision.injections]
        assert (LAST in said) is (most == 1)
        for found in filter(None, (re.search(r"[Aa]t most (\d+) calls are left", line) for line in said)):
            assert int(found[1]) == most >= 30 - number
        assert decision.stop is None
        session.end_step(decision, StepOutcome(tool_calls=completed(number, dead=False).tool_calls))


def framework(limit: int, **options: Any) -> list[str]:
    """The lines before the calls of a run whose framework ends it after so many."""
    session, lines = client(**options).session(), []
    for number in range(limit + 1):
        done = completed(number - 1, dead=False) if number else None
        decision = session.begin_step(StepInput(key=str(number), completed=done, calls_left=limit - number))
        lines += [[told.text for told in decision.injections if told.source == "BudgetInjection"]]
        session.end_step(decision, StepOutcome(tool_calls=completed(number, dead=False).tool_calls))
    assert session.outcome is None
    return [line[0] if line else "" for line in lines]


def test_a_frameworks_limit_is_told_and_not_enforced() -> None:
    assert {number: line for number, line in enumerate(framework(20, budget="auto")) if line} == {
        10: "Budget: at most 10 calls are left.",
        15: "Budget: at most 5 calls are left.",
        17: f"At most 3 calls are left, this one included. {DELIVER}",
        19: LAST,
    }


def test_a_frameworks_limit_is_not_told_beside_a_budget_of_ones_own() -> None:
    assert framework(5) == [""] * 6
    assert framework(5, budget=Budget(calls=500)) == [""] * 6


def test_a_limit_that_no_framework_has_is_not_told() -> None:
    session = client(budget="auto").session()
    assert [decision.injections for decision in run(session, 9)] == [()] * 9


def test_a_run_can_be_told_of_its_frameworks_limit_in_place_of_the_clients_budget() -> None:
    session = client(budget=Budget(calls=1)).session(budget="auto")
    assert len(run(session, 4)) == 4


def test_marks_and_the_end_are_each_told_once() -> None:
    played = play(Budget(calls=20), [1], [False])
    assert {number: line for number, line in enumerate(played.lines) if line} == {
        10: "Budget: 10 of 20 calls are left.",
        15: "Budget: 5 of 20 calls are left.",
        17: f"3 calls are left, this one included. {DELIVER}",
        19: LAST,
    }


def test_tokens_are_told_with_what_to_do_at_the_last_mark() -> None:
    played = play(Budget(tokens=1_050), [100], [False])
    assert {number: line for number, line in enumerate(played.lines) if line} == {
        6: "Budget: 450 of 1,050 tokens are left.",
        8: "Budget: 250 of 1,050 tokens are left.",
        10: f"Budget: 50 of 1,050 tokens are left. {DELIVER}",
    }


def test_seconds_are_told_as_tokens_are() -> None:
    played = play(Budget(seconds=105), [100], [False])
    assert ({number: line for number, line in enumerate(played.lines) if line}, played.stop) == (
        {
            6: "Budget: 45 of 105 seconds are left.",
            8: "Budget: 25 of 105 seconds are left.",
            10: f"Budget: 5 of 105 seconds are left. {DELIVER}",
        },
        "budget",
    )


def test_beside_seconds_no_number_of_calls_is_promised() -> None:
    played = play(Budget(calls=3, seconds=600), [1], [False])
    assert played.lines == [f"At most 3 calls are left, this one included. {DELIVER}", "", LAST]


def test_a_session_counts_the_seconds_itself() -> None:
    session = client(budget=Budget(seconds=1e-9)).session()
    session.end_step(begin(session, 0), called(0))
    with pytest.raises(RunStopped):
        begin(session, 1)
    assert session.outcome == "stopped: budget"
    assert session.trace.state.seconds > 1e-9


def test_a_resumed_run_adds_to_the_seconds_of_its_snapshot() -> None:
    rb = client(budget=Budget(seconds=60))
    session = rb.session()
    session.end_step(session.begin_step(StepInput(seconds=59)), called(0))
    again = rb.session(snapshot=through_json(session.trace.snapshot()))
    again.end_step(begin(again, 1), called(1))
    assert 59 <= again.trace.state.seconds < 60
    with pytest.raises(RunStopped):
        again.begin_step(StepInput(seconds=60))


def test_the_clock_of_a_run_stands_still_while_it_is_paused() -> None:
    now = iter([100.0, 103.0, 200.0, 201.5])
    clock = RunClock(lambda: next(now))
    passed = [clock.passed(), clock.passed()]
    clock.stop()
    assert [*passed, clock.passed(), clock.passed()] == [0.0, 3.0, 0.0, 1.5]


def test_tokens_that_end_first_are_told_and_no_number_of_calls_is_promised() -> None:
    played = play(Budget(calls=10, tokens=1_000), [120], [False])
    assert {number: line for number, line in enumerate(played.lines) if line} == {
        5: "Budget: 400 of 1,000 tokens are left.",
        7: "Budget: 160 of 1,000 tokens are left.",
        8: f"Budget: 40 of 1,000 tokens are left. {DELIVER}",
    }


def test_tokens_that_no_framework_reports_are_no_limit() -> None:
    session = client(budget=Budget(tokens=5, every_call=True)).session()
    for number in range(9):
        decision = begin(session, number)
        assert decision.injections == ()
        session.end_step(decision, StepOutcome())


def test_a_retried_call_is_one_call() -> None:
    session = client(budget=Budget(calls=3, every_call=True)).session()
    for number in range(3):
        for attempt in range(2):
            decision = begin(session, number, key=f"k{number}")
            assert decision.replayed is (attempt == 1)
            outcome = called(number) if attempt else StepOutcome(error="TimeoutError")
            session.end_step(decision, outcome)
    with pytest.raises(RunStopped, match="was stopped: budget"):
        begin(session, 3, key="k3")
    assert (session.outcome, len(session.step_log)) == ("stopped: budget", 3)


def test_an_auxiliary_call_is_none() -> None:
    session = client(budget=Budget(calls=2)).session()
    session.end_step(session.begin_step(StepInput(auxiliary=True)), StepOutcome())
    assert len(run(session, 2)) == 2
    with pytest.raises(RunStopped):
        begin(session, 2)


@pytest.mark.parametrize("at", range(1, 6))
def test_a_restored_run_goes_on_with_its_budget(at: int) -> None:
    rb = client(budget=Budget(calls=6))
    whole = rb.session(run_id="r")
    expected = [decision.guidance for decision in run(whole, 6)]
    session = rb.session(run_id="r")
    told = [decision.guidance for decision in run(session, at)]
    again = rb.session(run_id="r", snapshot=through_json(session.trace.snapshot()))
    told += [decision.guidance for decision in run(again, 6, start=at)]
    assert told == expected
    with pytest.raises(RunStopped):
        begin(again, 6)


def test_an_observed_run_goes_on_and_records_what_it_would_have_been_told() -> None:
    session = client(budget=Budget(calls=2), mode="observe").session()
    decisions = run(session, 4)
    assert [decision.guidance for decision in decisions] == [""] * 4
    assert [[told.text for told in decision.withheld] for decision in decisions] == [
        [f"2 calls are left, this one included. {DELIVER}"],
        [LAST],
        [],
        [],
    ]
    assert [decision.withheld_stop for decision in decisions] == [None, None, "budget", "budget"]
    assert session.outcome is None


def test_a_framework_that_cannot_end_a_run_says_nothing_of_a_last_call() -> None:
    session = client(budget=Budget(calls=4, land_at=3)).session(caps=AdapterCaps(stop=False))
    told = [decision.injections[0].text if decision.injections else "" for decision in run(session, 6)]
    assert told == ["", "", "Budget: 2 of 4 calls are left.", "Budget: 1 of 4 calls is left.", "", ""]


def test_the_line_stays_when_the_guidance_is_too_long() -> None:
    rb = client(speaks("x" * 3_000), budget=Budget(calls=9, every_call=True))
    session = rb.session(caps=AdapterCaps(max_guidance_chars=300))
    second = run(session, 2)[1]
    assert [told.source for told in second.injections] == ["BudgetInjection"]
    assert second.dropped == ("MonitorSteeringInjection",)


def test_a_runs_own_budget_replaces_that_of_the_client() -> None:
    rb = client(budget=Budget(calls=9))
    session = rb.session(budget=Budget(calls=1))
    run(session, 1)
    with pytest.raises(RunStopped):
        begin(session, 1)


def test_a_run_without_steering_by_its_transition_ends_too() -> None:
    session = client(budget=Budget(calls=2), transition=lambda state, history: FSMState.END).session()
    run(session, 2)
    with pytest.raises(RunStopped):
        begin(session, 2)
    assert session.outcome == "stopped: budget"


def test_a_run_ends_after_a_fault_too() -> None:
    def broken(done: Step) -> float:
        raise ValueError("no score")

    session = client(budget=Budget(calls=2), scorer=broken, strict=False).session()
    run(session, 2)
    with pytest.raises(RunStopped):
        begin(session, 2)
    assert session.outcome == "stopped: budget"


def test_a_run_over_its_budget_gets_no_second_look() -> None:
    session = client(budget=Budget(calls=1), second_look="unchecked").session()
    run(session, 1)
    assert session.second_look(StepInput(completed=Step(thought="All tests pass, so I am done."))) is None
