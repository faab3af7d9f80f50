"""The examples of docs/production.md run, and its queries answer."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from reasonblocks import LocalStore, ReasonBlocks, SQLiteMonitorSink, Step, ToolCall, ToolResult
from reasonblocks.types import StepDecision, StepInput, StepOutcome

PAGE = (Path(__file__).parents[2] / "docs/production.md").read_text(encoding="utf-8")
EXAMPLES = [dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)]
QUERIES = [query for query in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)[0].split(";") if query.strip()]
FAILED = Step(
    thought="I run the tests.",
    tool_calls=(ToolCall(id="c", name="run_tests", arguments={}),),
    tool_results=(ToolResult(call_id="c", output="3 failed"),),
)
CLAIMED = Step(thought="All tests pass, done.")


def played(mode: Any, path: Path, run_id: str) -> None:
    """Record a run that repeats a failing test and then claims that it passes."""
    with (
        ReasonBlocks(mode=mode, pattern_store=LocalStore(), sinks=[SQLiteMonitorSink(path)]) as rb,
        rb.session(run_id=run_id, task="Fix the tests.") as session,
    ):
        done: Step | None = None
        for step in (*[FAILED] * 6, CLAIMED):
            decision = session.begin_step(StepInput(completed=done))
            session.end_step(decision, StepOutcome(text=step.thought, tool_calls=step.tool_calls))
            done = step
        session.finish(completed=done)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_as_it_is_printed(number: int) -> None:
    turns = iter([FAILED, CLAIMED, Step(thought="Three tests fail, and I do not know why.")])
    asked: list[StepDecision] = []

    def call_model(decision: StepDecision) -> Step:
        asked.append(decision)
        return next(turns)

    names: dict[str, Any] = {"call_model": call_model}
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), names)
    if "mailbox" in EXAMPLES[number]:
        assert "Leave the fixtures alone." in names["rb"].session().begin_step(StepInput()).guidance
    if "second_look" in EXAMPLES[number]:
        assert [bool(decision.guidance) for decision in asked][1:] == [False, True]


def test_there_are_examples_of_a_run_and_of_four_controls() -> None:
    assert len(EXAMPLES) == 5
    assert len(QUERIES) == 3


def test_the_queries_find_withheld_texts_modes_and_doubts(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    played("observe", path, "observed")
    played("steer", path, "steered")
    with closing(sqlite3.connect(path)) as db:
        texts, modes, faults = [db.execute(query).fetchall() for query in QUERIES]
    assert {run_id for run_id, _, _ in texts} == {"observed"}
    assert "run_tests()" in texts[0][2]
    assert modes == [("observe", 1, 1, 1), ("steer", 1, 1, 1)]
    assert faults == []
