"""An operator's note comes with the answer to a step, and is told once."""

from __future__ import annotations

from typing import Any

import pytest

from reasonblocks.backends.http import Exchange, address_of
from reasonblocks.backends.http.evaluator import RUNS_KEPT, HttpEvaluator
from reasonblocks.types import Note, StepInput, StepOutcome
from reasonblocks_testing import LoopHarness, Script, Turn, tool_call, tool_result
from reasonblocks_testing.rb_api import ScriptedRbApi, Status
from tests.core.http.world import EVALUATE, answered, asked, at, client, given, run

SAID = "An operator of this run says: Look at the parser."


def told(decisions: list[Any]) -> list[int]:
    return [decision.step for decision in decisions if SAID in decision.guidance]


def test_a_note_is_told_once_before_the_call_after_its_answer(api: ScriptedRbApi) -> None:
    session = client(api, strict=True).session(run_id="r")
    first = run(session, 2)
    api.add_note("r", "Look at the parser.")
    rest = run(session, 4, start=2)
    assert (told(first), told(rest)) == ([], [2])
    assert session.step_log[2].injection_sources[0] == "OperatorInjection"
    assert [note.told for note in api.notes] == [True]


@pytest.mark.parametrize("resume_at", [(), (2,), (1, 2, 3)])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_agent_reads_a_note_in_one_request(api: ScriptedRbApi, mode: str, resume_at: tuple[int, ...]) -> None:
    turns = [
        Turn(
            text=f"I read file {at}.",
            tool_calls=(tool_call(f"c{at}", "read_file", {"path": f"f{at}"}),),
            results=(tool_result(f"c{at}", "fine", is_error=False),),
        )
        for at in range(4)
    ]
    script = Script(run_id="r", task="Fix it.", turns=(*turns, Turn(text="Done.")))
    api.add_note("r", "Look at the parser.")
    rb = client(api, strict=True, placement="system")
    (ran,) = LoopHarness().run(rb, script, mode, resume_at=resume_at)
    assert [number for number, seen in enumerate(ran.seen) if SAID in seen.everything] == [1]
    assert [note.told for note in api.notes] == [True]


def test_notes_are_told_one_a_call_the_oldest_first(api: ScriptedRbApi) -> None:
    session = client(api, strict=True).session(run_id="r")
    ids = [api.add_note("r", text).id for text in ("One.", "Two.", "Three.")]
    run(session, 6)
    assert [entry.note_ids for entry in session.step_log] == [(), (ids[0],), (ids[1],), (ids[2],), (), ()]


def test_a_note_of_a_failed_call_is_told_again(api: ScriptedRbApi) -> None:
    session = client(api, strict=True).session(run_id="r")
    api.add_note("r", "Look at the parser.")
    run(session, 1)
    decision = session.begin_step(given(1))
    session.end_step(decision, StepOutcome(error="TimeoutError"))
    again = session.begin_step(StepInput(key="again", completed=given(1).completed))
    assert told([decision, again]) == [decision.step, again.step]


def test_a_note_to_another_run_is_not_told(api: ScriptedRbApi) -> None:
    api.add_note("other", "Look at the parser.")
    assert told(run(client(api).session(run_id="r"), 4)) == []


def test_a_note_waits_while_the_server_is_away(api: ScriptedRbApi) -> None:
    session = client(api).session(run_id="r")
    api.add_note("r", "Look at the parser.")
    run(session, 1)
    api.misbehave(Status(code=500), times=1)
    assert told(run(session, 4, start=1)) == [2]


def test_a_client_without_operator_notes_asks_for_none(api: ScriptedRbApi) -> None:
    api.add_note("r", "Look at the parser.")
    assert told(run(client(api, operator_notes=False).session(run_id="r"), 4)) == []
    assert [received.body["notes"] for received in at(api, EVALUATE)] == [False] * 3


def test_an_observed_run_takes_no_notes(api: ScriptedRbApi) -> None:
    api.add_note("r", "Look at the parser.")
    assert told(run(client(api, mode="observe").session(run_id="r"), 4)) == []
    assert [received.body["notes"] for received in at(api, EVALUATE)] == [False] * 3


def test_a_mailbox_of_the_callers_is_read_too(api: ScriptedRbApi) -> None:
    class Box:
        def waiting(self, run_id: str) -> tuple[Note, ...]:
            return (Note(id="own", text="Look at the parser."),)

    session = client(api, mailbox=Box(), strict=True).session(run_id="r")
    note = api.add_note("r", "From the server.")
    run(session, 3)
    assert [entry.note_ids for entry in session.step_log] == [("own",), (note.id,), ()]


def test_the_notes_of_many_runs_are_bounded(api: ScriptedRbApi) -> None:
    backend = HttpEvaluator(Exchange(address_of("url", api.url, None)))
    answer = backend._read(b'{"notes": [{"id": "n", "text": "t"}]}')
    for number in range(RUNS_KEPT + 5):
        backend._answered(asked(run_id=str(number), takes_notes=True), answer)
    assert [backend.waiting(str(number)) != () for number in (0, 4, 5, RUNS_KEPT + 4)] == [False, False, True, True]
    assert answered(0).error is None


def test_a_note_leaves_once_it_is_told_or_withdrawn(api: ScriptedRbApi) -> None:
    backend = HttpEvaluator(Exchange(address_of("url", api.url, None)))
    answer = backend._read(b'{"notes": [{"id": "n", "text": "t"}]}')
    backend._answered(asked(takes_notes=True), answer)
    assert backend.waiting("r") == (Note(id="n", text="t"),)
    backend._answered(asked(takes_notes=True, notes_told=("n",)), answer)
    assert backend.waiting("r") == ()
    backend._answered(asked(takes_notes=True), answer)
    backend._answered(asked(takes_notes=True), backend._read(b"{}"))
    assert backend.waiting("r") == ()
