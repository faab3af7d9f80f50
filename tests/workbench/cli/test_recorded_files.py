"""Commands read every format of recorded runs; `--format` names one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasonblocks import JsonlSink, ReasonBlocks, SQLiteMonitorSink
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import Step, StepInput, StepOutcome, ToolCall, ToolResult
from tests.workbench.cli.conftest import Command, Write

FAILED = Step(
    thought="I run the tests.",
    tool_calls=(ToolCall(id="c", name="run_tests", arguments={}),),
    tool_results=(ToolResult(call_id="c", name="run_tests", output="3 failed", is_error=True),),
)
RUN = {"run_id": "a", "outcome": "failure", "steps": [{"thought": "I look."}]}
COMMANDS = (
    ("replay",),
    ("learn",),
    ("calibrate", "--out", "-"),
    ("patterns", "calibrate", "--out", "-"),
)


def played(sink: TelemetrySink) -> None:
    with ReasonBlocks(sinks=[sink], strict=True) as rb:
        for name in ("one", "two"):
            with rb.session(run_id=name, task="Fix the tests.", agent_name="fixer") as session:
                done: Step | None = None
                for _ in range(6):
                    decision = session.begin_step(StepInput(completed=done))
                    session.end_step(decision, StepOutcome(text=FAILED.thought, tool_calls=FAILED.tool_calls))
                    done = FAILED
                session.finish("failure: tests", completed=done)


@pytest.mark.parametrize("sink", [JsonlSink, SQLiteMonitorSink])
def test_a_log_is_replayed_with_its_texts(command: Command, tmp_path: Path, sink: Any) -> None:
    path = tmp_path / "runs.log"
    played(sink(path))
    done = command("replay", str(path), "--json")
    assert (done.code, done.err) == (0, "")
    assert [(run["run_id"], run["outcome"], len(run["steps"])) for run in done.objects] == [
        ("one", "failure: tests", 6), ("two", "failure: tests", 6),
    ]  # fmt: skip
    assert "semantic_loop" in command("replay", str(path), "--run", "two").out


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_that_reads_runs_has_the_option(command: Command, write: Write, words: tuple[str, ...]) -> None:
    done = command(*words, write("a.jsonl", RUN), "--format", "otpl")
    assert done.code == 2
    assert "'otpl' is unknown; valid: reasonblocks, jsonl-sink" in done.err


@pytest.mark.parametrize("words", COMMANDS)
def test_the_named_format_is_the_one_that_is_read(
    command: Command, write: Write, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words[0] == "calibrate":
        pytest.importorskip("sklearn")
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    done = command(*words, write("a.jsonl", RUN), "--format", "langchain")
    assert done.code == 1
    assert "messages: Input should be a valid list" in done.err
