"""What is measured: the library as it is, calibrated, calibrated on runs apart from those measured, or a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from reasonblocks.traces import RecordedRun

from .baselines import BASELINES, detector
from .sources import Source
from .trail import Judge, Trail, judged, library

if TYPE_CHECKING:
    from reasonblocks.config import Calibration

__all__ = ["Configuration", "Fit", "fitted_elsewhere", "fitted_in_folds", "library_fit", "named", "unfitted"]

Configuration: TypeAlias = Callable[[Sequence[Source], int], "list[list[Trail]]"]
"""The trails of every run of every source, in order, made by so many processes."""
Fit: TypeAlias = "Callable[[Sequence[RecordedRun]], Calibration]"
"""From finished runs with outcomes, what `ReasonBlocks(calibration=...)` takes."""

DEFAULT = "default"


def named(name: str) -> Configuration:
    """`default`, a baseline's name, a detector's .py, or a calibration's file. Raises `OSError` for no detector."""
    if name == DEFAULT:
        return unfitted(library())
    if name in BASELINES:
        return unfitted(BASELINES[name])
    return unfitted(detector(name) if name.endswith(".py") else library(name))


def unfitted(judge: Judge) -> Configuration:
    """The same for every run."""

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        return [judged(judge, source.runs, workers) for source in sources]

    return trails


def fitted_elsewhere(fit: Fit) -> Configuration:
    """The library, each source by a calibration that was fitted to all the others: an agent that nobody has seen."""

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        found = []
        for source in sources:
            others = [run for other in sources if other is not source for run in other.runs]
            found.append(judged(library(fit(others)), source.runs, workers))
        return found

    return trails


def fitted_in_folds(fit: Fit, folds: int) -> Configuration:
    """The library, each fold of a source's tasks by a calibration that was fitted to its other folds.

    Sources without enough runs of both outcomes are left to the default.
    """

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        return [
            _by_folds(fit, source, folds, workers) if source.measurable else judged(library(), source.runs, workers)
            for source in sources
        ]

    return trails


def _by_folds(fit: Fit, source: Source, folds: int, workers: int) -> list[Trail]:
    fold_of = {task: number % folds for number, task in enumerate(sorted(set(source.tasks)))}
    found: dict[int, Trail] = {}
    for fold in range(folds):
        held = [place for place, task in enumerate(source.tasks) if fold_of[task] == fold]
        rest = [run for run in source.runs if fold_of[run.task_key] != fold]
        found |= zip(held, judged(library(fit(rest)), [source.runs[place] for place in held], workers))
    return [found[place] for place in range(len(source.runs))]


def library_fit() -> Fit:
    """The library's own. Raises `ImportError` while it has none."""
    fit: Fit = import_module("reasonblocks.calibration").fit
    return fit
