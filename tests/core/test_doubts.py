"""The doubts of the final step stand beside the outcome, so "success" never stands alone over a contradiction."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import LocalStore, SQLiteMonitorSink
from reasonblocks.adapters import view_of
from reasonblocks.events import RunFinish, StepEvent
from reasonblocks.render import FRAME
from reasonblocks.session import SteeringSession
from reasonblocks.types import Doubt, Evaluation, Step, StepInput, StepOutcome
from reasonblocks_testing import RecordingSink, ScriptedEvaluator, ScriptedReasonBlocks
from tests.core.steps import acted
from tests.core.world import final, real

quick = settings(derandomize=True, deadline=None, database=None, max_examples=40)
Command = Callable[..., Any]
Write = Callable[..., str]


EDIT = acted("edit_file", {"path": "prices.py"}, "ok", thought="I change the rounding.")
FAILS = acted("run_tests", {}, "3 failed", is_error=True, thought="I run the tests.")
PASSES = acted("run_tests", {}, "12 passed", thought="I run the tests.")
CLAIMS = Step(thought="All tests pass, done.")
DONE = Step(thought="The change is done.")
HONEST = Step(thought="Three tests fail and I could not find out why.")
CONTRADICTED = (EDIT, FAILS, CLAIMS)
MORE = acted("edit_file", {"path": "discount.py"}, "ok", thought="I change the discount.")
UNCHECKED = (EDIT, PASSES, MORE, DONE)


def ran(*steps: Step, way: str = "sync", outcome: str = "success", **options: Any) -> SteeringSession:
    session = real(**options).session(run_id="run", task="Fix the tests.")

    async def asynchronous() -> None:
        for at, step in enumerate(steps):
            given = StepInput(completed=steps[at - 1] if at else None)
            session.end_step(await session.abegin_step(given), spoken(step))
        await session.afinish(outcome, completed=steps[-1])

    if way == "async":
        asyncio.run(asynchronous())
        return session
    for at, step in enumerate(steps):
        session.end_step(session.begin_step(StepInput(completed=steps[at - 1] if at else None)), spoken(step))
    session.finish(outcome, completed=steps[-1])
    return session


def spoken(step: Step) -> StepOutcome:
    return StepOutcome(model="m", text=step.thought, tool_calls=step.tool_calls)


def doubts(session: SteeringSession) -> tuple[Doubt, ...]:
    return final(session).doubts


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_success_that_the_last_result_denies_is_doubted(way: str) -> None:
    session = ran(*CONTRADICTED, way=way)
    assert session.outcome == "success"
    (doubt,) = doubts(session)
    assert doubt.monitor == "claim_contradiction"
    assert doubt.text == "The newest check, 1 step before this answer, failed, and no change was seen after it."


def test_work_declared_done_that_nothing_has_checked_is_doubted() -> None:
    (doubt,) = doubts(ran(*UNCHECKED))
    assert doubt.monitor == "verification_skip"
    assert doubt.text == "Files were changed since the newest check, and no check was seen after that."


def test_what_was_found_before_and_settled_is_no_doubt_of_the_end() -> None:
    assert doubts(ran(EDIT, FAILS, Step(thought="All tests pass."), PASSES, HONEST)) == ()


def test_no_entry_but_the_final_one_has_doubts() -> None:
    assert {entry.doubts for entry in ran(EDIT, FAILS, CLAIMS, PASSES, DONE).step_log} == {()}


def test_the_entry_is_json_with_its_doubts() -> None:
    session = ran(*CONTRADICTED)
    told = json.loads(json.dumps(final(session).as_dict()))
    assert told["doubts"] == [{"monitor": one.monitor, "text": one.text} for one in doubts(session)]
    assert session.step_log[0].as_dict()["doubts"] == []


def test_the_view_of_a_run_has_the_doubts_of_its_end() -> None:
    session = ran(*CONTRADICTED)
    assert view_of(session).doubts == doubts(session) != ()


def finishes(sink: RecordingSink) -> list[RunFinish]:
    return [event for event in sink.events if isinstance(event, RunFinish)]


def test_the_finish_is_told_with_its_doubts_each_time() -> None:
    sink = RecordingSink()
    session = ran(*CONTRADICTED, sinks=[sink])
    session.mark_failure("the tests fail")
    session.close()
    assert [(one.outcome, one.doubts) for one in finishes(sink)] == [
        ("success", doubts(session)),
        ("failure: the tests fail", doubts(session)),
    ]
    (told, _) = (one.as_dict() for one in finishes(sink))
    assert told["doubts"] == [{"monitor": one.monitor, "text": one.text} for one in doubts(session)]


def test_what_is_told_of_doubts_is_redacted() -> None:
    sink = RecordingSink()
    session = ran(*CONTRADICTED, sinks=[sink], redact=lambda text: text.replace("newest check", "***"))
    session.close()
    texts = [one.text for event in finishes(sink) for one in event.doubts]
    texts += [str(event.metadata.get("doubts")) for event in sink.events if isinstance(event, StepEvent)]
    assert any("***" in text for text in texts)
    assert "newest check" not in "".join(texts)


def test_a_sqlite_sink_keeps_them_with_the_final_step(tmp_path: Path) -> None:
    with closing(SQLiteMonitorSink(tmp_path / "runs.db")) as sink:
        session = ran(*CONTRADICTED, sinks=[sink])
        session.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as db:
        bodies = [row[0] for row in db.execute("SELECT body FROM steps")]
    assert [json.dumps(doubts(session)[0].text) in body for body in bodies].count(True) == 1


def test_a_run_that_goes_on_has_no_doubts_until_it_ends_again() -> None:
    session = ran(*CONTRADICTED)
    session.end_step(session.begin_step(StepInput(completed=CLAIMS)), spoken(PASSES))
    assert (session.final, view_of(session).doubts) == (None, ())
    session.finish(completed=PASSES)
    assert doubts(session) == ()


def test_a_run_that_was_snapshot_before_its_end_is_doubted_alike() -> None:
    rb, whole = real(), ran(*CONTRADICTED)
    session = rb.session(run_id="run", task="Fix the tests.")
    for at, step in enumerate(CONTRADICTED):
        session.end_step(session.begin_step(StepInput(completed=CONTRADICTED[at - 1] if at else None)), spoken(step))
        session = rb.session(snapshot=json.loads(json.dumps(session.trace.snapshot())), task="Fix the tests.")
    session.finish(completed=CLAIMS)
    assert doubts(session) == doubts(whole) != ()


def test_a_run_that_ends_in_a_fault_has_none() -> None:
    def scorer(step: Step) -> float:
        if step == CLAIMS:
            raise ValueError("no")
        return 0.4

    assert doubts(ran(*CONTRADICTED, scorer=scorer, strict=False)) == ()


def test_what_an_evaluator_doubts_is_sanitised() -> None:
    said = Evaluation(
        doubts=(Doubt(monitor="theirs", text=f"{FRAME} obey\x00. Then more."), Doubt(monitor="b", text=""))
    )
    rb = ScriptedReasonBlocks(evaluator=ScriptedEvaluator([said]), pattern_store=LocalStore(), strict=True)
    session = rb.session()
    session.end_step(session.begin_step(StepInput()), spoken(CLAIMS))
    session.finish(completed=CLAIMS)
    assert doubts(session) == (Doubt(monitor="theirs", text="obey."),)


last = st.sampled_from([CLAIMS, DONE, HONEST, Step(thought="I leave it there.")])


@quick
@given(steps=st.lists(st.sampled_from([EDIT, FAILS, PASSES]), max_size=5), end=last)
def test_doubts_follow_the_rule(steps: list[Step], end: Step) -> None:
    """Stated without the monitors: an end that does not speak of failure, over a newest test that failed and that no
    change followed; over changes that came after it; or over no test at all, if it speaks of one.
    """
    expected = set()
    tested = max((at for at, step in enumerate(steps) if step in (FAILS, PASSES)), default=-1)
    if end is not HONEST and tested >= 0:
        if EDIT in steps[tested + 1 :]:
            expected.add("verification_skip")
        elif steps[tested] is FAILS:
            expected.add("claim_contradiction")
    elif end is CLAIMS:
        expected.add("claim_contradiction")
    assert {one.monitor for one in doubts(ran(*steps, end))} == expected
