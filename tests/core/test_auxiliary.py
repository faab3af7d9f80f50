"""Model calls that are no steps, as a planner makes them: logged and counted, and no rule is spent on them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import call_key
from reasonblocks.events import StepEvent
from reasonblocks.exceptions import ProtocolError, SnapshotError
from reasonblocks.session import SteeringSession
from reasonblocks.types import Account, Patience, Step, StepDecision, StepInput, StepOutcome, ToolCall, Usage
from tests.core.steps import acted
from tests.core.world import RecordingSink, begin, called, client, final, found, real, run, speaks, step, through_json

PLANNED = StepOutcome(
    model="planner",
    usage=Usage(input=500, output=50),
    text="1. Read the parser. 2. Run the tests.",
    latency_ms=7.0,
    tool_calls=(ToolCall(id="p", name="plan"),),
)


def plan(session: SteeringSession, outcome: StepOutcome = PLANNED, key: str | None = None) -> StepDecision:
    decision = session.begin_step(StepInput(key=key, auxiliary=True))
    session.end_step(decision, outcome)
    return decision


def rich(**options: Any) -> ReasonBlocks:
    """A client that says something of every kind: monitors, lessons, standing rules, routes."""
    evaluations = [speaks(f"Text {at}. Advice.", failure_type="loop") for at in range(30)]
    return client(
        *evaluations,
        scorer=lambda completed: 0.1 if int(completed.tool_calls[0].id[1:]) % 12 < 5 else 0.7,
        store=lambda request: found(f"{request.tier}-a") if len(request.texts) != 2 else (),
        model_routing={"SLOW": "strong-model"},
        fsm_thresholds={"slow_window": 2},
        **options,
    )


def told(decision: StepDecision) -> StepDecision:
    """The decision, but for its call's number."""
    return replace(decision, step=0)


def interleaved(session: SteeringSession, dice: Random, calls: int) -> list[StepDecision]:
    decisions = []
    for number in range(calls):
        for _ in range(dice.choice((0, 0, 1, 2))):
            plan(session)
        decision = begin(session, number)
        session.end_step(decision, called(number))
        decisions.append(decision)
        if dice.random() < 0.3:
            plan(session, StepOutcome(error="RateLimited: later"))
    return decisions


@pytest.mark.parametrize("options", [{}, {"placement": "tail", "standing_rules": "run"}], ids=["system", "tail, run"])
def test_auxiliary_calls_anywhere_change_no_decision_and_no_guidance(options: dict[str, Any]) -> None:
    plain = rich(**options).session(run_id="same")
    wanted = [told(decision) for decision in run(plain, 16)]
    plain.finish(completed=step(15))
    assert {source for entry in plain.step_log for source in entry.injection_sources} > {"MonitorSteeringInjection"}
    for seed in range(20):
        session = rich(**options).session(run_id="same")
        dice = Random(seed)
        assert [told(decision) for decision in interleaved(session, dice, 16)] == wanted, f"seed {seed}"
        plan(session)
        session.finish(completed=step(15))
        assert session.final_decision is not None
        assert plain.final_decision is not None
        assert told(session.final_decision) == told(plain.final_decision)


def test_a_run_that_goes_on_elsewhere_after_an_auxiliary_call_decides_as_if_it_had_not_been() -> None:
    rb = rich()
    wanted = [told(decision) for decision in run(rich().session(run_id="same"), 9)]
    session, decisions = rb.session(run_id="same"), []
    for number in range(9):
        plan(session)
        session = rb.session(snapshot=through_json(session.trace.snapshot()))
        decisions.append(begin(session, number))
        session.end_step(decisions[-1], called(number))
    assert [told(decision) for decision in decisions] == wanted


def test_built_in_monitors_count_steps_and_not_auxiliary_calls() -> None:
    def texts(*, planned: bool) -> list[tuple[str, ...]]:
        session = real().session()
        same = acted("run_tests", output="3 failed", thought="I run the tests.")
        found = []
        for number in range(7):
            if planned:
                plan(session)
            decision = session.begin_step(StepInput(completed=same if number else None))
            session.end_step(decision, StepOutcome(text=same.thought, tool_calls=same.tool_calls))
            found.append(session.step_log[-1].intervention_texts)
        return found

    assert any(
        "has failed in the same way 5 times (your last step" in text for entry in texts(planned=True) for text in entry
    )
    assert texts(planned=True) == texts(planned=False)


def test_standing_rules_are_for_the_first_step_where_planning_comes_first() -> None:
    session = client(store=lambda request: found("e3-a") if request.tier == "e3" else ()).session()
    planning = plan(session)
    first = begin(session, 0)
    assert (planning.guidance, planning.injections) == ("", ())
    assert "e3-a always holds" in first.guidance


def test_an_auxiliary_call_gets_no_standing_rules_of_the_run() -> None:
    rb = client(store=lambda request: found("e3-a") if request.tier == "e3" else (), standing_rules="run")
    session = rb.session()
    run(session, 2)
    assert (plan(session).standing_rules, begin(session, 2).standing_rules != "") == ("", True)


def test_every_call_has_its_entry_and_an_auxiliary_one_says_so() -> None:
    session = client().session()
    plan(session)
    session.end_step(begin(session, 0), called(0))
    plan(session)
    session.end_step(begin(session, 1), called(1))
    session.finish(completed=step(1))
    assert [entry.step for entry in session.step_log] == [0, 1, 2, 3]
    assert [entry.skipped_reason for entry in session.step_log] == ["auxiliary", None, "auxiliary", None]
    assert [entry.thought_preview for entry in session.step_log] == ["", "", "", "thought-0-"]
    assert (final(session).step, final(session).thought_preview) == (4, "thought-1-")


def test_tokens_and_time_of_an_auxiliary_call_are_logged_and_count_towards_the_budget() -> None:
    session = client(token_budget=1_000).session()
    plan(session)
    entry = session.step_log[0]
    assert (entry.model_id, entry.tokens, entry.latency_ms, entry.tool_calls) == ("planner", 550, 7.0, ("plan",))
    assert session.trace.get_budget_used() == 0.55


def test_the_answer_that_waits_for_its_step_is_not_the_planners() -> None:
    session = client().session()
    session.end_step(begin(session, 0), called(0))
    plan(session)
    session.begin_step(StepInput(completed=Step(tool_results=step(0).tool_results)))
    assert session.step_log[-1].thought_preview == "thought-0-"


def test_what_an_auxiliary_call_is_given_as_completed_is_the_next_steps() -> None:
    session = client().session()
    session.end_step(begin(session, 0), called(0))
    session.begin_step(StepInput(completed=step(0, thought="too early"), auxiliary=True))
    assert session.step_log[-1].difficulty is None
    session.begin_step(StepInput(completed=step(0)))
    assert session.step_log[-1].thought_preview == "thought-0-"


def test_a_run_of_auxiliary_calls_alone_has_no_final_step() -> None:
    session = client().session()
    plan(session)
    session.finish(completed=step(0))
    assert (session.final, session.outcome) == (None, "success")


def test_a_step_that_is_tried_again_after_an_auxiliary_call_keeps_its_decision() -> None:
    session = client(speaks("Stop. Look.")).session()
    session.end_step(begin(session, 0, key="a"), called(0))
    first = begin(session, 1, key="b")
    session.end_step(first, StepOutcome(error="ConnectionError"))
    plan(session)
    again = begin(session, 1, key="b")
    session.end_step(again, called(1))
    assert (again.replayed, again.step, again.guidance) == (True, 1, first.guidance)
    assert [entry.attempts for entry in session.step_log] == [1, 2, 1]
    session.begin_step(StepInput())
    assert session.step_log[-1].thought_preview == "thought-1-"


def test_an_auxiliary_call_that_is_tried_again_keeps_its_entry() -> None:
    session = client().session()
    plan(session, StepOutcome(error="ConnectionError"), key="plan")
    assert plan(session, key="plan").replayed
    assert [(entry.attempts, entry.error) for entry in session.step_log] == [(2, None)]


def test_keys_of_auxiliary_calls_and_of_steps_are_not_taken_for_each_other() -> None:
    session = client().session()
    plan(session, key="one")
    assert not begin(session, 0, key="one").replayed
    assert not plan(session, key="one").replayed


def test_an_auxiliary_call_without_a_key_is_always_another_one() -> None:
    session = client().session()
    assert [plan(session).step, plan(session).step] == [0, 1]


def test_the_kits_key_of_a_step_is_the_same_with_and_without_auxiliary_calls() -> None:
    session = client().session()
    keys = []
    for number in range(3):
        plan(session)
        keys.append(call_key(session.trace.state))
        session.end_step(begin(session, number, key=keys[-1]), called(number))
    assert keys == ["call-0", "call-1", "call-2"]


def test_the_event_of_an_auxiliary_call_has_its_tokens_and_no_step() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    with rb.session() as session:
        session.end_step(begin(session, 0), called(0))
        plan(session)
        session.end_step(begin(session, 1), called(1))
    rb.close()
    events = [event for event in sink.events if isinstance(event, StepEvent)]
    told = [(event.step_index, event.thought, event.tokens) for event in events]
    assert told == [(0, "", 12), (1, "", 550), (2, "thought-0-", 12), (3, "thought-1-", None)]
    assert events[1].metadata["skipped_reason"] == "auxiliary"


def test_an_event_loop_decides_alike() -> None:
    async def main() -> list[StepDecision]:
        session, decisions = rich().session(run_id="same"), []
        for number in range(9):
            session.end_step(await session.abegin_step(StepInput(auxiliary=True)), PLANNED)
            completed = step(number - 1) if number else None
            decision = await session.abegin_step(StepInput(completed=completed, default_model="agent-model"))
            session.end_step(decision, called(number))
            decisions.append(told(decision))
        return decisions

    assert asyncio.run(main()) == [told(decision) for decision in run(rich().session(run_id="same"), 9)]


def test_disabled_an_auxiliary_call_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    session = client().session()
    plan(session)
    begin(session, 0)
    assert [entry.skipped_reason for entry in session.step_log] == ["auxiliary", "disabled"]


def test_what_is_neither_true_nor_false_is_no_mark() -> None:
    wrong: Any = "planning"
    with pytest.raises(ProtocolError, match=r"auxiliary.*'planning'"):
        client().session().begin_step(StepInput(auxiliary=wrong))


def test_a_snapshot_from_before_there_were_auxiliary_calls_is_read() -> None:
    rb = rich()
    session = rb.session(run_id="same")
    run(session, 4)
    snapshot = through_json(session.trace.snapshot())
    later = ("account", "patience")
    older = {name: value for name, value in snapshot.items() if "auxiliary" not in name and name not in later}
    resumed = rb.session(snapshot={**older, "version": 2})
    empty = replace(session.trace.state, memories={}, account=Account(), patience=Patience())
    assert resumed.trace.state == empty


def test_more_auxiliary_calls_than_calls_are_refused() -> None:
    rb = client()
    snapshot = {**through_json(rb.session().trace.snapshot()), "auxiliary_calls": 1}
    with pytest.raises(SnapshotError, match="at most the 0 calls"):
        rb.session(snapshot=snapshot)


def test_a_planner_by_hand_is_steered_in_its_steps_alone() -> None:
    """A loop that plans before its first step and every third one, as an adapter would tell it."""
    session = client(store=lambda request: found("e3-a") if request.tier == "e3" else ()).session(task="Fix it.")
    asked: list[tuple[str, bool]] = []
    with session:
        for number in range(6):
            if number % 3 == 0:
                decision = session.begin_step(StepInput(auxiliary=True, default_model="planner"))
                asked.append(("plan", decision.guidance != ""))
                session.end_step(decision, PLANNED)
            decision = begin(session, number, key=call_key(session.trace.state))
            asked.append(("step", decision.guidance != ""))
            session.end_step(decision, called(number))
    assert asked == [("plan", False), ("step", True), *[("step", False)] * 2, ("plan", False), *[("step", False)] * 3]
    assert len(session.step_log) == 8


def test_a_step_that_another_process_takes_over_after_an_auxiliary_call_has_its_entry() -> None:
    rb = client()
    session = rb.session()
    session.end_step(begin(session, 0, key="a"), called(0))
    begin(session, 1, key="b")
    elsewhere = rb.session(snapshot=through_json(session.trace.snapshot()))
    plan(elsewhere)
    elsewhere.end_step(begin(elsewhere, 1, key="b"), called(1))
    elsewhere.end_step(begin(elsewhere, 2, key="c"), called(2))
    entries = [(entry.step, entry.attempts, entry.tokens) for entry in elsewhere.step_log]
    assert entries == [(1, 1, 12), (2, 1, 550), (3, 1, 12)]


class Wordy:
    """A monitor that fires without evidence of its own, and keeps what it was asked to speak of."""

    name = failure_type = "wordy"

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def observe(self, step: Step, memory: Any, run: Any) -> tuple[float, None, tuple[int, ...]]:
        return 0.9, None, ()

    def say(self, evidence: tuple[int, ...], rung: int) -> str:
        self.asked.append(evidence)
        return f"Look at step {evidence[-1]}."


@pytest.mark.parametrize("planned", [0, 3])
def test_a_monitor_of_the_callers_is_told_the_step_and_not_the_call_where_it_named_none(planned: int) -> None:
    wordy = Wordy()
    session = real(monitors=[wordy], scorer=lambda completed: 0.4).session()
    session.end_step(begin(session, 0), called(0))
    for _ in range(planned):
        plan(session)
    begin(session, 1)
    assert wordy.asked == [(0,)]
