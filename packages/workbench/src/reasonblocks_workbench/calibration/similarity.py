"""Fits similarity curves to an embedder: measures the cosines that unrelated texts reach in a bank of patterns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

import numpy
from numpy.typing import NDArray

from reasonblocks.engine import TEXT_BYTES
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import Curve, SimilarityCurves
from reasonblocks.ports import Embedder, SummingEmbedder
from reasonblocks.types import Tier
from reasonblocks.util.text import count_noun, cut_with_hash

from ..traces import RecordedRun

FITTED: Mapping[float, float] = {0.7: 0.05, 0.8: 0.01}
"""The share of unrelated queries that may reach a similarity with any pattern of a bank, by similarity."""
TIERS_FITTED: tuple[Tier, ...] = ("e1", "e2")
BANK = 400
"""Patterns that a query is compared with: about what a team has after a year."""
ROUNDS = 100
"""Random draws, each of a bank and of queries from other groups."""
QUERIES = 200
"""Queries of a round; every group is drawn equally often, however many texts it has."""
MIN_QUERIES = 200
"""Different queries that each tier needs: 1 % of fewer could not be estimated."""
PER_RUN = 6
"""Texts of one run, spread over its length, because neighbours are nearly equal."""
PER_TASK = 60
EMBEDDED = 2_400
"""Texts of one sort and tier that are embedded, equally many of each group: 10 MB for an embedder that costs money."""
APART = 0.01
"""The least distance of cosine between two points of a curve."""
SEED = 6

Window = tuple[str, ...]
Vectors = NDArray[numpy.float32]


class Texts:
    """Texts of recorded runs: those that a store would be queried with, and those that could be exemplars in it."""

    def __init__(self) -> None:
        self._queries: dict[Tier, dict[_Task, dict[Window, bool]]] = {"e1": {}, "e2": {}}
        """The texts by source and task; the value is True if most steps of the window show a thought."""
        self._thoughts: dict[_Task, dict[Window, bool]] = {}
        self.runs = 0

    def add(self, run: RecordedRun, kind: str | None = None) -> None:
        """Add the run's texts. `kind` names the kind of agent and task; by default it is the run's source."""
        self.runs += 1
        task = (run.source or "" if kind is None else kind, run.task_key)
        steps = [
            (cut_with_hash(step.scored_text, TEXT_BYTES), bool((step.thought + step.reasoning).strip()))
            for step in run.steps
        ]
        for tier, queries in self._queries.items():
            _add_windows(steps, TIER_RULES[tier].steps, queries.setdefault(task, {}))
        _add_windows([(text, thinking) for text, thinking in steps if thinking], 1, self._thoughts.setdefault(task, {}))

    def groups(self, tier: Tier) -> tuple[list[list[Window]], list[list[Window]]]:
        """Return the queries and the exemplars of each group of runs.

        Groups share neither source nor task; if all runs are of one source, each task is a group. Half of the exemplars
        are single thoughts, the other half windows of as many steps as a query has.
        """
        group_of = _groups([task for task, found in self._queries[tier].items() if found])
        names = sorted(set(group_of.values()))
        queries: dict[str, list[Window]] = {name: [] for name in names}
        windows: dict[str, list[Window]] = {name: [] for name in names}
        thoughts: dict[str, list[Window]] = {name: [] for name in names}
        for task, name in group_of.items():
            found = self._queries[tier][task]
            queries[name] += found
            windows[name] += [window for window, thinking in found.items() if thinking]
            thoughts[name] += self._thoughts[task]
        most = max(1, EMBEDDED // max(1, len(names)))
        sampled = [_sampled(queries[name], most) for name in names]
        return sampled, [_sampled(windows[name], most // 2) + _sampled(thoughts[name], most // 2) for name in names]


_Task = tuple[str, str]


def _add_windows(steps: Sequence[tuple[str, bool]], size: int, into: dict[Window, bool]) -> None:
    """Add windows of `size` steps from all over a run."""
    spare = len(steps) - size
    for start in sorted({spare * at // PER_RUN for at in range(PER_RUN + 1)}) if spare >= 0 else ():
        window = steps[start : start + size]
        texts = tuple(text for text, _ in window)
        if len(into) < PER_TASK and "".join(texts).strip():
            into[texts] = 2 * sum(thinking for _, thinking in window) > size


def _sampled(windows: Sequence[Window], most: int) -> list[Window]:
    return list(windows[:: -(-len(windows) // most) or 1])


def _groups(tasks: Sequence[_Task]) -> dict[_Task, str]:
    """Return the group of each source and task: sources with a task in common form one group."""
    if len({source for source, _ in tasks}) == 1:
        return {task: task[1] for task in tasks}
    group_of = {source: source for source, _ in tasks}
    first: dict[str, str] = {}
    for source, key in tasks:
        kept, merged = group_of[first.setdefault(key, source)], group_of[source]
        group_of = {name: kept if group == merged else group for name, group in group_of.items()}
    return {task: group_of[task[0]] for task in tasks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The curves, and the data behind them.

    `queries` and `groups` are counts. `reached` is the share of queries that reach each similarity, in draws other than
    those that the curves were fitted to.
    """

    curves: SimilarityCurves
    queries: Mapping[Tier, int]
    groups: Mapping[Tier, int]
    reached: Mapping[Tier, Mapping[float, float]]


def fit_curves(embedder: Embedder, texts: Texts) -> Fit:
    """Fit the curves on which `FITTED` holds.

    Raises `ConfigError` if there is too little text, or if the cosines do not separate anything.
    """
    curves: dict[Tier, Curve] = {}
    queries: dict[Tier, int] = {}
    groups: dict[Tier, int] = {}
    shares: dict[Tier, Mapping[float, float]] = {}
    for tier in TIERS_FITTED:
        compared = Compared.of(embedder, texts, tier)
        queries[tier], groups[tier] = compared.cosines.shape[0], len(compared.places)
        curves[tier] = _curve(compared.best(SEED), TIER_RULES[tier].steps)
        shares[tier] = reached(compared.best(SEED + 1), curves[tier])
    return Fit(
        curves=SimilarityCurves(e1=curves["e1"], e2=curves["e2"]), queries=queries, groups=groups, reached=shares
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """The cosine of each query with each exemplar, and the ranges of rows and columns of each group."""

    cosines: Vectors
    places: tuple[tuple[range, range], ...]

    @classmethod
    def of(cls, embedder: Embedder, texts: Texts, tier: Tier) -> Compared:
        """Embed and compare the texts of one tier. Raises `ConfigError` if there is too little text."""
        queries, exemplars = texts.groups(tier)
        _check(sum(map(len, queries)), sum(map(len, exemplars)), len(queries), TIER_RULES[tier].steps)
        cosines = _embedded(embedder, queries) @ _embedded(embedder, exemplars).T
        return cls(cosines=cosines, places=tuple(zip(_places(queries), _places(exemplars))))

    def best(self, seed: int) -> list[float]:
        """Return each query's best cosine with a bank. In each round, half of the groups form the bank."""
        chance, best = Random(seed), list[float]()
        for _ in range(ROUNDS):
            order = chance.sample(self.places, len(self.places))
            half = len(order) // 2
            drawn = _drawn([queries for queries, _ in order[:half]], QUERIES, chance)
            bank = _drawn([exemplars for _, exemplars in order[half:]], BANK, chance)
            if drawn and bank:
                best += self.cosines[numpy.ix_(drawn, bank)].max(axis=1).tolist()
        return best


def reached(cosines: Iterable[float], curve: Curve) -> dict[float, float]:
    """Return, for each fitted similarity, the share of queries whose best cosine reaches it."""
    similarities = [curve(cosine) for cosine in cosines]
    return {at: sum(similarity >= at for similarity in similarities) / len(similarities) for at in FITTED}


def _check(queries: int, exemplars: int, groups: int, steps: int) -> None:
    if groups < 2:
        raise ConfigError(
            "runs",
            f"{count_noun(groups, 'task')} with {count_noun(steps, 'step')}",
            "texts of at least 2 tasks are compared",
        )
    for sort, found, least in (("texts", queries, MIN_QUERIES), ("thoughts", exemplars, BANK)):
        if found < least:
            raise ConfigError("runs", f"{found} different {sort} of {steps} steps", f"at least {least} are needed")


def _embedded(embedder: Embedder, groups: Sequence[Sequence[Window]]) -> Vectors:
    """Return unit vectors [texts, dim], embedded as a store embeds a query."""
    windows = [window for group in groups for window in group]
    if isinstance(embedder, SummingEmbedder):
        vectors = numpy.asarray([embedder.embed_sum(window, None, None) for window in windows])
    else:
        vectors = numpy.asarray(embedder.embed_many(["\n".join(window) for window in windows]))
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / numpy.where(lengths > 0, lengths, 1)).astype(numpy.float32)


def _places(groups: Sequence[Sequence[Window]]) -> list[range]:
    """Return the range of each group's texts among all."""
    ends = list(accumulate(map(len, groups), initial=0))
    return [range(start, end) for start, end in pairwise(ends)]


def _drawn(groups: Sequence[range], count: int, chance: Random) -> list[int]:
    """Draw the places of `count` texts, from each group equally often; none if all groups are empty."""
    full = [group for group in groups if group]
    return [chance.choice(chance.choice(full)) for _ in range(count if full else 0)]


def _curve(best: Sequence[float], steps: int) -> Curve:
    """Return the line from similarity 0 at a cosine of 0 through the fitted cosines to 1 at 1."""
    cosines = sorted(best, reverse=True)
    low, high = (_above(cosines[int(share * len(cosines))]) for share in FITTED.values())
    high = round(max(high, low + APART), 4)
    if high > 1 - APART:
        rule = f"unrelated texts of {steps} steps are as near as equal ones: nothing can be told by this embedder"
        raise ConfigError("runs", f"cosines of {high:.3f}", rule)
    near, nearer = FITTED
    return Curve(((min(0.0, low - APART), 0.0), (low, near), (high, nearer), (1.0, 1.0)))


def _above(cosine: float) -> float:
    """Return the next higher number of four decimals, so that the share that reaches it is not too large."""
    return (math.floor(cosine * 10_000) + 1) / 10_000
