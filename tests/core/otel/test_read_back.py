"""Spans that the sink emits with `calls=True` and content are read back into the runs that they came from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.types import Mode, Step, ToolCall, ToolResult
from reasonblocks_testing import LoopHarness, Script
from reasonblocks_testing.script import long_script
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.core.otel.otlp import spans_json
from tests.core.otel.recorded import SCRIPT
from tests.core.otel.test_parents import OUTER
from tests.core.otel.world import CONTENT, Memory

UNANSWERED = Script(turns=(replace(SCRIPT.turns[0], results=()), *SCRIPT.turns[1:]), run_id="unanswered")
"""A run whose first tool call has no result."""


@pytest.fixture(autouse=True)
def _content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")


def read_back(memory: Memory, folder: Path) -> list[RecordedRun]:
    file = folder / "spans.jsonl"
    file.write_text(spans_json(memory.spans) + "\n", encoding="utf-8")
    runs = list(read_runs(str(file)))
    assert all(isinstance(run, RecordedRun) for run in runs), runs
    return [run for run in runs if isinstance(run, RecordedRun)]


def unnamed(step: Step) -> Step:
    """Return the step with the positions of its calls as their ids, since an event may not have the ids."""
    ids = {call.id: str(at) for at, call in enumerate(step.tool_calls)}
    return Step(
        thought=step.thought,
        reasoning=step.reasoning,
        tool_calls=tuple(
            ToolCall(id=ids[call.id], name=call.name, arguments=call.arguments) for call in step.tool_calls
        ),
        tool_results=tuple(
            ToolResult(call_id=ids[result.call_id], output=result.output, is_error=result.is_error)
            for result in step.tool_results
        ),
    )


@pytest.mark.parametrize("script", [SCRIPT, long_script(), UNANSWERED], ids=lambda script: script.run_id)
@pytest.mark.parametrize("mode", ["steer", "observe"])
def test_a_run_is_read_back_with_its_steps_task_outcome_and_tokens(script: Script, mode: Mode, tmp_path: Path) -> None:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink(calls=True)], mode=mode, strict=True)
    LoopHarness().run(rb, script, "sync")
    rb.close()
    (run,) = read_back(memory, tmp_path)
    assert list(map(unnamed, run.steps)) == [unnamed(turn.step) for turn in script.turns]
    assert (run.run_id, run.task, run.outcome, run.model) == (script.run_id, script.task, "success", script.model)
    assert run.usages == tuple(turn.usage for turn in script.turns)


def test_a_failed_call_is_no_step_of_the_run_that_is_read_back(tmp_path: Path) -> None:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink(calls=True)])
    failing = replace(SCRIPT, turns=(*SCRIPT.turns[:2], replace(SCRIPT.turns[2], error=TimeoutError())))
    LoopHarness().run(rb, failing, "sync")
    rb.close()
    (run,) = read_back(memory, tmp_path)
    assert (list(map(unnamed, run.steps)), run.outcome) == (
        [unnamed(turn.step) for turn in SCRIPT.turns[:2]], "failure: TimeoutError",
    )  # fmt: skip


def test_a_run_within_a_run_is_read_back_with_its_parent(tmp_path: Path) -> None:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink(calls=True)])
    LoopHarness().run_nested(rb, OUTER, SCRIPT, "sync")
    rb.close()
    runs = {run.run_id: run for run in read_back(memory, tmp_path)}
    assert {run_id: (run.parent_run_id, len(run.steps)) for run_id, run in runs.items()} == {
        "outer": (None, 2), "recorded": ("outer", 4),
    }  # fmt: skip
