"""Defines the columns of the benchmark table and computes them for one source, from the scores of its runs' steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reasonblocks.engine.scoring import calm_of, parts_of
from reasonblocks.monitors import indicators, novelty, persistence
from reasonblocks.monitors.builtin import MONITORS
from reasonblocks.monitors.calibration import shipped
from reasonblocks.monitors.features import features_of
from reasonblocks.types import JSON

from ..traces import RecordedRun
from .statistics import Draws, Flags, Values, auroc, mean_of, recall, redraws, share, stratified_auroc

COLUMNS: Mapping[str, str] = {
    "full": "AUROC of the run's largest score; inflated by run length",
    "half": "the same of the first half of the run; knows the length, too",
    "land": "AUROC of the largest score up to step k among the runs that go on after k, mean over k = 3, 5, 8, 12, 20, "
    "40: the early warning that owes nothing to length",
    "match": "AUROC of the largest score over pairs of runs of about equal length (8 bins a source)",
    "task": "AUROC of the largest score over pairs of runs of the same task, where 8 tasks have both outcomes",
    "r10": "share of failing runs caught when at most 10 % of the successful ones are flagged, whole run",
    "r10h": "the same, first half of the run",
    "r10L": "the same at the steps of land",
    "own_failing": "share of failing runs into which the gate injects at least once",
    "own_passing": "the same of successful runs",
    "own_half_failing": "share of failing runs into whose first half it injects",
    "own_half_passing": "the same of successful runs",
}
MIN_STEPS = 4
"""Shorter runs count in no column: they end before anybody could step in."""
LANDMARKS = (3, 5, 8, 12, 20, 40)
LENGTH_BINS = 8
MIN_AT_LANDMARK = 12
"""Runs of each outcome that must still go on for a landmark to count."""
MIN_MIXED_TASKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One run with a detector's score for each step. `fires` is empty if the detector has no threshold."""

    task_key: str
    failed: bool
    scores: Sequence[float]
    fires: Sequence[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The sufficiently long runs of a source, as arrays with one entry for each run.

    `so_far[i][k]` is the largest score of run i up to step k. With `oracle_stop`, runs end at the first success, so
    their length reveals the label.
    """

    name: str
    oracle_stop: bool
    failing: Flags
    lengths: npt.NDArray[np.int64]
    tasks: npt.NDArray[np.int64]
    so_far: Sequence[Values]
    fires: Sequence[Flags]
    weights: Draws

    def after(self, steps: Sequence[int]) -> Values:
        """Return each run's largest score within its given number of steps."""
        return np.array([run[count - 1] for run, count in zip(self.so_far, steps, strict=True)])

    @property
    def halves(self) -> list[int]:
        return [(int(length) + 1) // 2 for length in self.lengths]

    @property
    def whole(self) -> Values:
        return self.after(self.lengths.tolist())


def scored(name: str, runs: Sequence[Judged], boot: int, *, oracle_stop: bool = False) -> Scored:
    """Return a source's runs without those that are too short to count."""
    kept = [run for run in runs if len(run.scores) >= MIN_STEPS]
    tasks = [run.task_key for run in kept]
    return Scored(
        name=name,
        oracle_stop=oracle_stop,
        failing=np.array([run.failed for run in kept], dtype=np.bool_),
        lengths=np.array([len(run.scores) for run in kept], dtype=np.int64),
        tasks=np.unique(np.array(tasks), return_inverse=True)[1],
        so_far=[np.maximum.accumulate(np.array(run.scores)) for run in kept],
        fires=[np.array(run.fires, dtype=np.bool_) for run in kept],
        weights=redraws(tasks, boot, name),
    )


def columns(runs: Scored) -> dict[str, Draws]:
    """Return every column of this source; if its runs stop at success, only those that length cannot influence."""
    figures = dict(_at_landmarks(runs))
    if not runs.oracle_stop:
        figures |= dict(_at_whole_length(runs))
    if any(len(fires) for fires in runs.fires):
        figures |= dict(_at_own_thresholds(runs))
    return figures


def _at_whole_length(runs: Scored) -> Iterator[tuple[str, Draws]]:
    whole, half = runs.whole, runs.after(runs.halves)
    yield "full", auroc(runs.failing, whole, runs.weights)
    yield "half", auroc(runs.failing, half, runs.weights)
    yield "match", stratified_auroc(runs.failing, whole, length_bins(runs.lengths), runs.weights)
    if _mixed_tasks(runs) >= MIN_MIXED_TASKS:
        yield "task", stratified_auroc(runs.failing, whole, runs.tasks, runs.weights)
    yield "r10", recall(runs.failing, whole, runs.weights)
    yield "r10h", recall(runs.failing, half, runs.weights)


def length_bins(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the bin of each length: one of at most 8, with about equally many runs in each."""
    inner = np.quantile(lengths, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1])
    return np.searchsorted(np.unique(inner), lengths).astype(np.int64)


def _mixed_tasks(runs: Scored) -> int:
    """Count the tasks that have a failing and a successful run."""
    return len(np.intersect1d(runs.tasks[runs.failing], runs.tasks[~runs.failing]))


def _at_landmarks(runs: Scored) -> Iterator[tuple[str, Draws]]:
    warned, caught = [], []
    for landmark in LANDMARKS:
        alive = runs.lengths > landmark
        failing = runs.failing[alive]
        if min(failing.sum(), (~failing).sum()) >= MIN_AT_LANDMARK:
            scores = runs.after(np.minimum(runs.lengths, landmark).tolist())[alive]
            warned.append(auroc(failing, scores, runs.weights[:, alive]))
            caught.append(recall(failing, scores, runs.weights[:, alive]))
    if warned:
        yield "land", mean_of(warned)
        yield "r10L", mean_of(caught)


def _at_own_thresholds(runs: Scored) -> Iterator[tuple[str, Draws]]:
    """Yield the columns at the gate's own thresholds."""
    ever = np.array([bool(fires.any()) for fires in runs.fires])
    early = np.array([bool(fires[:half].any()) for fires, half in zip(runs.fires, runs.halves, strict=True)])
    yield "own_failing", share(ever, runs.failing, runs.weights)
    yield "own_passing", share(ever, ~runs.failing, runs.weights)
    yield "own_half_failing", share(early, runs.failing, runs.weights)
    yield "own_half_passing", share(early, ~runs.failing, runs.weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One run as a fit sees it.

    For each step it holds the evidence so far, each monitor's score, and the raw difficulty without its errors. A run
    without an outcome has not `failed`.
    """

    source: str
    task_key: str
    failed: bool
    stopped_at_success: bool
    evidence: tuple[Mapping[str, float], ...]
    findings: tuple[Mapping[str, float], ...]
    calm: tuple[float, ...]
    numbers: tuple[tuple[float, ...], ...]
    stale: tuple[bool, ...]


def observed(run: RecordedRun, tool_roles: Mapping[str, str] | None = None) -> Observed:
    """Return what a fit needs of the run."""
    memories: dict[str, JSON] = {}
    gathered, findings, calm, numbers, stale = [], [], [], [], []
    lasting = shipped().persistence
    for index, step in enumerate(run.steps):
        brought, memories[novelty.OWN_MEMORY] = novelty.observe(step, memories.get(novelty.OWN_MEMORY))
        features = features_of(step, index, run.task or "", tool_roles or {}, brought)
        row, memories[persistence.OWN_MEMORY] = persistence.measure(features, memories.get(persistence.OWN_MEMORY))
        persistence.complete(features, row, memories[persistence.OWN_MEMORY], lasting)
        numbers.append(row)
        stale.append(features.stale)
        measured, memories[indicators.OWN_MEMORY] = indicators.gather(features, memories.get(indicators.OWN_MEMORY))
        found = {monitor.name: monitor.observe(features, memories.get(monitor.name)) for monitor in MONITORS}
        memories.update({name: finding.memory for name, finding in found.items()})
        gathered.append(measured)
        findings.append({name: finding.score for name, finding in found.items()})
        calm.append(calm_of(parts_of(step)))
    return Observed(
        source=run.source or "",
        task_key=run.task_key,
        failed=run.outcome_kind == "failure",
        stopped_at_success=bool(run.oracle_stop),
        evidence=tuple(gathered),
        findings=tuple(findings),
        calm=tuple(calm),
        numbers=tuple(numbers),
        stale=tuple(stale),
    )


def by_source(runs: Sequence[Observed]) -> dict[str, list[Observed]]:
    """Group runs by source, in the order in which the sources first occur."""
    sources: dict[str, list[Observed]] = {}
    for run in runs:
        sources.setdefault(run.source, []).append(run)
    return sources
