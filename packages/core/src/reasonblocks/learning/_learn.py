"""From gathered runs to proposals: grouped by kind, merged by similarity, distilled, and gated against calm steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from .._gates import TIER_RULES
from .._json import evolve
from .._patterns import checked
from .._replay import SessionFactory, replay
from ..backends._stores.table import Rows
from ..backends._stores.vectors import Vectors
from ..backends.embed import default_embedder
from ..ports import Embedder
from ..traces import RecordedRun
from ..types import Pattern, Tier
from ._alternatives import Instead, after_the_same, applies, at_the_same_point, over_tasks
from ._digest import Calm, RunDigest, digest_of
from ._distil import distil as built_in
from ._evidence import Distil, Evidence, evidence_of
from ._gather import Gathered
from ._proposal import Proposal
from ._secrets import detectors
from ._trouble import Kind


class Similar:
    """Calibrated similarity by one embedder. Holds a vector a text: as bounded as the texts are.

    Raises `BadAnswer` for what an embedder must not give; what an embedder raises is passed on.
    """

    __slots__ = ("_kept", "_vectors")

    def __init__(self, embedder: Embedder) -> None:
        self._vectors = Vectors(embedder)
        self._kept: dict[str, Rows] = {}

    def highest(self, tier: Tier, ones: Sequence[str], others: Sequence[str]) -> float:
        """The similarity of the two that are nearest to each other; 0 without any."""
        if not ones or not others:
            return 0.0
        return self._vectors.embedder.curves.of(tier)(float((self._rows(ones) @ self._rows(others).T).max()))

    def _rows(self, texts: Sequence[str]) -> Rows:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            self._kept.update(zip(new, self._vectors.of(new), strict=True))
        return np.stack([self._kept[text] for text in texts])


MAX_PER_KIND = 3
"""Lessons of tier e1 about one kind of trouble of one agent; there is one of e2."""
SHARED_TASKS = 3
"""Tasks with the same trouble from which on it is a pattern, and not one task's."""
MIN_GATE: Mapping[Tier, float] = MappingProxyType({"e1": 0.9, "e2": TIER_RULES["e2"].similarity})
"""The gate of a lesson that nothing calm comes near to. Similarities are fitted to texts of agents of other kinds;
among those of one agent .8 is common. Of the lessons of tier e1 that runs of tasks left out were given
(benchmarks/learning.py on 1,584 runs), those about the tool in trouble and those about another were 13 and 19 at a gate
of .8, 9 and 16 at .85, 5 and 3 at .9."""
MARGIN = 0.01
"""How far above the nearest calm step a lesson's own gate lies."""
HIGHEST_GATE = 0.97
"""A lesson that calm steps come nearer to than this would rarely be found where it belongs: it is left out. By the
shipped model a cosine of .94; with .95 seven of 69 steps in trouble are not given the lesson of e2 that fits
(benchmarks/learning.py on 1,584 runs), and none is spared another tool's."""


@dataclass(frozen=True, slots=True)
class _Room:
    """What all kinds are judged with."""

    gathered: Gathered
    org_id: str
    similar: Similar
    distil: Distil
    common: frozenset[str]
    calm: Sequence[Calm]
    troubled: Sequence[RunDigest]


def learn(
    runs: Iterable[RecordedRun],
    *,
    rb: SessionFactory,
    org_id: str = "default",
    embedder: Embedder | None = None,
    distil: Distil | None = None,
    tool_roles: Mapping[str, str] | None = None,
) -> tuple[Proposal, ...]:
    """Return the lessons that these finished runs teach, most support first; runs without an outcome teach nothing.

    `rb` is the `ReasonBlocks` that judges the runs: its monitors and thresholds define trouble. `org_id` owns the
    lessons. `distil(evidence)` makes a `Pattern` of an `Evidence`, or None if nothing is worth saying. It may ask a
    language model; the built-in one is plain code. Its exceptions propagate. Memory is bounded for any number of runs.
    Raises `ConfigError` if the distiller returns a pattern that no store would accept, and `ExtraMissing` without
    detect-secrets: no run is read without masking.
    """
    detectors()
    gathered = Gathered()
    for run in runs:
        if run.steps and run.has_outcome:
            gathered.add(digest_of(replay(rb, run), tool_roles or {}))
    return proposals(gathered, org_id=org_id, embedder=embedder, distil=distil)


def proposals(
    gathered: Gathered,
    *,
    org_id: str,
    embedder: Embedder | None = None,
    distil: Distil | None = None,
    similar: Similar | None = None,
) -> tuple[Proposal, ...]:
    """What the runs teach, most support first; the same for the same runs in the same order."""
    failed = gathered.failed
    similar = similar or Similar(embedder if embedder is not None else _default())
    room = _Room(gathered, org_id, similar, distil or built_in, gathered.common, gathered.calm, failed)
    kinds: dict[tuple[str, Kind], list[RunDigest]] = {}
    for run in failed:
        if run.trouble is not None:
            kinds.setdefault((run.agent, run.trouble.kind), []).append(run)
    found = [one for (agent, _), runs in sorted(kinds.items()) for one in _of_kind(room, agent, runs)]
    unique = {one.pattern.id: one for one in found}
    return tuple(sorted(unique.values(), key=lambda one: (-one.tasks, -one.runs, one.pattern.id)))


def _default() -> Embedder:
    found: Embedder = default_embedder()
    return found


def _of_kind(room: _Room, agent: str, runs: Sequence[RunDigest]) -> Iterator[Proposal]:
    again = any(run.trouble is not None and run.trouble.kind.form == "repeat" for run in runs)
    elsewhere = None if again else _elsewhere(room, agent, runs)  # what came again differs from run to run
    found = {run.run_id: _at_its_point(room, run) for run in runs}
    ways: dict[object, list[tuple[RunDigest, Instead | None]]] = {}
    for run in runs:
        other = _elsewhere(room, agent, [run]) if again else elsewhere
        instead = _convincing(found[run.run_id]) or _applying(other, [run])
        ways.setdefault(instead and (instead.same_task, instead.move.way), []).append((run, instead))
    made = [one for alike in ways.values() for one in _of_one_way(room, alike)]
    yield from sorted(made, key=lambda one: (-one.runs, one.pattern.id))[:MAX_PER_KIND]
    spread = _one_a_task_first(runs)
    tasks = {run.task_key: found[run.run_id] for run in reversed(spread)}
    if len(tasks) >= SHARED_TASKS:
        shared = _convincing(over_tasks([one for one in tasks.values() if one is not None]))
        shared = _applying(shared, runs) or _applying(elsewhere, runs)
        if (lesson := _proposal(room, evidence_of("e2", room.org_id, spread, shared))) is not None:
            yield lesson


def _elsewhere(room: _Room, agent: str, runs: Sequence[RunDigest]) -> Instead | None:
    return _convincing(after_the_same(runs, room.gathered.successful(agent), room.common))


def _of_one_way(room: _Room, alike: Sequence[tuple[RunDigest, Instead | None]]) -> Iterator[Proposal]:
    """A lesson for each group of runs that thought alike; it tells of the way as the first of them shows it."""
    shown = {run.run_id: instead for run, instead in alike}
    for cluster in _clusters(room, [run for run, _ in alike]):
        evidence = evidence_of("e1", room.org_id, cluster, shown[cluster[0].run_id])
        if (one := _proposal(room, evidence)) is not None:
            yield one


def _convincing(instead: Instead | None) -> Instead | None:
    return instead if instead is not None and instead.convinces else None


def _applying(instead: Instead | None, runs: Sequence[RunDigest]) -> Instead | None:
    """The way, if most of these runs could have gone it."""
    bad = [run.acts[run.trouble.steps[-1]] for run in runs if run.trouble is not None]
    return instead if instead and 2 * sum(applies(instead.move, act) for act in bad) > len(bad) else None


def _at_its_point(room: _Room, run: RunDigest) -> Instead | None:
    return at_the_same_point(run, room.gathered.successful(run.agent, run.task_key), room.common)


def _clusters(room: _Room, runs: Sequence[RunDigest]) -> list[list[RunDigest]]:
    """Runs whose thoughts were alike there, by the similarity that a search of tier e1 asks for."""
    clusters: list[list[RunDigest]] = []
    for run in runs:
        near = [(room.similar.highest("e1", [_text(run)], [_text(other) for other in one]), one) for one in clusters]
        similarity, nearest = max(near, key=lambda pair: pair[0], default=(0.0, None))
        if nearest is not None and similarity >= TIER_RULES["e1"].similarity:
            nearest.append(run)
        else:
            clusters.append([run])
    return clusters


def _text(run: RunDigest) -> str:
    return "\n".join(run.texts["e1"])


def _one_a_task_first(runs: Sequence[RunDigest]) -> list[RunDigest]:
    """So that the texts of a shared lesson come from as many tasks as there are."""
    first = {run.task_key: run for run in reversed(runs)}
    ahead = [run for run in runs if first[run.task_key] is run]
    return [*ahead, *(run for run in runs if first[run.task_key] is not run)]


def _proposal(room: _Room, evidence: Evidence) -> Proposal | None:
    """The lesson, checked and gated; None where the distiller has none or calm steps look the same."""
    pattern = room.distil(evidence)
    if pattern is None:
        return None
    gate = _gate(room, evidence, pattern)
    if gate is None:
        return None
    own = pattern.gate_threshold if pattern.gate_threshold is not None else gate
    return Proposal.of(checked(evolve(pattern, gate_threshold=own)), evidence)


def _gate(room: _Room, evidence: Evidence, pattern: Pattern) -> float | None:
    """Above every calm step at which a live run would ask, and never below `MIN_GATE`.

    A lesson of tier e2, which tasks share, also above every trouble with another tool. Steps where its own tool failed
    are none that it has to keep away from.
    """
    tier, tool = evidence.tier, evidence.kind.tool
    away = [text for one in room.calm if tool not in one.failed and (text := one.of(tier))]
    if tier == "e2":
        away += ["\n".join(run.texts[tier]) for run in room.troubled if run.trouble and run.trouble.kind.tool != tool]
    nearest = room.similar.highest(tier, away, pattern.exemplars)
    gate = round(max(MIN_GATE[tier], nearest + MARGIN), 4)
    return gate if gate <= HIGHEST_GATE else None
