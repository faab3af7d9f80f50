"""A stuck run gets a stronger model, or more effort, for a few calls, and goes back (LEVERS section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import AdapterCaps, Escalate, ReasonBlocks, SteeringSession
from reasonblocks.types import StepDecision, StepInput, StepLogEntry, StepOutcome
from tests.core.test_budget import completed
from tests.core.world import real, through_json

quick = settings(derandomize=True, deadline=None, database=None, max_examples=120)
STRONG = Escalate(model="strong", after=0, dwell=2, times=1)
STUCK = [False, *[True] * 20]
COOLDOWN = {"FAST": 5, "NORMAL": 3, "SLOW": 2, "SKIP": 2}


def client(escalate: Escalate | None = STRONG, **options: Any) -> ReasonBlocks:
    return real(**{"escalate": escalate, "e_traces_enabled": False, **options})


def decide(session: SteeringSession, number: int, dead: Sequence[bool]) -> StepDecision:
    done = completed(number - 1, dead=dead[number - 1]) if number else None
    return session.begin_step(StepInput(key=str(number), completed=done, default_model="own"))


def play(session: SteeringSession, dead: Sequence[bool]) -> list[StepLogEntry]:
    """Play a run in which step n is dead or not; one call more than steps is decided."""
    for number in range(len(dead) + 1):
        session.end_step(decide(session, number, dead), StepOutcome(model="m"))
    return session.step_log


def routes(escalate: Escalate | None, dead: Sequence[bool], **options: Any) -> list[str | None]:
    return [entry.route for entry in play(client(escalate, **options).session(), dead)]


def test_a_stuck_run_gets_the_model_for_its_dwell_and_goes_back() -> None:
    log = play(client().session(), STUCK)
    first = next(entry.step for entry in log if entry.gate_decision == "inject")
    assert [entry.step for entry in log if entry.route == "ESCALATE"] == [first, first + 1]


def test_it_waits_for_the_texts_that_did_not_help() -> None:
    twice = [*STUCK[:9], *[False] * 5, *STUCK[:9]]
    log = play(client(Escalate(model="strong", after=2, dwell=3, times=1)).session(), twice)
    told = [entry.step for entry in log if entry.gate_decision == "inject"]
    assert len(told) == 2
    first = next(entry.step for entry in log if entry.route == "ESCALATE")
    assert told[1] < first <= told[1] + max(COOLDOWN["NORMAL"], COOLDOWN["SLOW"])


def test_a_run_that_gets_on_is_never_escalated() -> None:
    assert set(routes(STRONG, [False] * 20)) == {None}


def test_it_goes_before_the_model_of_the_state() -> None:
    found = routes(STRONG, STUCK, model_routing={"NORMAL": "usual", "SLOW": "slow", "SKIP": "skip", "FAST": "fast"})
    assert found.count("ESCALATE") == 2
    assert None not in found[1:]


def test_an_observed_run_records_where_it_would_have_been_routed() -> None:
    session = client(mode="observe").session()
    log = play(session, STUCK)
    assert {entry.route for entry in log} == {None}
    steered = play(client().session(), STUCK)
    assert [entry.withheld_route for entry in log] == [entry.route for entry in steered]


def test_a_model_that_cannot_be_used_ends_the_escalation(caplog: pytest.LogCaptureFixture) -> None:
    session = client(Escalate(model="strong", after=0, dwell=9), strict=False).session()
    for number in range(12):
        decision = decide(session, number, STUCK)
        if decision.route == "ESCALATE":
            session.route_failed("ESCALATE", TypeError("no such model"))
        session.end_step(decision, StepOutcome(model="m"))
    assert {entry.route for entry in session.step_log} == {None}
    assert sum("the model for ESCALATE cannot be used" in record.message for record in caplog.records) == 1


# ------------------------------------------------------------ effort


EFFORT = Escalate(effort="high", after=0, dwell=2, times=1)


def efforts(escalate: Escalate, caps: AdapterCaps, **options: Any) -> list[tuple[str | None, str | None]]:
    """The routes and efforts of the calls that have one."""
    session = client(escalate, **options).session(caps=caps)
    found = []
    for number in range(9):
        decision = decide(session, number, STUCK)
        session.end_step(decision, StepOutcome(model="m"))
        found.append((decision.route, decision.effort))
    return [pair for pair in found if pair != (None, None)]


def test_the_agents_own_model_gets_more_effort() -> None:
    assert efforts(EFFORT, AdapterCaps(effort=True)) == [(None, "high")] * 2
    assert efforts(EFFORT, AdapterCaps(effort=True, routing="none")) == [(None, "high")] * 2
    assert efforts(EFFORT, AdapterCaps(effort=True), mode="observe") == []


def test_more_effort_leaves_the_model_of_the_state() -> None:
    routed = {"NORMAL": "usual", "SLOW": "slow", "SKIP": "skip", "FAST": "fast"}
    found = efforts(EFFORT, AdapterCaps(effort=True), model_routing=routed)
    assert [pair for pair in found if pair[1]] == [("NORMAL", "high")] * 2


def test_a_model_that_takes_no_effort_is_called_without(caplog: pytest.LogCaptureFixture) -> None:
    both = Escalate(model="strong", effort="high", after=0, dwell=3, times=1)
    session = client(both, strict=False).session(caps=AdapterCaps(effort=True))
    for number in range(10):
        decision = decide(session, number, STUCK)
        if decision.effort is not None:
            session.effort_failed(TypeError("strong has no effort"))
        session.end_step(decision, StepOutcome(model="m"))
    assert [entry.route for entry in session.step_log].count("ESCALATE") == 3
    assert {entry.effort for entry in session.step_log} == {None}
    assert sum("the effort 'high' is not asked for any more" in record.message for record in caplog.records) == 1


def test_an_observed_run_records_the_effort_that_it_was_not_given() -> None:
    session = client(EFFORT, mode="observe").session(caps=AdapterCaps(effort=True))
    log = play(session, STUCK)
    assert {(entry.effort, entry.route) for entry in log} == {(None, None)}
    assert [entry.withheld_effort for entry in log].count("high") == 2


def test_a_framework_without_efforts_or_models_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert efforts(EFFORT, AdapterCaps()) == []
    assert efforts(STRONG, AdapterCaps(routing="none")) == []
    assert [record.message.split(": ")[1] for record in caplog.records] == ["'custom' cannot do this"] * 2
    both = Escalate(model="strong", effort="high", after=0, dwell=2, times=1)
    assert efforts(both, AdapterCaps()) == [("ESCALATE", None)] * 2


def test_a_provider_that_refuses_the_effort_is_not_asked_for_it_again(caplog: pytest.LogCaptureFixture) -> None:
    session = client(Escalate(effort="high", after=0, dwell=4), strict=False).session(caps=AdapterCaps(effort=True))
    for number in range(9):
        decision = decide(session, number, STUCK)
        if decision.effort:
            session.withdraw(decision, 400)
            again = decide(session, number, STUCK)
            assert (again.replayed, again.effort) == (True, None)
        session.end_step(decision, StepOutcome(model="m"))
    assert sum("refused a call with it, HTTP 400" in record.message for record in caplog.records) == 1
    assert {entry.effort for entry in session.step_log} == {None}


# ------------------------------------------------------------ any run


RUNGS = {-1: (3, 3), 0: (4, 5), 1: (5, 6)}
"""The rungs beside "4 of 5", by the offset at which a run stands after texts that helped, or were needless."""


def _stated(log: Sequence[StepLogEntry], dead: Sequence[bool], offsets: Sequence[int], wanted: Escalate) -> list[int]:
    """An independent statement of the calls that are escalated, from the run's texts and its dead steps."""
    found: list[int] = []
    begun, until = 0, 0
    for entry, offset in zip(log[1:], offsets[1:], strict=True):
        step = entry.step
        texts = [one.step for one in log[:step] if one.gate_decision == "inject"]
        needed, of = RUNGS[offset]
        newest = dead[max(0, step - of) : step]
        rests = not texts or step - texts[-1] >= COOLDOWN[entry.fsm_state]
        stuck = newest[-1] and sum(newest) >= needed
        if begun < wanted.times and step >= until and len(texts) >= wanted.after and rests and stuck:
            begun, until = begun + 1, step + wanted.dwell
        found += [step] * (step < until)
    return found


@quick
@given(
    st.lists(st.sampled_from([True, True, True, False]), min_size=5, max_size=30),
    st.integers(0, 3),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_exactly_the_stated_calls_are_escalated(dead: list[bool], after: int, dwell: int, times: int) -> None:
    dead = [False, *dead]
    wanted = Escalate(model="strong", after=after, dwell=dwell, times=times)
    session, offsets = client(wanted, patience="4 of 5").session(), []
    for number in range(len(dead) + 1):
        session.end_step(decide(session, number, dead), StepOutcome(model="m"))
        offsets.append(session.trace.state.patience.offset)
    log = session.step_log
    escalated = [entry.step for entry in log if entry.route == "ESCALATE"]
    assert escalated == _stated(log, _really_dead(dead), offsets, wanted)


def _really_dead(dead: Sequence[bool]) -> list[bool]:
    """The first read of the same file is news, whatever was asked for."""
    first = dead.index(True) if True in dead else len(dead)
    return [is_dead and at != first for at, is_dead in enumerate(dead)]


@quick
@given(st.integers(1, 12), st.integers(0, 1))
def test_a_resumed_run_goes_on_where_it_was(at: int, after: int) -> None:
    wanted = Escalate(model="strong", after=after, dwell=3, times=2)
    whole = play(client(wanted).session(run_id="r"), STUCK)
    session = client(wanted).session(run_id="r")
    for number in range(at):
        session.end_step(decide(session, number, STUCK), StepOutcome(model="m"))
    resumed = client(wanted).session(snapshot=through_json(session.trace.snapshot()))
    for number in range(at, len(STUCK) + 1):
        resumed.end_step(decide(resumed, number, STUCK), StepOutcome(model="m"))
    assert [entry.route for entry in [*session.step_log, *resumed.step_log]] == [entry.route for entry in whole]
