"""A note that a person posts to a real server is told to a hand-written agent, in one call, and never twice."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.types import StepDecision, StepOutcome
from reasonblocks_testing import LoopHarness, Script, Turn, tool_call, tool_result
from tests.core.http.world import answered, given, run
from tests.server.notes.world import SAID, Operator, lossy


def told(decisions: Sequence[StepDecision]) -> list[int]:
    return [decision.step for decision in decisions if SAID in decision.guidance]


def begun(operator: Operator, run_id: str, rb: ReasonBlocks | None = None, calls: int = 2) -> SteeringSession:
    """A run that the server knows, because it has evaluated a step of it."""
    session = (rb or operator.rb()).session(run_id=run_id)
    run(session, calls)
    return session


def test_a_note_is_told_once_and_all_records_agree_when(operator: Operator) -> None:
    rb = operator.rb()
    session = begun(operator, "once", rb)
    note_id = operator.say("once")
    assert operator.notes("once") == [("queued", None)]
    assert told(run(session, 4, start=2)) == [2]
    session.finish()
    rb.close()
    operator.check_told("once", note_id, session.step_log, 2)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_agent_is_told_while_it_works_also_after_a_pause(operator: Operator, mode: str) -> None:
    """The note is posted before the second part of the run: another session, from the snapshot of the first one."""
    run_id = f"paused-{mode}"
    turns = [
        Turn(
            text=f"I read file {at}.",
            tool_calls=(tool_call(f"c{at}", "read_file", {"path": f"f{at}"}),),
            results=(tool_result(f"c{at}", "fine", is_error=False),),
        )
        for at in range(5)
    ]
    noted = Noted(operator, run_id)
    rb = operator.rb(mailbox=noted)
    script = Script(run_id=run_id, task="Fix it.", turns=(*turns, Turn(text="Done.")))
    (ran,) = LoopHarness().run(rb, script, mode, resume_at=(2, 4))
    rb.close()
    assert [number for number, seen in enumerate(ran.seen) if SAID in seen.everything] == [3]
    operator.check_told(run_id, noted.note_id, ran.log, 3)


class Noted:
    """A mailbox that never has a note; when it is asked for the third call, the operator writes one on the server."""

    inline = True

    def __init__(self, operator: Operator, run_id: str) -> None:
        self.operator, self.run_id, self.asked, self.note_id = operator, run_id, 0, ""

    def waiting(self, run_id: str) -> tuple[()]:
        self.asked += 1
        if self.asked == 3:
            self.note_id = self.operator.say(self.run_id)
        return ()


def test_two_notes_are_told_in_turn(operator: Operator) -> None:
    rb = operator.rb()
    session = begun(operator, "turns", rb)
    ids = [operator.say("turns", text) for text in ("One.", "Two.")]
    run(session, 4, start=2)
    rb.close()
    assert [entry.note_ids for entry in session.step_log] == [(), (), (ids[0],), (ids[1],), (), ()]
    assert operator.notes("turns") == [("told", 2), ("told", 3)]


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"operator_notes": False}])
def test_a_run_that_takes_no_notes_refuses_them(operator: Operator, options: dict[str, Any]) -> None:
    run_id = f"deaf-{next(iter(options))}"
    rb = operator.rb(**options)
    begun(operator, run_id, rb)
    rb.close()
    answer = operator.post(run_id)
    assert (answer.status_code, operator.notes(run_id)) == (409, [])


def test_a_restored_run_is_not_told_again(operator: Operator) -> None:
    rb = operator.rb()
    session = begun(operator, "restored", rb)
    before = session.trace.snapshot()
    operator.say("restored")
    assert told(run(session, 2, start=2)) == [2]
    after = session.trace.snapshot()
    assert told(run(rb.session(snapshot=after), 2, start=4)) == []
    assert told(run(rb.session(snapshot=before), 2, start=2)) == [], "a fork from before: the server knows it as told"
    rb.close()
    assert operator.notes("restored") == [("told", 2)]


def test_a_fork_hears_the_note_that_its_run_has_not_heard(operator: Operator) -> None:
    rb = operator.rb()
    before = begun(operator, "forked", rb).trace.snapshot()
    operator.say("forked")
    assert told(run(rb.session(snapshot=before), 3, start=2)) == [2]
    rb.close()


def test_a_lost_answer_loses_no_note(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    with lossy(operator.running.url) as line, caplog.at_level(logging.CRITICAL, "reasonblocks"):
        rb = operator.rb(base_url=line.url, live_streaming_enabled=False)
        session = begun(operator, "lost", rb)
        note_id = operator.say("lost")
        line.to_lose = 2
        assert told(run(session, 4, start=2)) == [4]
        rb.close()
    unsteered = [entry.step for entry in session.step_log if entry.gate_decision == "unavailable"]
    assert unsteered == [2, 3]
    assert session.step_log[4].note_ids == (note_id,)
    assert [state for state, _ in operator.notes("lost")] == ["told"]


def test_a_note_in_a_failed_call_is_told_again(operator: Operator) -> None:
    rb = operator.rb()
    session = begun(operator, "failed", rb)
    note_id = operator.say("failed")
    first = session.begin_step(given(2))
    session.end_step(first, StepOutcome(error="TimeoutError"))
    second = session.begin_step(given(3))
    session.end_step(second, answered(3))
    assert told([first, second, *run(session, 2, start=4)]) == [2, 3]
    rb.close()
    assert operator.notes("failed") == [("told", 3)]
    assert session.step_log[3].note_ids == (note_id,)
