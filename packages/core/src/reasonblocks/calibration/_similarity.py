"""What an embedder's cosines are worth: those that unrelated texts of recorded runs reach in a bank of patterns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

import numpy
from numpy.typing import NDArray

from .._engine import TEXT_BYTES
from .._gates import TIER_RULES
from .._patterns import Curve, SimilarityCurves
from .._text import bounded
from ..exceptions import ConfigError
from ..ports import Embedder, SummingEmbedder
from ..traces import RecordedRun
from ..types import Tier

FITTED: Mapping[float, float] = {0.7: 0.05, 0.8: 0.01}
"""Similarity: the share of unrelated queries that may reach it with any pattern of a bank."""
TIERS_FITTED: tuple[Tier, ...] = ("e1", "e2")
BANK = 400
"""Patterns that a query is compared with: what a team has after a year."""
ROUNDS = 100
"""Draws of a bank and of queries from groups that are not in it."""
QUERIES = 200
"""A round, drawn from all its groups alike, however many texts each has."""
MIN_QUERIES = 200
"""Different ones, of each tier: 1 % of fewer is no figure."""
PER_RUN = 6
"""Texts of one run, spread over its length: neighbours say nearly the same."""
PER_TASK = 60
EMBEDDED = 2_400
"""Texts of one sort and tier that are embedded, of each group alike: 10 MB of text for an embedder that is paid."""
APART = 0.01
"""Of a cosine between two points of a curve, at least."""
SEED = 6

Window = tuple[str, ...]
Vectors = NDArray[numpy.float32]


class Texts:
    """What a store would be asked for in recorded runs, and what could be an exemplar in it."""

    def __init__(self) -> None:
        self._queries: dict[Tier, dict[_Task, dict[Window, bool]]] = {"e1": {}, "e2": {}}
        """By source and task; whether most of the steps show a thought."""
        self._thoughts: dict[_Task, dict[Window, bool]] = {}
        self.runs = 0

    def add(self, run: RecordedRun, kind: str | None = None) -> None:
        """`kind`: of agent and task, the run's source if nobody knows better."""
        self.runs += 1
        task = (run.source or "" if kind is None else kind, run.task_key)
        steps = [
            (bounded(step.scored_text, TEXT_BYTES), bool((step.thought + step.reasoning).strip())) for step in run.steps
        ]
        for tier, queries in self._queries.items():
            _spread(steps, TIER_RULES[tier].steps, queries.setdefault(task, {}))
        _spread([one for one in steps if one[1]], 1, self._thoughts.setdefault(task, {}))

    def groups(self, tier: Tier) -> tuple[list[list[Window]], list[list[Window]]]:
        """Queries and exemplars of each group of runs that have neither source nor task in common; where all runs are
        of one source, of each task. Half of the exemplars are thoughts, half as many steps as the queries."""
        kind = _kinds([task for task, found in self._queries[tier].items() if found])
        names = sorted(set(kind.values()))
        queries: dict[str, list[Window]] = {name: [] for name in names}
        trains: dict[str, list[Window]] = {name: [] for name in names}
        thoughts: dict[str, list[Window]] = {name: [] for name in names}
        for task, name in kind.items():
            found = self._queries[tier][task]
            queries[name] += found
            trains[name] += [window for window, thinking in found.items() if thinking]
            thoughts[name] += self._thoughts[task]
        most = max(1, EMBEDDED // max(1, len(names)))
        asked = [_some(queries[name], most) for name in names]
        return asked, [_some(trains[name], most // 2) + _some(thoughts[name], most // 2) for name in names]


_Task = tuple[str, str]


def _spread(steps: Sequence[tuple[str, bool]], size: int, into: dict[Window, bool]) -> None:
    """Windows of so many steps from all over a run."""
    spare = len(steps) - size
    for start in sorted({spare * at // PER_RUN for at in range(PER_RUN + 1)}) if spare >= 0 else ():
        window = steps[start : start + size]
        texts = tuple(text for text, _ in window)
        if len(into) < PER_TASK and "".join(texts).strip():
            into[texts] = 2 * sum(thinking for _, thinking in window) > size


def _some(windows: Sequence[Window], most: int) -> list[Window]:
    return list(windows[:: -(-len(windows) // most) or 1])


def _kinds(tasks: Sequence[_Task]) -> dict[_Task, str]:
    """The group of each source and task: sources with a task in common are one."""
    if len({source for source, _ in tasks}) == 1:
        return {task: task[1] for task in tasks}
    same = {source: source for source, _ in tasks}
    first: dict[str, str] = {}
    for source, key in tasks:
        one, other = same[first.setdefault(key, source)], same[source]
        same = {name: one if group == other else group for name, group in same.items()}
    return {task: same[task[0]] for task in tasks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The curves, and what they rest on: queries and groups by tier, and the share of queries in draws of their own
    that reach each similarity."""

    curves: SimilarityCurves
    queries: Mapping[Tier, int]
    groups: Mapping[Tier, int]
    reached: Mapping[Tier, Mapping[float, float]]


def fit_curves(embedder: Embedder, texts: Texts) -> Fit:
    """The cosines at which `FITTED` holds, as curves.

    Raises `ConfigError` with the reason when there is too little text, or when cosines tell nothing apart.
    """
    curves: dict[Tier, Curve] = {}
    queries: dict[Tier, int] = {}
    groups: dict[Tier, int] = {}
    held: dict[Tier, Mapping[float, float]] = {}
    for tier in TIERS_FITTED:
        compared = Compared.of(embedder, texts, tier)
        queries[tier], groups[tier] = compared.cosines.shape[0], len(compared.places)
        curves[tier] = _curve(compared.best(SEED), TIER_RULES[tier].steps)
        held[tier] = reached(compared.best(SEED + 1), curves[tier])
    return Fit(curves=SimilarityCurves(e1=curves["e1"], e2=curves["e2"]), queries=queries, groups=groups, reached=held)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """The cosine of each query with each exemplar, and where in them each group's are."""

    cosines: Vectors
    places: tuple[tuple[range, range], ...]

    @classmethod
    def of(cls, embedder: Embedder, texts: Texts, tier: Tier) -> Compared:
        """Raises `ConfigError` when there is too little text."""
        asked, stored = texts.groups(tier)
        _check(sum(map(len, asked)), sum(map(len, stored)), len(asked), TIER_RULES[tier].steps)
        cosines = _embedded(embedder, asked) @ _embedded(embedder, stored).T
        return cls(cosines=cosines, places=tuple(zip(_places(asked), _places(stored))))

    def best(self, seed: int) -> list[float]:
        """Each query's best cosine with a bank; in a round half of the groups are asked, the others are the bank."""
        chance, best = Random(seed), list[float]()
        for _ in range(ROUNDS):
            order = chance.sample(self.places, len(self.places))
            half = len(order) // 2
            asked = _drawn([queries for queries, _ in order[:half]], QUERIES, chance)
            bank = _drawn([exemplars for _, exemplars in order[half:]], BANK, chance)
            if asked and bank:
                best += self.cosines[numpy.ix_(asked, bank)].max(axis=1).tolist()
        return best


def reached(cosines: Iterable[float], curve: Curve) -> dict[float, float]:
    """The share of queries whose best cosine is worth each similarity."""
    similarities = [curve(cosine) for cosine in cosines]
    return {at: sum(one >= at for one in similarities) / len(similarities) for at in FITTED}


def _check(queries: int, exemplars: int, groups: int, steps: int) -> None:
    if groups < 2:
        raise ConfigError("runs", f"{groups} tasks with {steps} steps", "texts of at least 2 tasks are compared")
    for sort, found, least in (("texts", queries, MIN_QUERIES), ("thoughts", exemplars, BANK)):
        if found < least:
            raise ConfigError("runs", f"{found} different {sort} of {steps} steps", f"at least {least} are needed")


def _embedded(embedder: Embedder, groups: Sequence[Sequence[Window]]) -> Vectors:
    """Unit vectors [texts, dim], of each as a store embeds a query."""
    windows = [window for group in groups for window in group]
    if isinstance(embedder, SummingEmbedder):
        vectors = numpy.asarray([embedder.embed_sum(window, None, None) for window in windows])
    else:
        vectors = numpy.asarray(embedder.embed_many(["\n".join(window) for window in windows]))
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / numpy.where(lengths > 0, lengths, 1)).astype(numpy.float32)


def _places(groups: Sequence[Sequence[Window]]) -> list[range]:
    """Where each group's texts are among all."""
    ends = list(accumulate(map(len, groups), initial=0))
    return [range(start, end) for start, end in pairwise(ends)]


def _drawn(groups: Sequence[range], count: int, chance: Random) -> list[int]:
    """So many texts' places, from each group alike; none where there are none."""
    full = [group for group in groups if group]
    return [chance.choice(chance.choice(full)) for _ in range(count if full else 0)]


def _curve(best: Sequence[float], steps: int) -> Curve:
    """Straight from nothing at a cosine of 0, through the fitted cosines, to 1 at 1."""
    cosines = sorted(best, reverse=True)
    low, high = (_above(cosines[int(share * len(cosines))]) for share in FITTED.values())
    high = round(max(high, low + APART), 4)
    if high > 1 - APART:
        rule = f"unrelated texts of {steps} steps are as near as equal ones: nothing can be told by this embedder"
        raise ConfigError("runs", f"cosines of {high:.3f}", rule)
    near, nearer = FITTED
    return Curve(((min(0.0, low - APART), 0.0), (low, near), (high, nearer), (1.0, 1.0)))


def _above(cosine: float) -> float:
    """The next of four decimals: the share that reaches it is no larger than wanted."""
    return (math.floor(cosine * 10_000) + 1) / 10_000
