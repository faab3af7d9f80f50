"""Gives the steps of recorded runs in the flat form of our own format: one call and one result a step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reasonblocks.types import JSON, Step, ToolCall
from reasonblocks_workbench.traces import Record, RecordedRun, read_records

__all__ = ["FlatStep", "flat", "flat_runs", "records_of"]

FlatStep: TypeAlias = "dict[str, JSON]"
KEYS = ("thought", "action", "action_input", "observation", "is_error", "tokens")


def flat_runs(runs: Sequence[RecordedRun]) -> Iterator[list[FlatStep]]:
    """Yield the steps of each run, in order: as its file has them if that form is flat, else as `flat` makes them."""
    written = dict(_as_written(runs))
    for run in runs:
        yield written.get((run.file, run.line)) or list(map(flat, run.steps))


def records_of(runs: Sequence[RecordedRun]) -> Iterator[tuple[tuple[str, int], dict[str, JSON]]]:
    """Yield the JSON objects that the runs were read from, each with its file and line."""
    wanted = {(run.file, run.line) for run in runs}
    for file in sorted({run.file for run in runs}):
        for record in read_records(file):
            if isinstance(record, Record) and (file, record.line) in wanted and isinstance(record.value, dict):
                yield (file, record.line), record.value


def _as_written(runs: Sequence[RecordedRun]) -> Iterator[tuple[tuple[str, int], list[FlatStep]]]:
    for place, record in records_of(runs):
        steps = record.get("steps")
        if isinstance(steps, list):
            found = [
                {key: step.get(key) for key in KEYS} for step in steps if isinstance(step, dict) and "action" in step
            ]
            if len(found) == len(steps):
                yield place, found


def flat(step: Step) -> FlatStep:
    """Return a step in the flat form, several calls as one; the tokens are not known here."""
    flags = [result.is_error for result in step.tool_results if result.is_error is not None]
    return {
        "thought": step.thought,
        "action": " + ".join(call.name for call in step.tool_calls),
        "action_input": "\n".join(_input(call, bool(step.tool_results)) for call in step.tool_calls),
        "observation": "\n".join(result.output for result in step.tool_results),
        "is_error": any(flags) if flags else None,
        "tokens": None,
    }


def _input(call: ToolCall, answered: bool) -> str:
    """The arguments as text, a text that stands alone as itself. What answers to none is a tool, too."""
    given = call.arguments
    if isinstance(given, dict) and list(given) == ["input"] and isinstance(given["input"], str):
        return given["input"]
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False) if given or answered else ""
