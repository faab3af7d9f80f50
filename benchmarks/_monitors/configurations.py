"""Measured configurations: the library as shipped, calibrated, calibrated on separate runs, or a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import Calibration
from reasonblocks.util.files import loads
from reasonblocks_workbench.calibration import Observed, as_toml, fit, observed, shipped
from reasonblocks_workbench.traces import RecordedRun

from .baselines import BASELINES, detector
from .build import other_build
from .sources import Source
from .trail import Judge, Trail, judged, library, side_by_side

__all__ = ["Configuration", "Fit", "fitted_elsewhere", "fitted_in_folds", "in_library", "named", "unfitted"]

Fit: TypeAlias = "Callable[[Sequence[Observed], Calibration | None], Calibration]"
"""From finished runs, around another calibration or from nothing. Raises `ConfigError` where it cannot."""

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """`trails` gives those of every run of every source, in order, made by so many processes."""

    about: str
    trails: Callable[[Sequence[Source], int], list[list[Trail]]]


def named(name: str) -> Configuration:
    """`default`, a baseline's name, another checkout, a detector's .py, or a calibration's file. Raises `OSError`."""
    if name == DEFAULT:
        return unfitted(library(), "The library as it ships.")
    if name in BASELINES:
        return unfitted(BASELINES[name], f"The baseline `{name}`.")
    if Path(name).is_dir():
        return in_other_processes(other_build(name), f"The build in `{name}`.")
    judge = detector(name) if name.endswith(".py") else library(name)
    return unfitted(judge, f"By `{name}`.")


def unfitted(judge: Judge, about: str) -> Configuration:
    """The same for every run."""

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        return [judged(judge, source.runs, workers) for source in sources]

    return Configuration(about=about, trails=trails)


def in_other_processes(judge: Judge, about: str) -> Configuration:
    """The same for every run, by a judge that starts a process of its own for the runs it is given."""

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        with ThreadPoolExecutor(max(1, workers)) as pool:
            return list(pool.map(lambda source: judge(source.runs), sources))

    return Configuration(about=about, trails=trails)


def fitted_elsewhere(fit: Fit = fit) -> Configuration:
    """The library, each source by a calibration that was fitted to all the others: an agent that nobody has seen."""

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        seen = _seen(sources, workers)
        return [judged(in_library(fit(_others(seen, source), None)), source.runs, workers) for source in sources]

    return Configuration(about="Each source by a calibration that was fitted to all the others.", trails=trails)


def fitted_in_folds(folds: int, fit: Fit = fit) -> Configuration:
    """The library, each fold of a source's tasks by a calibration that was fitted to its other folds.

    It is fitted around what the other sources say: the shipped calibration may have seen these very runs. Where there
    are too few runs for a fit, that prior judges.
    """

    def trails(sources: Sequence[Source], workers: int) -> list[list[Trail]]:
        seen = _seen(sources, workers)
        found = []
        for source in sources:
            prior = _fitted(fit, _others(seen, source), None, shipped())
            found.append(_by_folds(fit, seen[source.name], prior, folds, source, workers))
        return found

    return Configuration(
        about=f"Each of {folds} folds of a source's tasks by a calibration that was fitted to its other folds, around "
        "one fitted to the other sources (where those do not suffice around the shipped one, which may know the runs).",
        trails=trails,
    )


def _by_folds(
    fit: Fit, seen: Sequence[Observed], prior: Calibration, folds: int, source: Source, workers: int
) -> list[Trail]:
    fold_of = {task: number % folds for number, task in enumerate(sorted(set(source.tasks)))}
    found: dict[int, Trail] = {}
    for fold in range(folds):
        held = [place for place, task in enumerate(source.tasks) if fold_of[task] == fold]
        rest = [run for run in seen if fold_of[run.task_key] != fold]
        judge = in_library(_fitted(fit, rest, prior, prior))
        found |= zip(held, judged(judge, [source.runs[place] for place in held], workers))
    return [found[place] for place in range(len(source.runs))]


def _fitted(fit: Fit, runs: Sequence[Observed], prior: Calibration | None, otherwise: Calibration) -> Calibration:
    try:
        return fit(runs, prior)
    except ConfigError:
        return otherwise


def _seen(sources: Sequence[Source], workers: int) -> dict[str, list[Observed]]:
    """What a fit needs of each source's runs."""
    return {
        source.name: [replace(run, source=source.name) for run in side_by_side(_observed, source.runs, workers)]
        for source in sources
    }


def _observed(runs: Sequence[RecordedRun]) -> list[Observed]:
    return list(map(observed, runs))


def _others(seen: Mapping[str, Sequence[Observed]], source: Source) -> list[Observed]:
    return [run for name, runs in seen.items() if name != source.name for run in runs]


def in_library(calibration: Calibration) -> Judge:
    """Return the judge that is the library with this calibration."""
    return library(loads(as_toml(calibration)))
