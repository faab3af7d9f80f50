"""Replay decides what a live run decides: on the golden runs, and on any steps that a session has seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.cli._replay import replay_run
from reasonblocks.session._log import entry_of
from reasonblocks.testing import Golden, LoopHarness, Script, Turn, World, load_golden, tool_call, tool_result
from reasonblocks.traces import RecordedRun
from reasonblocks.types import StepDecision, StepLogEntry, Usage

GOLDEN = [load_golden(path) for path in sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))]
LIVE_ONLY = ("model_id", "tokens")
"""What a golden run says of the call itself: replay calls no model."""


def recorded(script: Script) -> RecordedRun:
    return RecordedRun(
        run_id=script.run_id,
        steps=tuple(turn.step for turn in script.turns),
        usages=tuple(turn.usage for turn in script.turns),
        file="golden",
        line=1,
        task=script.task,
        model=script.model,
    )


def entries(decisions: list[StepDecision]) -> list[StepLogEntry]:
    return [entry_of(decision, 0.0, 0.0) for decision in decisions]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_a_golden_run_replays_as_written(golden: Golden) -> None:
    world = World(golden)
    report = replay_run(golden.client(world), recorded(golden.script))
    log = entries([report.start, *report.decisions])
    differences = golden.differences(log[:-1], log[-1], world)
    assert [text for text in differences if not any(f"{key} is" in text for key in LIVE_ONLY)] == []


def long_script(steps: int) -> Script:
    """A coding agent that edits, tests, hedges, repeats itself and gets errors: something of everything."""
    turns = []
    for at in range(steps):
        name = ("bash", "edit_file", "read_file", "bash")[at % 4]
        text = ("I run the tests.", "Maybe the date is wrong; perhaps I should assume UTC.", "", "Same again.")[at % 4]
        output, is_error = [("3 failed in 0.1s", None), ("ok", False), ("Error: no such file", True)][at % 3]
        turns.append(
            Turn(
                text=text,
                reasoning="" if text else "I wonder whether the path is right.",
                tool_calls=(tool_call(f"c{at}", name, {"command": f"run {at % 5}", "path": "src/app.py"}),),
                results=(tool_result(f"c{at}", output, is_error=is_error),),
                usage=Usage(input=100 + at, output=20),
            )
        )
    return Script(turns=(*turns, Turn(text="All tests pass now.")), task="Fix the failing tests in src/app.py.")


@pytest.mark.parametrize("mode", LoopHarness.modes)
def test_the_real_monitors_say_the_same_of_a_live_run_and_its_recording(mode: str) -> None:
    script = long_script(60)
    (live,) = LoopHarness().run(ReasonBlocks(strict=True), script, mode)
    report = replay_run(ReasonBlocks(strict=True), recorded(script))
    assert live.final is not None
    assert len(live.log) == len(report.decisions)
    compared = [
        (json.dumps(shown(one)), json.dumps(shown(other)))
        for one, other in zip([*live.log, live.final], entries([report.start, *report.decisions]), strict=True)
    ]
    assert [pair for pair in compared if pair[0] != pair[1]] == []
    assert any(entry.intervention_texts for entry in live.log[1:])


def shown(entry: StepLogEntry) -> dict[str, object]:
    """What was decided, and what the call got."""
    known = entry.as_dict()
    own = ("timestamp", "overhead_ms", "model_id", "tool_calls", "attempts", "error", "latency_ms")
    return {key: value for key, value in known.items() if key not in own and not key.endswith("tokens")}
