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

from reasonblocks.types import Step
from reasonblocks_workbench.traces import RecordedRun

from .flat import FlatStep, flat, flat_runs
from .staleness import stale_runs
from .trail import Judge, Trail

__all__ = ["BASELINES", "STALE", "detector", "stale_in_a_row"]

TALK = ("", "respond", "analyze")
"""Actions of recorded runs that are turns of a talk, no tool calls: nothing to repeat."""
REPEATS_FIRE = 3
STALE = "stale"
"""The simplest rule that is any good at lasting trouble: the bar for every other."""
STALE_FIRE = 3
STALE_CAP, STALE_COOLDOWN = 5, 3
"""Firings a run at most, and steps from one to the next at least."""


def length(runs: Sequence[RecordedRun]) -> list[Trail]:
    """The number of steps so far. Every figure above its own is owed to something else than length."""
    return [Trail(scores=tuple(float(index + 1) for index in range(len(run.steps)))) for run in runs]


def repeat(runs: Sequence[RecordedRun]) -> list[Trail]:
    """How often the most frequent call was made so far; fires when that grows to three or more."""
    return [_most_repeated(run) for run in runs]


def stale(runs: Sequence[RecordedRun]) -> list[Trail]:
    """Counts the steps in a row that brought nothing new; fires from three on, at most 5 times a run, every 3 steps."""
    return list(map(stale_in_a_row, stale_runs(runs)))


def stale_in_a_row(flags: Sequence[bool]) -> Trail:
    """The trail of a run whose stale steps are known."""
    rows = tuple(accumulate(flags, lambda row, flag: row + 1 if flag else 0, initial=0))[1:]
    fired: list[int] = []
    for step, row in enumerate(rows):
        if row >= STALE_FIRE and len(fired) < STALE_CAP and (not fired or step - fired[-1] >= STALE_COOLDOWN):
            fired.append(step)
    return Trail(scores=tuple(map(float, rows)), fires=tuple(step in fired for step in range(len(rows))))


BASELINES: dict[str, Judge] = {"length": length, "repeat": repeat, STALE: stale}


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
    for steps in flat_runs(runs):
        said = tuple(map(bool, fires(steps))) if fires else ()
        trails.append(Trail(scores=tuple(map(float, score(steps))), fires=said))
    return trails


def _loaded(path: str) -> ModuleType:
    spec = spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise OSError(f"{path!r} is no Python file")
    if (folder := str(Path(path).parent.resolve())) not in sys.path:
        sys.path.insert(0, folder)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
