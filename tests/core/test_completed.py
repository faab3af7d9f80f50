"""Calls that are known only after the answer: what `completed` gives wins, what it lacks is what `end_step` kept.

An agent whose answers are code says what it thinks and what it will run; which tools that called is known afterwards.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.events import StepEvent
from reasonblocks.session import SteeringSession
from reasonblocks.types import Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.core.world import RecordingSink, Scores, client, final, through_json

CODE = "I look at both files. print(read('a.py'), read('b.py'))"
CALLS = tuple(ToolCall(id=f"e{at}", name="read", arguments={"path": path}) for at, path in enumerate(("a.py", "b.py")))
RESULTS = tuple(ToolResult(call_id=call.id, output="empty") for call in CALLS)
EXECUTED = Step(tool_calls=CALLS, tool_results=RESULTS)
WHOLE = Step(thought=CODE, tool_calls=CALLS, tool_results=RESULTS)
ANSWER = StepOutcome(text=CODE)
INTERPRETER = replace(ANSWER, tool_calls=(ToolCall(id="c0", name="python_interpreter"),))


def judged(outcome: StepOutcome, completed: Step | None) -> Step:
    """The step that the scorer sees."""
    scorer = Scores()
    session = client(scorer=scorer).session()
    session.end_step(session.begin_step(StepInput()), outcome)
    session.begin_step(StepInput(completed=completed))
    return scorer.seen[0]


def answered(rb: ReasonBlocks, outcome: StepOutcome = ANSWER) -> SteeringSession:
    session = rb.session(run_id="same")
    session.end_step(session.begin_step(StepInput(key="first")), outcome)
    return session


RESULTS_ALONE = Step(tool_results=RESULTS)
SAID, THOUGHT = Step(thought="I said this."), Step(reasoning="I thought this.")
OTHER_WORDS = replace(EXECUTED, thought="As the history has it.")


@pytest.mark.parametrize(
    ("kept", "given", "whole"),
    [
        pytest.param(ANSWER, EXECUTED, WHOLE, id="calls join the thought that was kept"),
        pytest.param(
            StepOutcome(reasoning="Hm."), EXECUTED, replace(EXECUTED, reasoning="Hm."), id="and the reasoning"
        ),
        pytest.param(INTERPRETER, EXECUTED, WHOLE, id="calls replace those of the answer"),
        pytest.param(INTERPRETER, RESULTS_ALONE, replace(WHOLE, tool_calls=INTERPRETER.tool_calls), id="results alone"),
        pytest.param(INTERPRETER, SAID, SAID, id="a step with its thought is whole"),
        pytest.param(INTERPRETER, THOUGHT, THOUGHT, id="a step with its reasoning is whole"),
        pytest.param(ANSWER, OTHER_WORDS, OTHER_WORDS, id="a thought that is given goes first"),
        pytest.param(
            replace(ANSWER, error="ConnectionError"), EXECUTED, EXECUTED, id="of a failed call nothing is kept"
        ),
    ],
)
def test_what_is_given_afterwards_wins_and_what_it_lacks_is_what_was_kept(
    kept: StepOutcome, given: Step, whole: Step
) -> None:
    assert judged(kept, given) == whole


def test_the_entry_of_the_call_shows_the_calls_that_it_led_to() -> None:
    session = answered(client(), INTERPRETER)
    before = session.step_log
    session.begin_step(StepInput(completed=EXECUTED))
    assert [log[0].tool_calls for log in (before, session.step_log)] == [("python_interpreter",), ("read", "read")]


def test_the_entry_keeps_the_calls_of_the_answer_where_none_are_given() -> None:
    session = answered(client(), INTERPRETER)
    session.begin_step(StepInput(completed=Step(tool_results=RESULTS)))
    assert session.step_log[0].tool_calls == ("python_interpreter",)


def test_the_entry_is_amended_past_the_auxiliary_calls_after_it() -> None:
    session = answered(client(), INTERPRETER)
    session.end_step(session.begin_step(StepInput(auxiliary=True, completed=Step(tool_calls=CALLS))), StepOutcome())
    assert session.step_log[0].tool_calls == ("python_interpreter",)
    session.begin_step(StepInput(completed=EXECUTED))
    assert [entry.tool_calls for entry in session.step_log] == [("read", "read"), (), ()]


def test_a_step_that_is_given_again_after_a_failed_call_amends_nothing() -> None:
    session = answered(client())
    session.end_step(session.begin_step(StepInput(completed=EXECUTED)), StepOutcome(error="ConnectionError"))
    session.begin_step(StepInput(completed=EXECUTED))
    assert [entry.tool_calls for entry in session.step_log] == [("read", "read"), (), ()]


def test_the_last_step_is_amended_where_the_run_finishes() -> None:
    session = answered(client(), INTERPRETER)
    session.finish(completed=EXECUTED)
    assert final(session).thought_preview == CODE
    assert session.step_log[0].tool_calls == ("read", "read")


def test_an_event_loop_amends_alike() -> None:
    async def main() -> SteeringSession:
        session = client().session()
        session.end_step(await session.abegin_step(StepInput()), INTERPRETER)
        session.end_step(await session.abegin_step(StepInput(completed=EXECUTED)), INTERPRETER)
        await session.afinish(completed=EXECUTED)
        return session

    session = asyncio.run(main())
    assert [entry.tool_calls for entry in session.step_log] == [("read", "read")] * 2
    assert [session.step_log[1].thought_preview, session.final and final(session).thought_preview] == [CODE, CODE]


def test_events_tell_of_the_amended_steps() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    session = answered(rb, INTERPRETER)
    session.end_step(session.begin_step(StepInput(completed=EXECUTED)), INTERPRETER)
    session.finish(completed=EXECUTED)
    rb.close()
    steps = [event for event in sink.events if isinstance(event, StepEvent)][1:]
    assert [(event.thought, event.action) for event in steps] == [(CODE, "read + read")] * 2
    assert [json.loads(event.action_input) for event in steps] == [[{"path": "a.py"}, {"path": "b.py"}]] * 2


def test_the_same_key_again_gives_the_amended_decision_again() -> None:
    session = answered(client())
    first = session.begin_step(StepInput(key="second", completed=EXECUTED))
    again = session.begin_step(StepInput(key="second", completed=EXECUTED))
    assert replace(again, replayed=False) == first
    assert session.step_log[0].tool_calls == ("read", "read")


def test_calls_that_are_known_in_another_process_join_the_thought_of_the_first() -> None:
    rb = client()
    session = answered(rb, INTERPRETER)
    elsewhere = rb.session(snapshot=through_json(session.trace.snapshot()))
    here = session.begin_step(StepInput(key="second", completed=EXECUTED))
    assert elsewhere.begin_step(StepInput(key="second", completed=EXECUTED)) == here
    assert elsewhere.trace.snapshot() == session.trace.snapshot()
    assert elsewhere.trace.state.steps[-1].action == "read + read"


def test_a_recorded_run_replays_as_the_amended_one_was_decided(tmp_path: Path) -> None:
    """The real scorer and monitors, on an agent whose code reads the same files again and again."""
    calls, rb = 6, ReasonBlocks(strict=True, step_deadline_ms=20_000)
    session = rb.session(run_id="same", task="Look.")
    for number in range(calls):
        decision = session.begin_step(StepInput(completed=EXECUTED if number else None))
        session.end_step(decision, INTERPRETER)
    session.finish(completed=EXECUTED)
    step = {
        "thought": CODE,
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in CALLS],
        "tool_results": [{"call_id": one.call_id, "output": one.output} for one in RESULTS],
    }
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"run_id": "same", "task": "Look.", "steps": [step] * calls}) + "\n", encoding="utf-8")
    (recorded,) = read_runs(str(path))
    assert isinstance(recorded, RecordedRun)
    replayed = replay(rb, recorded)
    live = [*session.step_log[1:], session.final]
    assert [one.injections for one in replayed.decisions if one.injections] != []
    assert [(one.difficulty, one.composite, one.gate_decision) for one in replayed.decisions] == [
        (one.difficulty, one.composite, one.gate_decision) for one in live if one is not None
    ]
