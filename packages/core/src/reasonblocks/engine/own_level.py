"""Judges a run by its agent's own level: what is usual in the newest finished runs of that agent, without outcomes.

Levels differ between agents, so one threshold for all of them speaks in most of the long runs of strong agents. A run's
summary has the largest value of each measure that a threshold exists for. The own threshold of the chance that trouble
lasts is the lowest one that at most a tenth of the agent's runs have reached. It is averaged with the calibration's
threshold, with more weight for more runs, and never falls below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from ..monitors.builtin import BY_NAME, Calibration
from ..types import Evaluation, OwnLevel, TraceState
from ..util.json import compact, evolve
from .scoring import LEVEL_STEPS

COMPOSITE, PERSISTENCE, DIFFICULTY = "composite", "persistence", "difficulty"
MEASURES = (COMPOSITE, PERSISTENCE, *BY_NAME)
"""Names of the values that a run's own threshold may exist for. The composite counts as the gate reads it: the smaller
one of two steps in a row."""
KEPT = frozenset({*MEASURES, DIFFICULTY})
"""Names in a summary. Others, of a newer version, are ignored."""
MIN_RUNS = 20
"""Runs of the agent from which on a run is judged by its own level (MONITORS section 5: fewer say too little)."""
MAX_RUNS = 200
"""Newest runs of an agent that are kept."""
RAISED = (PERSISTENCE,)
"""Measures whose own threshold counts. Raising those of the composite and of each monitor as well leaves more lasting
trouble without a text (early .24 in place of .33, of .42 by the shipped thresholds, on recorded runs with 50 own runs
each) for a lift of 3.0 in place of 2.8."""
FLAGGED = 0.1
"""The share of the agent's own runs that may reach its own threshold."""
PRIOR_RUNS = 10.0
"""Weight of the calibration, in runs of the agent."""
FLOOR = 1.0
"""The lowest threshold, as a share of the calibration's: it is only raised. A lower one brings more texts, and
no more of the lasting trouble is addressed."""
ABOVE = 0.005
"""Distance of an own threshold above the value that more runs than allowed have reached."""
Summary = Mapping[str, float]
"""The values of one finished run, each in [0, 1], by their names in `KEPT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """The summaries of an agent's newest finished runs, the newest last."""

    runs: tuple[Summary, ...] = ()

    def values(self, name: str) -> list[float]:
        """Return the runs' values of one name, without the runs that lack it."""
        return [run[name] for run in self.runs if name in run]


def judged(calibration: Calibration, profile: AgentProfile | None) -> Calibration:
    """Return the calibration with the thresholds of the agent's own level; unchanged for fewer than 20 runs."""
    return with_own_level(calibration, own_level(calibration, profile))


def own_level(calibration: Calibration, profile: AgentProfile | None) -> OwnLevel | None:
    """Return the agent's own level; None for fewer than 20 runs, and for a calibration that does not want it."""
    if profile is None or len(profile.runs) < MIN_RUNS or not calibration.own_level:
        return None
    thresholds = {
        name: _shrunk(shipped, profile.values(name), FLOOR * shipped, _reached_rarely)
        for name, shipped in thresholds_of(calibration).items()
        if name in RAISED
    }
    difficulty = _shrunk(calibration.level.mean, profile.values(DIFFICULTY), 0.0, _mean)
    mark = crc32(compact([*thresholds.values(), difficulty]).encode()) & 0xFFFFFF
    name = f"own:{len(profile.runs)} runs:{mark:06x}"
    return OwnLevel(name=name, thresholds=thresholds, difficulty_mean=difficulty)


def thresholds_of(calibration: Calibration) -> dict[str, float]:
    """Return the calibration's thresholds by measure."""
    return {COMPOSITE: calibration.composite, PERSISTENCE: calibration.persistence.threshold, **calibration.fires}


def with_own_level(calibration: Calibration, own: OwnLevel | None) -> Calibration:
    """Return the calibration with the thresholds of an own level; those that it lacks are unchanged."""
    if own is None:
        return calibration
    level, persistence = calibration.level, calibration.persistence
    return evolve(
        calibration,
        level=level if own.difficulty_mean is None else evolve(level, mean=own.difficulty_mean),
        persistence=evolve(persistence, threshold=own.thresholds.get(PERSISTENCE, persistence.threshold)),
        fires={name: own.thresholds.get(name, fires) for name, fires in calibration.fires.items()},
        composite=own.thresholds.get(COMPOSITE, calibration.composite),
    )


def _shrunk(shipped: float, values: Sequence[float], floor: float, own: Callable[[Sequence[float]], float]) -> float:
    """Return the average of the shipped value and the agent's own, which weighs more the more runs there are."""
    if len(values) < MIN_RUNS:
        return shipped
    weight = len(values) / (len(values) + PRIOR_RUNS)
    return round(max(floor, shipped + weight * (own(values) - shipped)), 4)


def _reached_rarely(values: Sequence[float]) -> float:
    """Return the lowest threshold that at most `FLAGGED` of the values have reached."""
    highest_first = sorted(values, reverse=True)
    return min(1.0, highest_first[int(FLAGGED * len(values))] + ABOVE)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def raised(maxima: Summary, evaluation: Evaluation, before: float | None, *, stale: bool) -> Summary:
    """Return the largest values including this step's; `before` is the composite one step earlier.

    The chance that trouble lasts counts only for a step that brought nothing new (`stale`), as in the gate.
    """
    now: dict[str, float] = {COMPOSITE: min(evaluation.composite, before or 0.0)}
    if evaluation.persistence is not None:
        now[PERSISTENCE] = evaluation.persistence if stale else 0.0
    for name in BY_NAME:
        if name in evaluation.scores:
            now[name] = evaluation.scores[name]
    higher = {name: round(value, 4) for name, value in now.items() if value > maxima.get(name, -1.0)}
    return {**maxima, **higher} if higher else maxima


def summary_of(state: TraceState) -> Summary:
    """Return the summary of a finished run; empty for a run that no monitor has judged."""
    if not state.maxima:
        return {}
    memory = state.score_memory
    first = min(memory.count, LEVEL_STEPS)
    return {**state.maxima, **({DIFFICULTY: round(min(1.0, memory.total / first), 4)} if first else {})}


def summary_in(given: object) -> Summary | None:
    """Return the known values of a stored summary; None if it is not one."""
    if not isinstance(given, Mapping):
        return None
    found = {name: value for name, value in given.items() if name in KEPT}
    usable = all(type(value) in (int, float) and 0 <= value <= 1 for value in found.values())
    return found if found and usable else None
