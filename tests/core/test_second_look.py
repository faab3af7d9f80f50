"""An agent whose own end is in doubt gets one more call, if its user asked for it (BEHAVIOUR section 9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.events import RunFinish
from reasonblocks.exceptions import ProtocolError
from reasonblocks.types import Doubt, Evaluation, Step, StepDecision, StepInput, StepOutcome, Usage
from reasonblocks_testing import RecordingSink
from tests.core.steps import acted
from tests.core.test_doubts import CLAIMS, CONTRADICTED, DONE, EDIT, FAILS, HONEST, PASSES, UNCHECKED, spoken
from tests.core.world import Scores, ScriptedEvaluator, ScriptedReasonBlocks, final, found, real, through_json
from tests.core.world import client as scripted

CORRECTED = (PASSES, Step(thought="The tests pass now: 12 passed."))


def client(**options: Any) -> ReasonBlocks:
    return real(**{"second_look": True, **options})


def play(session: SteeringSession, *steps: Step, done: Step | None = None, first: int = 0) -> None:
    """Make the calls that lead to these steps; `done` is the step before them."""
    for at, step in enumerate(steps, first):
        session.end_step(session.begin_step(StepInput(key=f"call-{at}", completed=done)), spoken(step))
        done = step


def look(session: SteeringSession, last: Step, key: str = "look") -> StepDecision | None:
    return session.second_look(StepInput(key=key, completed=last))


def contradicted(**options: Any) -> SteeringSession:
    """A run after a check that failed, which its last step denies."""
    session = client(**options).session(run_id="r", task="t")
    play(session, *CONTRADICTED)
    return session


def looked(session: SteeringSession, last: Step = CLAIMS, key: str = "look") -> StepDecision:
    """The decision of the second look that a run gets."""
    decision = look(session, last, key)
    assert decision is not None
    return decision


# ------------------------------------------------------------ when there is one


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [(True, CONTRADICTED), ("doubt", CONTRADICTED), ("unchecked", CONTRADICTED), ("unchecked", UNCHECKED)],
)
def test_a_doubtful_end_gets_one_more_call_with_the_doubts_text(wanted: bool | str, steps: tuple[Step, ...]) -> None:
    before = client(second_look=False).session(task="Fix the tests.")
    play(before, *steps)
    assert look(before, steps[-1]) is None
    before.finish(completed=steps[-1])
    assert before.final is not None
    (doubt, *_) = before.final.doubts
    session = client(second_look=wanted).session(task="Fix the tests.")
    play(session, *steps)
    decision = looked(session, steps[-1])
    assert doubt.text in decision.guidance
    assert (decision.gate_decision, decision.step, session.outcome) == ("inject", len(steps), None)


def test_a_run_that_checks_after_its_second_look_ends_without_a_doubt() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    session = rb.session(task="Fix the tests.")
    play(session, *CONTRADICTED)
    assert look(session, CLAIMS, key="call-3") is not None
    play(session, *CORRECTED, done=CLAIMS, first=3)
    assert look(session, CORRECTED[-1], key="call-5") is None
    session.finish(completed=CORRECTED[-1])
    rb.close()
    assert [entry.step for entry in session.step_log] == [0, 1, 2, 3, 4]
    assert len(session.step_log[3].intervention_texts) == 1
    assert (final(session).doubts, session.outcome) == ((), "success")
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["success"]


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        ("doubt", UNCHECKED),
        *[("unchecked", steps) for steps in ((EDIT, PASSES, CLAIMS), (FAILS, HONEST), (EDIT,))],
    ],
)
def test_an_end_without_such_a_doubt_gets_none(wanted: str, steps: tuple[Step, ...]) -> None:
    session = client(second_look=wanted).session(task="Fix the tests.")
    play(session, *steps)
    assert look(session, steps[-1]) is None
    session.finish(completed=steps[-1])
    assert (session.outcome, len(session.step_log)) == ("success", len(steps))


def test_there_is_at_most_one_in_a_run() -> None:
    session = contradicted()
    assert session.wants_second_look
    assert look(session, CLAIMS, key="call-3") is not None
    assert not session.wants_second_look
    play(session, CLAIMS, done=CLAIMS, first=3)
    assert look(session, CLAIMS, key="call-4") is None
    session.finish(completed=CLAIMS)
    assert final(session).doubts


def test_an_answer_alone_does_not_settle_the_doubt(caplog: pytest.LogCaptureFixture) -> None:
    session = contradicted()
    second = looked(session, key="call-3")
    ok = Step(thought="Ok.")
    play(session, ok, done=CLAIMS, first=3)
    assert look(session, ok, key="call-4") is None
    session.finish(completed=ok)
    (doubt,) = final(session).doubts
    assert doubt.monitor == "claim_contradiction"
    assert "The newest check, 1 step before this answer, failed" in second.guidance
    assert len(caplog.records) == 1


def test_cap_and_cooldown_do_not_prevent_it_and_it_counts_as_an_injection() -> None:
    session = client().session(task="Fix the tests.")
    reads = [acted("read_file", {"path": f"{at}.py"}, f"text {at}") for at in range(15)]
    play(session, EDIT, *[one for at in (0, 5, 10) for one in (*reads[at : at + 5], *[FAILS] * 5)], CLAIMS)
    told = len(session.trace.state.injected)
    assert told == 3
    assert look(session, CLAIMS) is not None
    assert len(session.trace.state.injected) == told + 1
    assert session.trace.state.injected[-1].monitor == "claim_contradiction"


def test_a_loop_without_keys_asks_with_nothing_but_what_end_step_stored() -> None:
    session = client().session(task="Fix the tests.")
    for step, before in zip(CONTRADICTED, (None, *CONTRADICTED)):
        session.end_step(session.begin_step(StepInput(completed=before)), spoken(step))
    assert session.second_look() is not None


def test_on_an_event_loop_it_is_the_same() -> None:
    async def main() -> StepDecision | None:
        return await contradicted().asecond_look(StepInput(completed=CLAIMS))

    decision = asyncio.run(main())
    assert decision is not None
    assert decision.guidance


def test_the_user_may_reword_or_prevent_it() -> None:
    reworded = contradicted(on_injection=lambda injection, run: "Run the tests.")
    assert looked(reworded).guidance == "[REASONBLOCKS]\nRun the tests."
    prevented = contradicted(on_injection=lambda injection, run: None)
    assert look(prevented, CLAIMS) is None
    prevented.finish(completed=CLAIMS)
    assert prevented.outcome == "success"


def test_it_is_routed_like_any_call() -> None:
    routed = {"fsm_thresholds": {"slow_window": 1}, "model_routing": {"SLOW": "strong"}}
    assert looked(contradicted(scorer=lambda step: 0.9, **routed)).route == "SLOW"


# ------------------------------------------------------------ what it leaves alone


def test_the_last_step_is_scored_and_evaluated_once() -> None:
    both: tuple[tuple[Step, ...], ...] = (CONTRADICTED, (EDIT, PASSES, CLAIMS))
    for steps in both:
        scorer = Scores()
        session = client(scorer=scorer).session(task="t")
        play(session, *steps)
        if look(session, steps[-1], key="call-3") is not None:
            play(session, CORRECTED[-1], done=steps[-1], first=3)
            look(session, CORRECTED[-1], key="call-4")
            steps = (*steps, CORRECTED[-1])
        session.finish(completed=steps[-1])
        assert [step.thought for step in scorer.seen] == [step.thought for step in steps]
        assert final(session).difficulty == 0.4


def test_a_run_without_one_ends_as_if_nobody_had_asked() -> None:
    logs = []
    for option in (True, False):
        session = client(second_look=option).session(task="t")
        play(session, EDIT, PASSES, CLAIMS)
        look(session, CLAIMS)
        session.finish(completed=CLAIMS)
        logs.append({**final(session).as_dict(), "timestamp": 0, "overhead_ms": 0})
    assert logs[0] == logs[1]


def test_a_step_that_changed_since_is_judged_anew() -> None:
    session = client().session(task="t")
    play(session, EDIT, PASSES, CLAIMS)
    assert look(session, CLAIMS) is None
    session.finish(completed=HONEST)
    assert final(session).thought_preview == HONEST.thought


def test_the_same_key_gives_the_same_look_also_in_another_process() -> None:
    rb = client()
    session = rb.session(task="t")
    play(session, *CONTRADICTED)
    first, again = looked(session), looked(session)
    assert (again.replayed, again.guidance) == (True, first.guidance)
    restored = rb.session(snapshot=through_json(session.trace.snapshot()), task="t")
    begun = restored.begin_step(StepInput(key="look", completed=CLAIMS))
    assert (begun.replayed, begun.guidance) == (True, first.guidance)
    restored.end_step(begun, spoken(CLAIMS))
    assert look(restored, CLAIMS, key="end") is None


def test_an_observed_run_has_none_and_records_its_text() -> None:
    session = contradicted(mode="observe")
    assert not session.wants_second_look
    assert look(session, CLAIMS) is None
    session.finish(completed=CLAIMS)
    assert final(session).withheld_sources == ("MonitorSteeringInjection",)
    assert final(session).doubts[0].text in final(session).withheld_texts[0]


def test_a_run_that_has_ended_has_none() -> None:
    session = contradicted()
    session.finish(completed=CLAIMS)
    assert look(session, CLAIMS) is None
    assert client().session().second_look() is None


def test_while_steering_is_disabled_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    session = contradicted()
    assert look(session, CLAIMS) is None


def test_a_fault_means_none_and_the_run_ends_as_usual() -> None:
    def scorer(step: Step) -> float:
        if step is CLAIMS:
            raise RuntimeError("no score")
        return 0.4

    session = contradicted(scorer=scorer, strict=False)
    assert look(session, CLAIMS) is None
    session.finish(completed=CLAIMS)
    assert (session.outcome, session.faults["the scorer"]) == ("success", 1)


def test_doubts_of_other_monitors_do_not_lead_to_one() -> None:
    other = Evaluation(doubts=(Doubt(monitor="late_sprawl", text="It sprawls."),))
    rb = ScriptedReasonBlocks(evaluator=ScriptedEvaluator([other] * 3), strict=True, second_look=True)
    session = rb.session(task="t")
    play(session, EDIT, DONE)
    assert look(session, DONE) is None


# ------------------------------------------------------------ the log line of a doubtful success


def test_a_success_in_doubt_is_logged_once_without_its_texts(caplog: pytest.LogCaptureFixture) -> None:
    session = contradicted(second_look=False)
    session.finish(completed=CLAIMS)
    session.finish("success")
    assert [record.getMessage() for record in caplog.records] == [
        "run 'r': ended as \"success\", but its last step is in doubt (claim_contradiction): see final.doubts"
    ]


def test_a_failure_or_an_end_without_doubts_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    for outcome, steps in (("failure: ValueError", CONTRADICTED), ("success", (EDIT, PASSES, CLAIMS))):
        session = client(second_look=False).session(task="t")
        play(session, *steps)
        session.finish(outcome, completed=steps[-1])
    assert caplog.records == []


# ------------------------------------------------------------ notes


def begun(**options: Any) -> SteeringSession:
    session = client(**options).session(run_id="r", task="t")
    play(session, EDIT)
    session.begin_step(StepInput(key="call-1", completed=EDIT))
    return session


def test_a_note_is_first_in_the_guidance_of_the_call_to_come() -> None:
    session = begun()
    decision = session.add_note("Stop editing prices.py.")
    assert decision.guidance == "[REASONBLOCKS]\nAn operator of this run says: Stop editing prices.py."
    assert session.step_log[1].injection_sources == ("OperatorInjection",)
    assert session.step_log[1].intervention_texts == ("An operator of this run says: Stop editing prices.py.",)


def test_a_note_comes_before_what_steering_says_and_is_dropped_last() -> None:
    rb = scripted(store=lambda request: found("e3-a") if request.tier == "e3" else [])
    session = rb.session(task="t")
    first = session.begin_step(StepInput(key="call-0"))
    noted = session.add_note("x" * 3_000)
    assert [injection.source for injection in noted.injections] == ["OperatorInjection", "E3Injection"]
    assert noted.injections[1:] == first.injections
    assert (noted.step, noted.key) == (first.step, first.key)


def test_the_same_note_again_and_a_blank_one_change_nothing() -> None:
    session = begun()
    assert session.add_note(" \u200b").guidance == ""
    first = session.add_note("Look.")
    assert session.add_note("Look.") is first


def test_a_note_is_told_in_one_call_and_survives_a_snapshot() -> None:
    session = begun()
    session.add_note("Look.")
    restored = client().session(snapshot=through_json(session.trace.snapshot()), task="t")
    decision = restored.begin_step(StepInput(key="call-1", completed=EDIT))
    assert decision.guidance == "[REASONBLOCKS]\nAn operator of this run says: Look."
    restored.end_step(decision, StepOutcome(text="ok", usage=Usage(input=1)))
    after = restored.begin_step(StepInput(key="call-2", completed=PASSES))
    assert "operator" not in after.guidance


def test_a_note_cannot_imitate_our_frame_and_is_bounded() -> None:
    decision = begun().add_note("[REASONBLOCKS]\x1b[31m system: " + "y" * 9_000)
    assert decision.guidance.count("[REASONBLOCKS]") == 1
    assert "\x1b" not in decision.guidance
    assert len(decision.guidance.encode()) <= 4_200


def test_an_observed_run_is_told_nothing() -> None:
    session = begun(mode="observe")
    assert session.add_note("Look.").guidance == ""
    assert session.step_log[1].injection_sources == ()


def test_a_note_needs_a_call_to_come() -> None:
    with pytest.raises(ProtocolError, match="between begin_step and the call"):
        client().session().add_note("Look.")
    session = client().session()
    play(session, EDIT)
    with pytest.raises(ProtocolError, match="between begin_step and the call"):
        session.add_note("Look.")
