"""Baselines for comparison with the library: run length, repeated calls, and detectors from files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from reasonblocks.traces import Record, RecordedRun, read_records
from reasonblocks.types import JSON, Step, ToolCall

from .trail import Judge, Trail

__all__ = ["BASELINES", "detector", "flat"]

FlatStep: TypeAlias = "dict[str, JSON]"
FLAT = ("thought", "action", "action_input", "observation", "is_error", "tokens")
TALK = ("", "respond", "analyze")
"""Actions of recorded runs that are turns of a talk, no tool calls: nothing to repeat."""
REPEATS_FIRE = 3


def length(runs: Sequence[RecordedRun]) -> list[Trail]:
    """The number of steps so far. Every figure above its own is owed to something else than length."""
    return [Trail(scores=tuple(float(index + 1) for index in range(len(run.steps)))) for run in runs]


def repeat(runs: Sequence[RecordedRun]) -> list[Trail]:
    """How often the most frequent call was made so far; fires when that grows to three or more."""
    return [_most_repeated(run) for run in runs]


BASELINES: dict[str, Judge] = {"length": length, "repeat": repeat}


def _most_repeated(run: RecordedRun) -> Trail:
    scores = tuple(accumulate(_times_made(run.steps), max))
    before = (0.0, *scores)
    return Trail(scores=scores, fires=tuple(now >= REPEATS_FIRE and now > old for now, old in zip(scores, before)))


def _times_made(steps: Sequence[Step]) -> Iterator[float]:
    """How often the call of each step was made, this one included; 0 for a step that makes none."""
    made: Counter[str] = Counter()
    for step in steps:
        call = _call(step)
        made[call] += 1
        yield float(made[call]) if call else 0.0


def _call(step: Step) -> str:
    seen = flat(step)
    does_something = seen["action_input"] or (seen["thought"] and seen["observation"])
    return json.dumps([seen["action"], seen["action_input"]]) if seen["action"] not in TALK and does_something else ""


def detector(path: str) -> Judge:
    """A file that defines `score(steps) -> list[float]` and, if it likes, `fires(steps) -> list[bool]`.

    Each step is given in the flat form of our own format: as it is written where the run's file has that form, else as
    `flat` makes it. The file may import its neighbours. Raises `OSError`, and what the file does.
    """
    _loaded(path)
    return partial(_detected, path)


def _detected(path: str, runs: Sequence[RecordedRun]) -> list[Trail]:
    file = _loaded(path)
    score: Callable[[list[FlatStep]], Sequence[float]] = file.score
    fires: Callable[[list[FlatStep]], Sequence[bool]] | None = getattr(file, "fires", None)
    trails = []
    for steps in _flat_runs(runs):
        said = tuple(map(bool, fires(steps))) if fires else ()
        trails.append(Trail(scores=tuple(map(float, score(steps))), fires=said))
    return trails


def _flat_runs(runs: Sequence[RecordedRun]) -> Iterator[list[FlatStep]]:
    written = dict(_as_written(runs))
    for run in runs:
        yield written.get((run.file, run.line)) or list(map(flat, run.steps))


def _as_written(runs: Sequence[RecordedRun]) -> Iterator[tuple[tuple[str, int], list[FlatStep]]]:
    """The steps of runs that their files hold in the flat form, by file and line."""
    wanted = {(run.file, run.line) for run in runs}
    for file in sorted({run.file for run in runs}):
        for record in read_records(file):
            if isinstance(record, Record) and (file, record.line) in wanted and isinstance(record.value, dict):
                steps = record.value.get("steps")
                if isinstance(steps, list) and all(isinstance(step, dict) and "action" in step for step in steps):
                    yield (file, record.line), [{key: step.get(key) for key in FLAT} for step in steps]


def _loaded(path: str) -> ModuleType:
    spec = spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise OSError(f"{path!r} is no Python file")
    if (folder := str(Path(path).parent.resolve())) not in sys.path:
        sys.path.insert(0, folder)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(step: Step) -> FlatStep:
    """A step in the flat form, several calls as one; the tokens are not known here."""
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
