"""The list of `to_input_list()` is read as the steps that the adapter has seen live."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reasonblocks import JsonlSink
from reasonblocks.types import Step
from reasonblocks_testing import Turn, tool_call
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.openai_agents.world import TASK, call, crash, every_way, fixer, in_turn, look, place, said
from tests.steered import steering

TURNS = (
    Turn(
        reasoning="Both may matter.",
        text="I look at both.",
        tool_calls=tuple(tool_call(f"c{at}", "look", {"path": f"f{at}"}) for at in (1, 2)),
    ),
    Turn(text="One is missing.", tool_calls=(tool_call("c3", "crash", {"path": "f3"}),)),
    call("look", "c4", path="f4"),
    said(),
)


def only(path: Path) -> RecordedRun:
    (run,) = read_runs(str(path))
    assert isinstance(run, RecordedRun)
    return run


def compared(steps: Sequence[Step]) -> list[Step]:
    """Steps without their calls' ids and times, which our log does not keep, and without marks of errors."""
    return [
        replace(
            step,
            tool_calls=tuple(replace(call, id="") for call in step.tool_calls),
            tool_results=tuple(
                replace(result, call_id="", duration_ms=None, is_error=None) for result in step.tool_results
            ),
        )
        for step in steps
    ]


@every_way
def test_a_list_of_items_is_read_as_the_run_was_seen(way: str, tmp_path: Path) -> None:
    log, items = tmp_path / "log.jsonl", tmp_path / "items.json"
    rb = steering(sinks=[JsonlSink(log)])
    with place(in_turn(*TURNS), way) as here:
        result = here.run(rb, fixer(tools=[look, crash]))
    rb.close()
    items.write_text(json.dumps(result.to_input_list()))
    seen, read = only(log), only(items)
    assert compared(read.steps) == compared(seen.steps)
    assert (read.task, len(read.steps)) == (TASK, len(TURNS))
