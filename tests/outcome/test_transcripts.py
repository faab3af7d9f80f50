"""The library reads what the benchmark writes, and decides as it does on the run itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from _outcome.rows import Made, Row
from _outcome.transcripts import records, write

from reasonblocks import ReasonBlocks
from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks_workbench.cli import main
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
    won = replace(LOST, won=True, ended=True, seed=4)
    first, second = read(path, LOST, won)
    assert (first.task_key, second.task_key) == ("house/3", "house/4")
    assert (first.source, first.model) == ("small/loop/house", "small")
    assert (first.outcome, second.outcome) == ("failure: out of steps", "success")
    assert (first.has_outcome, second.has_outcome, first.run_id != second.run_id) == (True, True, True)


def test_a_run_that_gave_up_failed(path: Path) -> None:
    assert [run.outcome for run in read(path, replace(LOST, ended=True))] == ["failure: gave up"]


def test_a_run_that_broke_off_has_no_outcome(path: Path) -> None:
    (run,) = read(path, replace(LOST, error="BackendError: 503"))
    assert not run.has_outcome


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


def test_the_command_line_replays_every_run(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REASONBLOCKS_STRICT", raising=False)
    write(path, [LOST, shadow("hunt", 2, won=True)])
    assert main(["replay", str(path), "--json"]) == 0
    replayed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(run["run_id"], len(run["steps"])) for run in replayed if "run_id" in run] == [
        ("small/loop/shadow/house/3/off/0", 6),
        ("small/loop/shadow/hunt/2/off/0", 8),
    ]
