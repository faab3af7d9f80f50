"""Trajectories in ATIF, from a file written by hand after the format's documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import FIXTURES, Write, fault, only

FILE = FIXTURES / "atif.json"
VALUE: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def test_each_step_of_the_agent_is_a_step_with_its_results() -> None:
    make = ToolCall(id="call-1", name="bash", arguments={"command": "make"})
    read = ToolCall(id="call-2", name="read_file", arguments={"path": "main.c"})
    again = ToolCall(id="call-3", name="bash", arguments={})
    assert only(FILE).steps == (
        Step(
            thought="I build it and look at the sources.",
            reasoning="Both at once saves time.",
            tool_calls=(make, read),
            tool_results=(
                ToolResult(call_id="call-2", name="read_file", output="int main(void) { return 0 }"),
                ToolResult(call_id="call-1", name="bash", output="main.c:1: error: expected ';'"),
            ),
        ),
        Step(
            tool_calls=(again,),
            tool_results=(ToolResult(call_id="call-3", name="bash", output="ok\n[image]"),),
            user_text="Please be quick.",
        ),
        Step(thought="The build is green."),
    )


def test_the_run_is_described_by_the_trajectory() -> None:
    run = only(FILE)
    assert (run.run_id, run.source, run.task, run.model, run.outcome) == (
        "trial-7", "terminal-fixer", "Make the build green.", "small-model", None,
    )  # fmt: skip


def test_metrics_are_the_tokens_of_their_step() -> None:
    counted = Usage(input=900, output=40, cache_read=300, cache_write=50, reasoning=12)
    assert only(FILE).usages == (counted, Usage(), Usage())


def test_the_keys_of_a_header_go_before_the_trajectorys_own(write: Write) -> None:
    run = only(write("a.jsonl", {**VALUE, "outcome": "failure", "run_id": "r", "task": "t", "source": "s"}))
    assert (run.outcome, run.run_id, run.task, run.source) == ("failure", "r", "t", "s")


def test_one_trajectory_a_line_is_one_run_a_line(write: Write) -> None:
    found = list(read_runs(write("a.jsonl", VALUE, {**VALUE, "session_id": "b"})))
    assert [item.run_id for item in found if isinstance(item, RecordedRun)] == ["trial-7", "b"]


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.7", "1.4"])
def test_any_version_is_read(write: Write, version: str) -> None:
    assert len(only(write("a.jsonl", {**VALUE, "schema_version": version})).steps) == 3


def test_a_malformed_step_says_where_and_what(write: Write) -> None:
    wrong = {**VALUE, "steps": [{"source": "agent", "tool_calls": [{}]}]}
    assert "steps.0.tool_calls.0.function_name" in fault(write("a.jsonl", wrong)).reason
