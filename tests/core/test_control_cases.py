"""Single cases of stopped runs, second looks and notes, beside the random ones of `test_control_sequences`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.adapters import drive
from reasonblocks.events import RunFinish
from reasonblocks.exceptions import ConfigError, ProtocolError, RunStopped, StaleKey
from reasonblocks.types import AdapterCaps, Doubt, Evaluation, FSMState, Step, StepInput, StepOutcome, Usage
from reasonblocks_testing import RecordingSink
from tests.core.test_control_sequences import stopping
from tests.core.test_doubts import CLAIMS, CONTRADICTED, DONE, EDIT
from tests.core.test_second_look import client as looking
from tests.core.test_second_look import contradicted, look, looked, play
from tests.core.world import begin, called, client, final, found, hanging, run, speaks, step, through_json


def stop_of(rb: ReasonBlocks) -> SteeringSession:
    session = rb.session(run_id="r")
    run(session, 2)
    with pytest.raises(RunStopped):
        begin(session, 2, key="c")
    return session


def test_an_auxiliary_call_after_the_end_changes_no_outcome() -> None:
    session = stop_of(client(stop_when=stopping(2)))
    session.end_step(session.begin_step(StepInput(auxiliary=True)), StepOutcome(text="a summary"))
    session.finish("success", completed=step(1))
    assert (session.outcome, session.final is None) == ("stopped: enough", False)


@pytest.mark.parametrize("key", ["c", "d", None])
def test_whatever_follows_a_stop_is_stopped(key: str | None) -> None:
    session = stop_of(client(stop_when=stopping(2)))
    history = session.trace.state.difficulty_history
    with pytest.raises(RunStopped, match="enough"):
        begin(session, 2, key=key)
    assert (session.outcome, session.trace.state.difficulty_history) == ("stopped: enough", history)


def test_a_stopped_run_that_is_restored_is_over() -> None:
    sink = RecordingSink()
    rb = client(stop_when=stopping(2), second_look="unchecked", sinks=[sink])
    kept = through_json(stop_of(rb).trace.snapshot())
    with rb.session(snapshot=kept) as restored:
        assert restored.outcome == "stopped: enough"
        assert restored.second_look(StepInput(completed=step(1))) is None
        with pytest.raises(RunStopped):
            begin(restored, 2, key="c")
    rb.close()
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["stopped: enough"]


def test_an_outcome_of_a_stopped_call_is_no_entry() -> None:
    session = client(stop_when=stopping(1)).session()
    run(session, 1)
    decision = drive(session.begin_flow(StepInput(completed=step(0))))
    session.end_step(decision, called(1))
    assert [entry.step for entry in session.step_log] == [0]


def test_two_steps_at_once_do_not_outlive_a_stop() -> None:
    async def main() -> tuple[SteeringSession, list[object]]:
        def scorer(done: Step) -> float:
            time.sleep(0.02)
            return 0.4

        session = client(stop_when=stopping(1), scorer=scorer, strict=False).session()
        run(session, 1)
        both = (session.abegin_step(StepInput(key=key, completed=step(0))) for key in "ab")
        return session, await asyncio.gather(*both, return_exceptions=True)

    session, results = asyncio.run(main())
    assert [type(result) for result in results] == [RunStopped, RunStopped]
    assert session.outcome == "stopped: enough"


def test_the_end_of_another_run_does_not_end_this_one() -> None:
    def nested(done: Step) -> float:
        raise RunStopped("inner", "another")

    session = client(scorer=nested, strict=False).session()
    run(session, 3)
    assert (session.faults, session.outcome) == ({"the scorer": 2}, None)


def test_a_sink_that_raises_it_goes_on() -> None:
    class Sink(RecordingSink):
        def emit(self, event: Any) -> None:
            super().emit(event)
            raise RunStopped("inner", "another")

    sink = Sink()
    rb = client(sinks=[sink], strict=False)
    with rb.session() as session:
        run(session, 3)
    rb.close()
    assert len(sink.events) == 6


def test_over_budget_ends_a_run_that_cannot_be_scored_too() -> None:
    def broken(done: Step) -> float:
        raise ValueError("no score")

    session = client(stop_when="over_budget", token_budget=20, scorer=broken, strict=False).session()
    with pytest.raises(RunStopped):
        run(session, 9)
    assert (len(session.step_log), session.outcome) == (2, "stopped: over_budget")


def test_in_end_a_fault_ends_no_run_that_is_over_its_budget() -> None:
    def fails_later(done: Step) -> float:
        if done.tool_calls[0].id != "c0":
            raise ValueError("no score")
        return 0.4

    def to_end(state: FSMState, history: tuple[float, ...]) -> FSMState:
        return FSMState.END

    rb = client(stop_when="over_budget", token_budget=13, scorer=fails_later, transition=to_end, strict=False)
    session = rb.session()
    run(session, 4)
    assert [entry.skipped_reason for entry in session.step_log] == [None, "end", "fault", "fault"]
    assert session.outcome is None


def test_a_budget_that_nothing_counts_is_logged_once(caplog: Any) -> None:
    session = client(stop_when="over_budget", token_budget=20).session(run_id="r")
    for number in range(3):
        session.end_step(begin(session, number), StepOutcome(text=f"thought-{number}-"))
    assert [record.getMessage() for record in caplog.records] == [
        "run 'r': a call reported no tokens, so over_budget does not count it"
    ]


def test_a_gap_in_the_trouble_is_not_stalled() -> None:
    evaluations = [speaks(f"Text {at}. Advice.", monitor="semantic_loop") for at in range(30)]

    def scorer(done: Step) -> float:
        if done.tool_calls[0].id == "c3":
            raise ValueError("no score")
        return 0.4

    session = client(*evaluations, stop_when="stalled", scorer=scorer, strict=False).session()
    with pytest.raises(RunStopped):
        run(session, 30)
    assert len(session.step_log) == 12


def test_the_condition_sees_the_calls_that_only_the_completed_step_names() -> None:
    seen: list[tuple[str, ...]] = []

    def condition(view: Any) -> None:
        seen.append(view.step_log[-2].tool_calls)

    session = client(stop_when=condition).session()
    session.end_step(begin(session, 0), StepOutcome(text="thought-0-"))
    session.begin_step(StepInput(completed=Step(tool_calls=step(0).tool_calls)))
    assert seen == [("read_file",)]


def test_a_condition_that_fails_once_does_not_ask_a_person_again() -> None:
    def condition(view: Any) -> str:
        if view.step_log[-1].step == 2:
            raise ValueError("no answer")
        return "look"

    session = client(strict=False).session(interrupt_when=condition)
    assert [decision.interrupt for decision in run(session, 5)] == [None, "look", None, None, None]


def test_one_slow_step_counts_as_one_missed_deadline_of_on_injection() -> None:
    with hanging() as hang:
        rb = client(
            *[speaks(f"Text {at}.") for at in range(9)],
            store=lambda request: found(f"{request.tier}-a"),
            on_injection=hang,
            step_deadline_ms=60,
        )
        run(rb.session(), 2)
        assert hang.calls == 2


# ------------------------------------------------------------ the second look


def test_another_key_gives_no_other_look() -> None:
    session = contradicted()
    assert look(session, CLAIMS, key="a") is not None
    assert look(session, CLAIMS, key="b") is None
    assert len(session.trace.state.difficulty_history) == 3


def test_an_old_key_raises_nothing_at_the_end() -> None:
    session = contradicted()
    decision = looked(session, CLAIMS, key="call-2")
    assert (decision.step, decision.replayed) == (3, False)


def test_a_loop_without_keys_gets_its_look_from_begin_step_too() -> None:
    session = contradicted()
    look_ = session.second_look(StepInput(completed=CLAIMS))
    assert look_ is not None
    begun = session.begin_step(StepInput(completed=CLAIMS))
    assert (begun.replayed, begun.guidance, begun.step) == (True, look_.guidance, 3)
    assert [entry.error for entry in session.step_log] == [None] * 4


def test_a_run_that_is_to_be_stopped_gets_none() -> None:
    session = looking(stop_when="over_budget", token_budget=1).session(task="t")
    for at, (done, before) in enumerate(zip((EDIT, DONE), (None, EDIT), strict=True)):
        decision = session.begin_step(StepInput(key=f"k{at}", completed=before))
        usage = Usage(input=5) if at else None
        session.end_step(decision, StepOutcome(text=done.thought, tool_calls=done.tool_calls, usage=usage or Usage()))
    assert look(session, DONE) is None
    session.finish(completed=DONE)
    assert session.outcome == "success"


def test_a_text_that_was_sent_before_is_said_once_more() -> None:
    doubt = Evaluation(
        inject=True, intervention_text="Run it.", fired=("verification_skip",), scores={"verification_skip": 1.0},
        doubts=(Doubt(monitor="verification_skip", text="Run it."),), monitor="verification_skip",
    )  # fmt: skip
    caps = AdapterCaps(ephemeral=False, placements=frozenset({"context"}))
    session = client(doubt, doubt, second_look="unchecked").session(caps=caps)
    run(session, 2)
    decision = session.second_look(StepInput(completed=step(1)))
    assert decision is not None
    assert decision.guidance.startswith("[REASONBLOCKS]\nRun it.\n")


def test_a_look_that_fits_nowhere_is_none() -> None:
    session = looking().session(task="t", caps=AdapterCaps(max_guidance_chars=10))
    play(session, *CONTRADICTED)
    assert look(session, CLAIMS) is None
    assert session.trace.state.second_look is None


def test_in_a_system_placement_it_is_a_message_at_the_end() -> None:
    session = contradicted(placement="system")
    assert looked(session).placement == "message"
    kept = looking(placement="system").session(task="t", caps=AdapterCaps(placements=frozenset({"system"})))
    play(kept, *CONTRADICTED)
    assert looked(kept).placement == "system"


def test_an_observed_run_that_failed_records_none() -> None:
    session = contradicted(mode="observe")
    session.finish("failure: ValueError", completed=CLAIMS)
    assert final(session).withheld_texts == ()


def test_arguments_that_cannot_be_compared_harm_nothing() -> None:
    class Odd(dict[str, Any]):
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None

    def odd() -> Step:
        call = CONTRADICTED[1].tool_calls[0]
        return Step(thought="ok", tool_calls=(type(call)(id="c", name="run", arguments=Odd()),))

    session = looking().session(task="t")
    play(session, EDIT, odd())
    assert look(session, odd()) is None
    session.finish(completed=odd())
    assert session.outcome == "success"


# ------------------------------------------------------------ notes


@pytest.mark.parametrize("note", [None, {"note": "x"}, 7])
def test_a_note_is_text(note: Any) -> None:
    session = client().session()
    begin(session, 0)
    with pytest.raises(ConfigError, match="note"):
        session.add_note(note)


def test_a_note_comes_too_late_for_a_call_that_failed() -> None:
    session = client().session()
    session.end_step(begin(session, 0), StepOutcome(error="ConnectionError"))
    with pytest.raises(ProtocolError):
        session.add_note("Look.")


def test_notes_keep_their_order_and_stay_when_lessons_drop() -> None:
    session = client(store=lambda request: [*found("e3-a")] if request.tier == "e3" else []).session(
        caps=AdapterCaps(max_guidance_chars=140)
    )
    begin(session, 0)
    session.add_note("First.")
    decision = session.add_note("Second. " + "y" * 30)
    assert [injection.text[30:35] for injection in decision.injections] == ["First", "Secon"]
    assert decision.dropped == ("E3Injection",)
    assert session.add_note("First.") is decision


def test_while_steering_is_disabled_a_note_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    session = client().session()
    begin(session, 0)
    assert session.add_note("Look.").guidance == ""


def test_a_disabled_client_restores_nothing_of_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    session = client(speaks("Look.")).session()
    session.end_step(begin(session, 0, key="a"), called(0))
    assert begin(session, 1, key="b").guidance
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    restored = client().session(snapshot=through_json(session.trace.snapshot()))
    assert begin(restored, 1, key="b").guidance == ""


def test_an_older_key_is_still_refused() -> None:
    session = client(second_look="unchecked").session()
    for at, key in enumerate("abc"):
        session.end_step(begin(session, at, key=key), called(at))
    with pytest.raises(StaleKey):
        begin(session, 3, key="a")
