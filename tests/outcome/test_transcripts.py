"""The library reads what the benchmark writes, and decides as it does on the run itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from _outcome.rows import Made, Row
from _outcome.transcripts import records, write

from reasonblocks import ReasonBlocks
from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.outcome.made import shadow

STUCK = tuple([Made(name="go", arguments={"room": "attic"}, output="no such room", is_error=True, thought="Up.")] * 6)
LOST = replace(shadow("house", 3), calls=STUCK, steps=6)


def read(path: Path, *rows: Row) -> list[RecordedRun]:
    assert write(path, rows) == len(rows)
    runs = [*read_runs(str(path))]
    assert all(isinstance(run, RecordedRun) for run in runs), runs
    return [run for run in runs if isinstance(run, RecordedRun)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.jsonl"


def test_a_run_is_read_with_its_steps(path: Path) -> None:
    silent = Made(name="", arguments={}, output="Call one of the tools.", thought="I think … \ud83d")
    (run,) = read(path, replace(LOST, calls=(*STUCK[:1], silent)))
    call = ToolCall(id="call-0", name="go", arguments={"room": "attic"})
    result = ToolResult(call_id="call-0", name="go", output="no such room", is_error=True)
    first, second = run.steps
    assert first == Step(thought="Up.", tool_calls=(call,), tool_results=(result,))
    assert (second.thought[:9], second.tool_calls, second.tool_results) == ("I think …", (), ())


def test_a_run_is_known_by_its_task_agent_and_outcome(path: Path) -> None:
    won, gave_up = replace(LOST, won=True, ended=True, seed=4), replace(LOST, ended=True, seed=5)
    runs = read(path, LOST, won, gave_up, replace(LOST, error="BackendError: 503", seed=6))
    assert [run.task_key for run in runs] == ["house/3", "house/4", "house/5", "house/6"]
    assert {(run.source, run.model) for run in runs} == {("small/loop/house", "small")}
    assert [run.outcome for run in runs[:3]] == ["failure: out of steps", "success", "failure: gave up"]
    assert [run.has_outcome for run in runs] == [True, True, True, False]
    assert len({run.run_id for run in runs}) == 4


def test_a_family_whose_runs_end_early_only_when_they_are_won_is_marked(path: Path) -> None:
    gave_up = replace(LOST, ended=True)
    found = read(path, gave_up, shadow("house", 5, won=True), shadow("hunt", 1, won=True), shadow("hunt", 2))
    assert [run.oracle_stop for run in found] == [False, False, True, True]


def test_the_text_of_the_task_is_asked_for() -> None:
    (record,) = records([LOST], lambda family, seed: f"{family} {seed}")
    assert record["task"] == "house 3"


def test_a_replay_finds_what_the_run_holds(path: Path) -> None:
    (run,) = read(path, LOST)
    with ReasonBlocks() as rb:
        fired = [decision.gate_decision == "inject" for decision in replay(rb, run).decisions]
    assert any(fired)
