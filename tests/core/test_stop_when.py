"""`stop_when` ends a run before its next call, with its reason as the outcome (BEHAVIOUR section 9)."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks.engine.control import is_stalled
from reasonblocks.events import RunFinish, StepEvent
from reasonblocks.exceptions import BadAnswer, ConfigError, ProtocolError, RunStopped
from reasonblocks.types import AdapterCaps, FSMState, Injected, StepInput, StepRecord, TraceState
from tests.core.world import RecordingSink, begin, called, client, final, hanging, run, speaks, step, through_json

quick = settings(derandomize=True, deadline=None, database=None, max_examples=300)
MONITORS = ("semantic_loop", "late_sprawl")
FIRED = [frozenset(MONITORS[:count]) for count in (0, 1, 1, 1, 2, 2, 2)]
"""Mostly with the first one, so that trouble that lasts is not rare."""


def at_call(number: int, reason: str = "enough") -> Callable[[Any], str | None]:
    """A condition that holds before call `number`, and later."""
    return lambda view: reason if len(view.step_log) > number else None


# ------------------------------------------------------------ how a run ends


@pytest.mark.parametrize("way", ["sync", "async"])
def test_begin_step_raises_and_the_run_is_over(way: str) -> None:
    session = client(stop_when=at_call(2)).session(run_id="r")
    run(session, 2)
    given = StepInput(completed=step(1))
    with pytest.raises(RunStopped, match="run 'r' was stopped: enough") as stopped:
        session.begin_step(given) if way == "sync" else asyncio.run(session.abegin_step(given))
    assert (stopped.value.reason, stopped.value.run_id) == ("enough", "r")
    assert session.outcome == "stopped: enough"
    assert [entry.step for entry in session.step_log] == [0, 1]
    assert (final(session).step, final(session).stop, final(session).gate_decision) == (2, "enough", "final")
    assert final(session).difficulty is not None


def test_the_error_survives_a_pickle() -> None:
    again = pickle.loads(pickle.dumps(RunStopped("enough", "r")))
    assert (again.reason, again.run_id, str(again)) == ("enough", "r", "run 'r' was stopped: enough")


def test_a_stopped_run_stays_as_it_ended() -> None:
    sink = RecordingSink()
    rb = client(stop_when=at_call(2), sinks=[sink])
    with pytest.raises(RunStopped), rb.session() as session:
        run(session, 3)
    session.finish("success")
    session.finish("failure: Late")
    rb.close()
    assert session.outcome == "stopped: enough"
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["stopped: enough"]
    steps = [event for event in sink.events if isinstance(event, StepEvent)]
    assert [event.step_index for event in steps] == [0, 1, 2]
    assert (steps[2].metadata["final"], steps[2].metadata["stop"]) == (True, "enough")


def test_a_failure_that_was_marked_is_the_outcome_of_a_stopped_run() -> None:
    session = client(stop_when=at_call(1)).session()
    run(session, 1)
    session.mark_failure("failure: tests")
    with pytest.raises(RunStopped):
        begin(session, 1)
    assert session.outcome == "failure: tests"


def test_the_same_key_gives_the_same_end_and_judges_nothing_again() -> None:
    asked: list[int] = []

    def condition(view: Any) -> str | None:
        asked.append(len(view.step_log))
        return "enough" if len(asked) == 2 else None

    rb = client(stop_when=condition)
    session = rb.session()
    session.end_step(begin(session, 0, key="a"), called(0))
    session.end_step(begin(session, 1, key="b"), called(1))
    for _ in range(2):
        with pytest.raises(RunStopped):
            begin(session, 2, key="c")
    restored = rb.session(snapshot=through_json(session.trace.snapshot()))
    with pytest.raises(RunStopped, match="enough"):
        begin(restored, 2, key="c")
    assert asked == [2, 3]
    assert restored.step_log == []


def test_the_first_call_and_an_auxiliary_one_are_never_stopped() -> None:
    session = client(stop_when=lambda view: "at once").session()
    run(session, 1)
    assert (session.step_log[0].stop, session.begin_step(StepInput(auxiliary=True)).stop) == (None, None)


def test_nothing_is_injected_into_a_run_that_ends() -> None:
    session = client(speaks("Look."), stop_when=at_call(1)).session()
    run(session, 1)
    with pytest.raises(RunStopped):
        begin(session, 1)
    assert session.trace.state.injected == ()
    assert final(session).monitors_fired == ("semantic_loop",)


def test_a_guard_lets_the_end_pass() -> None:
    session = client(stop_when=at_call(1)).session()
    run(session, 1)
    with pytest.raises(RunStopped), session.guard("deciding a call"):
        begin(session, 1)


def test_a_stopped_run_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    session = client(stop_when=at_call(1)).session(run_id="r")
    run(session, 1)
    for _ in range(2):
        with pytest.raises(RunStopped):
            begin(session, 1, key=None)
    assert [record.getMessage() for record in caplog.records] == ["run 'r': stopped after 1 call: enough"]


# ------------------------------------------------------------ the caller's condition


def test_the_condition_sees_the_entry_of_the_call_to_come() -> None:
    seen: list[tuple[int, str, tuple[str, ...], int]] = []

    def condition(view: Any) -> None:
        entry = view.step_log[-1]
        seen.append((entry.step, entry.fsm_state, entry.monitors_fired, view.trace.state.total_tokens))
        assert (view.run_id, view.outcome, view.final) == ("r", None, None)
        with pytest.raises(ProtocolError, match="while one of its steps"):
            view.trace.restore(view.trace.snapshot())

    run(client(speaks("Look."), stop_when=condition).session(run_id="r"), 3)
    assert seen == [(1, "NORMAL", ("semantic_loop",), 12), (2, "NORMAL", (), 24)]


@pytest.mark.parametrize("answer", [True, 7, b"enough", ["enough"]])
def test_a_condition_that_answers_nonsense_is_a_fault_and_the_run_goes_on(answer: Any) -> None:
    session = client(stop_when=lambda view: answer, strict=False).session()
    run(session, 3)
    assert (session.faults, session.trace.state.calls) == ({"stop_when": 2}, 3)
    with pytest.raises(BadAnswer, match="stop_when is"):
        run(client(stop_when=lambda view: answer).session(), 2)


@pytest.mark.parametrize("error", [ValueError("no"), RunStopped("me", "r")])
def test_a_condition_that_raises_is_a_fault_and_the_step_is_steered(error: Exception) -> None:
    def condition(view: Any) -> str | None:
        raise error

    session = client(speaks("Look."), stop_when=condition, strict=False).session()
    assert run(session, 2)[1].gate_decision == "inject"
    assert session.faults == {"stop_when": 1}


def test_a_condition_that_hangs_costs_at_most_the_deadline() -> None:
    with hanging() as hang:
        session = client(stop_when=hang, step_deadline_ms=60).session()
        decisions = run(session, 6)
        assert [decision.skipped_reason for decision in decisions][1:] != ["fault"] * 5
        assert hang.calls == 3
        assert max(entry.overhead_ms for entry in session.step_log) < 5_000


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b"])
def test_a_blank_reason_ends_nothing(blank: str) -> None:
    assert len(run(client(stop_when=lambda view: blank).session(), 3)) == 3


def test_a_reason_is_one_bounded_line() -> None:
    session = client(stop_when=lambda view: "it\nfailed\u202e " + "x" * 9_000).session()
    run(session, 1)
    with pytest.raises(RunStopped) as stopped:
        begin(session, 1)
    assert stopped.value.reason.startswith("it failed xxx")
    assert len(stopped.value.reason) <= 500


# ------------------------------------------------------------ the conditions with a name


def plainly_stalled(state: FSMState, told: list[tuple[int, str]], fired: list[frozenset[str]]) -> bool:
    """Section 9, said once more: steps 0 to n fired these monitors; `told` are (call, monitor)."""
    if state is FSMState.SKIP:
        return True
    for monitor in MONITORS:
        calls = [call for call, name in told if name == monitor]
        after = [step for step in range(len(fired)) if calls and step >= calls[0]]
        if len(after) >= 8 and all(monitor in fired[step] for step in after[-8:]):
            return True
    return False


@quick
@given(
    st.sampled_from([FSMState.NORMAL, FSMState.SLOW, FSMState.SKIP, FSMState.FAST]),
    st.lists(st.sampled_from(MONITORS), max_size=5),
    st.lists(st.sampled_from(FIRED), min_size=1, max_size=14),
    st.randoms(use_true_random=False),
)
def test_stalled_is_skip_or_the_same_trouble_8_steps_after_a_text(
    state: FSMState, monitors: list[str], fired: list[frozenset[str]], dice: Any
) -> None:
    calls = sorted(dice.sample(range(1, len(fired) + 5), len(monitors)))
    told = list(zip(calls, monitors, strict=True))
    records = tuple(
        StepRecord(step=at, text="", action="", action_input="", observation="", is_error=None, difficulty=0.4,
                   fired=tuple(sorted(names)))
        for at, names in enumerate(fired)
    )  # fmt: skip
    trace = TraceState(
        trace_id="r",
        current_state=state,
        steps=records[-8:],
        injected=tuple(Injected(step=call, monitor=monitor) for call, monitor in told),
    )
    assert is_stalled(trace) is plainly_stalled(state, told, fired)


def test_a_run_whose_loop_lasts_after_a_text_is_stalled() -> None:
    evaluations = [speaks(f"Text {at}. Advice.", monitor="semantic_loop") for at in range(30)]
    session = client(*evaluations, stop_when="stalled", scorer=lambda done: 0.4).session()
    with pytest.raises(RunStopped, match="stalled"):
        run(session, 30)
    told = [entry.step for entry in session.step_log if entry.intervention_texts]
    assert (told, len(session.step_log)) == ([1, 4, 7], 9)


def test_a_run_in_skip_is_stalled() -> None:
    windows = {"slow_window": 1, "skip_window": 2}
    session = client(stop_when="stalled", scorer=lambda done: 0.9, fsm_thresholds=windows).session()
    with pytest.raises(RunStopped):
        run(session, 9)
    assert final(session).fsm_state == "SKIP"


def test_a_run_that_is_over_its_budget_is_stopped() -> None:
    session = client(stop_when="over_budget", token_budget=24).session()
    with pytest.raises(RunStopped, match="over_budget"):
        run(session, 9)
    assert [session.trace.get_budget_used(), len(session.step_log)] == [36 / 24, 3]


# ------------------------------------------------------------ observing, frameworks that cannot, wrong values


def test_an_observed_run_goes_on_and_the_log_says_where_it_would_have_ended() -> None:
    session = client(stop_when=at_call(2), mode="observe").session()
    run(session, 5)
    session.finish(completed=step(4))
    assert [entry.withheld_stop for entry in session.step_log] == [None, None, "enough", "enough", "enough"]
    assert (session.outcome, {entry.stop for entry in session.step_log}) == ("success", {None})


def test_a_framework_that_cannot_end_a_run_goes_on_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    rb = client(stop_when=at_call(1), second_look="unchecked")
    session = rb.session(run_id="r", caps=AdapterCaps(stop=False, second_look=False))
    run(session, 4)
    assert session.second_look(StepInput(completed=step(3))) is None
    assert [record.getMessage() for record in caplog.records] == [
        "run 'r': 'custom' cannot do this: stop_when has no effect on this run",
        "run 'r': 'custom' cannot do this: second_look has no effect on this run",
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [("stuck", "'stalled'|stalled"), ("", "unknown"), (3, "callable"), ("over_budget", "token_budget")],
)
def test_a_wrong_condition_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ReasonBlocks(stop_when=value)
    with pytest.raises(ConfigError, match="interrupt_when"):
        ReasonBlocks().session(interrupt_when=value)


# ------------------------------------------------------------ asking a person


def test_a_person_is_asked_once_as_long_as_the_condition_holds() -> None:
    holding = {2, 3, 4, 6}

    def condition(view: Any) -> str | None:
        return "look" if view.step_log[-1].step in holding else None

    session = client().session(interrupt_when=condition)
    assert [decision.interrupt for decision in run(session, 8)] == [None, None, "look", None, None, None, "look", None]
    assert [entry.interrupt for entry in session.step_log] == [None, None, "look", None, None, None, "look", None]


def test_an_observed_run_asks_nobody() -> None:
    session = client(mode="observe").session(interrupt_when=lambda view: "look")
    assert [decision.interrupt for decision in run(session, 4)] == [None] * 4
    assert [entry.withheld_interrupt for entry in session.step_log] == [None, "look", None, None]


def test_that_a_person_was_asked_survives_a_snapshot() -> None:
    rb = client()
    session = rb.session(interrupt_when=lambda view: "look")
    run(session, 2)
    restored = rb.session(snapshot=through_json(session.trace.snapshot()), interrupt_when=lambda view: "look")
    assert [decision.interrupt for decision in run(restored, 4, start=2)] == [None, None]


def test_an_end_comes_before_a_question() -> None:
    session = client(stop_when=at_call(1)).session(interrupt_when=lambda view: "look")
    run(session, 1)
    with pytest.raises(RunStopped):
        begin(session, 1)
    assert all(first.step < second.step for first, second in pairwise(session.step_log))
