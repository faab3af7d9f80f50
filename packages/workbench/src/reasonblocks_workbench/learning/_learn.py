"""Turns finished runs into proposals.

1. `learn` replays each run whose outcome is known, reduces it to a `RunDigest` and keeps a bounded number of these.
2. `proposals` groups the failed runs by agent and by the kind of their first trouble.
3. For each failed run it looks for an `Alternative`: what most successful runs of the same task did at the same point
   or, if they do not agree, how most of the agent's successful runs recovered from the same kind of trouble.
4. Runs with the same alternative are clustered by the similarity of their texts at the trouble. Each cluster gives a
   lesson of tier e1. The lessons with the most runs are kept.
5. A kind of trouble met in several tasks also gives one lesson of tier e2, from the alternative that most tasks agree
   on or, if they do not agree, from the recoveries of step 3.
6. The distiller writes each lesson as a `Pattern`, or returns None.
7. Each pattern gets a gate just above its similarity to the nearest calm step, so that it is not shown where nothing is
   wrong. A pattern whose gate would be too high to be useful is dropped.
8. Proposals with the same pattern id are one; those met in the most tasks come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reasonblocks.backends.embed import default_embedder
from reasonblocks.backends.stores.table import Rows
from reasonblocks.backends.stores.vectors import Vectors
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.masking import detectors
from reasonblocks.patterns import check_pattern
from reasonblocks.ports import Embedder
from reasonblocks.types import Pattern, Tier

from ..replay import SessionFactory, replay
from ..traces import RecordedRun
from ._alternatives import (
    Alternative,
    Route,
    alternative_across_tasks,
    alternative_after_same_trouble,
    alternative_at_same_point,
    applies,
)
from ._digest import Calm, Gathered, RunDigest, digest_of
from ._distil import Distil, Evidence, evidence_of
from ._distil import distil as built_in
from ._proposal import Proposal
from ._trouble import Kind

MAX_PER_KIND = 3
"""Lessons of tier e1 about one kind of trouble of one agent; of tier e2 there is a single lesson."""
SHARED_TASKS = 3
"""Tasks that must meet a kind of trouble before it gives a lesson of tier e2."""
MIN_GATE: Mapping[Tier, float] = MappingProxyType({"e1": 0.9, "e2": TIER_RULES["e2"].similarity})
"""The gate of a lesson that no calm step comes near to. Similarities are fitted to texts of different agents; among
texts of one agent .8 is common. Of the lessons of tier e1 that runs of held-out tasks were given
(benchmarks/learning.py on 1,584 runs), those about the tool in trouble and those about another were 13 and 19 at a gate
of .8, 9 and 16 at .85, 5 and 3 at .9."""
MARGIN = 0.01
"""The distance of a lesson's gate from the nearest calm step."""
MAX_GATE = 0.97
"""A lesson with a higher gate would rarely be found where it belongs, so it is dropped. With the shipped model this is
a cosine of .94; with .95 seven of 69 steps in trouble are not given the lesson of e2 that fits (benchmarks/learning.py
on 1,584 runs), and none is spared another tool's."""


class Similarity:
    """Computes calibrated similarities with one embedder. Keeps one vector for each text.

    Raises `BadAnswer` if the embedder returns unusable vectors; the embedder's own exceptions propagate.
    """

    __slots__ = ("_rows", "_vectors")

    def __init__(self, embedder: Embedder) -> None:
        self._vectors = Vectors(embedder)
        self._rows: dict[str, Rows] = {}

    def highest(self, tier: Tier, texts: Sequence[str], others: Sequence[str]) -> float:
        """Return the similarity of the nearest pair of a text and another; 0 if there is no pair."""
        if not texts or not others:
            return 0.0
        cosines = self._rows_of(texts) @ self._rows_of(others).T
        return self._vectors.embedder.curves.of(tier)(float(cosines.max()))

    def _rows_of(self, texts: Sequence[str]) -> Rows:
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            self._rows.update(zip(new, self._vectors.embed(new), strict=True))
        return np.stack([self._rows[text] for text in texts])


@dataclass(frozen=True, slots=True)
class _Context:
    """Everything that the lessons of all kinds of trouble share."""

    gathered: Gathered
    org_id: str
    similarity: Similarity
    distil: Distil
    common: frozenset[str]
    calm: Sequence[Calm]
    failed: Sequence[RunDigest]


class _AgentKind(NamedTuple):
    agent: str
    kind: Kind


class _RunAlternative(NamedTuple):
    run: RunDigest
    alternative: Alternative | None


class _Teaching(NamedTuple):
    """The parts of an alternative that a lesson teaches: runs with equal parts get the same lesson."""

    same_task: bool
    route: Route
    new_values: tuple[str, ...]

    @classmethod
    def of(cls, alternative: Alternative) -> _Teaching:
        return cls(alternative.same_task, alternative.remedy.route, alternative.remedy.new_values)


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
    similar: Similarity | None = None,
) -> tuple[Proposal, ...]:
    """Return what the gathered runs teach, most support first; the same for the same runs in the same order."""
    failed = gathered.failed
    similarity = similar or Similarity(embedder if embedder is not None else _default_embedder())
    context = _Context(gathered, org_id, similarity, distil or built_in, gathered.common, gathered.calm, failed)
    kinds: dict[_AgentKind, list[RunDigest]] = {}
    for run in failed:
        if run.trouble is not None:
            kinds.setdefault(_AgentKind(run.agent, run.trouble.kind), []).append(run)
    found = [proposal for key in sorted(kinds) for proposal in _proposals_of_kind(context, key, kinds[key])]
    unique = {proposal.pattern.id: proposal for proposal in found}
    return tuple(sorted(unique.values(), key=lambda proposal: (-proposal.tasks, *_by_runs(proposal))))


def _by_runs(proposal: Proposal) -> tuple[int, str]:
    return -proposal.runs, proposal.pattern.id


def _default_embedder() -> Embedder:
    found: Embedder = default_embedder()
    return found


def _proposals_of_kind(context: _Context, key: _AgentKind, runs: Sequence[RunDigest]) -> Iterator[Proposal]:
    """Yield the lessons of tier e1 about one kind of trouble of one agent, then the lesson of tier e2."""
    at_point = {run.run_id: _at_same_point(context, run) for run in runs}
    # Repeated results differ from run to run, so a run can only be compared with runs that got its own result.
    shared_recovery = None if key.kind.form == "repeat" else _after_same_trouble(context, key.agent, runs)
    groups: dict[_Teaching | None, list[_RunAlternative]] = {}
    for run in runs:
        recovery = _after_same_trouble(context, key.agent, [run]) if key.kind.form == "repeat" else shared_recovery
        alternative = _if_convincing(at_point[run.run_id]) or _if_applicable(recovery, [run])
        teaching = _Teaching.of(alternative) if alternative else None
        groups.setdefault(teaching, []).append(_RunAlternative(run, alternative))
    found = [proposal for group in groups.values() for proposal in _e1_proposals(context, group)]
    yield from sorted(found, key=_by_runs)[:MAX_PER_KIND]
    proposal = _e2_proposal(context, runs, at_point, shared_recovery)
    if proposal is not None:
        yield proposal


def _e1_proposals(context: _Context, group: Sequence[_RunAlternative]) -> Iterator[Proposal]:
    """Yield a lesson for each cluster of runs with the same alternative, worded as its first run shows it."""
    alternatives = {run.run_id: alternative for run, alternative in group}
    for cluster in _clusters(context, [run for run, _ in group]):
        evidence = evidence_of("e1", context.org_id, cluster, alternatives[cluster[0].run_id])
        if (proposal := _proposal(context, evidence)) is not None:
            yield proposal


def _e2_proposal(
    context: _Context,
    runs: Sequence[RunDigest],
    at_point: Mapping[str, Alternative | None],
    shared_recovery: Alternative | None,
) -> Proposal | None:
    """Return the lesson that the tasks share; None if there are too few of them."""
    ordered = _one_per_task_first(runs)
    by_task = {run.task_key: at_point[run.run_id] for run in reversed(ordered)}  # the first run of a task wins
    if len(by_task) < SHARED_TASKS:
        return None
    known = [alternative for alternative in by_task.values() if alternative is not None]
    alternative = _if_applicable(_if_convincing(alternative_across_tasks(known)), runs)
    alternative = alternative or _if_applicable(shared_recovery, runs)
    return _proposal(context, evidence_of("e2", context.org_id, ordered, alternative))


def _at_same_point(context: _Context, run: RunDigest) -> Alternative | None:
    return alternative_at_same_point(run, context.gathered.successful(run.agent, run.task_key), context.common)


def _after_same_trouble(context: _Context, agent: str, runs: Sequence[RunDigest]) -> Alternative | None:
    successful = context.gathered.successful(agent)
    return _if_convincing(alternative_after_same_trouble(runs, successful, context.common))


def _if_convincing(alternative: Alternative | None) -> Alternative | None:
    return alternative if alternative is not None and alternative.convinces else None


def _if_applicable(alternative: Alternative | None, runs: Sequence[RunDigest]) -> Alternative | None:
    """Return the alternative if most of these runs could have used its remedy."""
    failing = [run.acts[run.trouble.steps[-1]] for run in runs if run.trouble is not None]
    if alternative is None or 2 * sum(applies(alternative.remedy, act) for act in failing) <= len(failing):
        return None
    return alternative


def _clusters(context: _Context, runs: Sequence[RunDigest]) -> list[list[RunDigest]]:
    """Group runs whose texts at the trouble are as similar as a search of tier e1 requires."""
    clusters: list[list[RunDigest]] = []
    for run in runs:
        near = [
            (context.similarity.highest("e1", [_text(run)], [_text(other) for other in cluster]), cluster)
            for cluster in clusters
        ]
        similarity, nearest = max(near, key=lambda pair: pair[0], default=(0.0, None))
        if nearest is not None and similarity >= TIER_RULES["e1"].similarity:
            nearest.append(run)
        else:
            clusters.append([run])
    return clusters


def _text(run: RunDigest) -> str:
    return "\n".join(run.texts["e1"])


def _one_per_task_first(runs: Sequence[RunDigest]) -> list[RunDigest]:
    """Move the first run of each task to the front, so that a bounded number of texts covers many tasks."""
    first = {run.task_key: run for run in reversed(runs)}
    ahead = [run for run in runs if first[run.task_key] is run]
    return [*ahead, *(run for run in runs if first[run.task_key] is not run)]


def _proposal(context: _Context, evidence: Evidence) -> Proposal | None:
    """Distil the lesson, validate it and set its gate. Return None without a useful lesson or a possible gate.

    A gate that the distiller has set is kept.
    """
    pattern = context.distil(evidence)
    if pattern is None:
        return None
    gate = _gate(context, evidence, pattern)
    if gate is None:
        return None
    threshold = pattern.gate_threshold if pattern.gate_threshold is not None else gate
    return Proposal.of(check_pattern(replace(pattern, gate_threshold=threshold)), evidence)


def _gate(context: _Context, evidence: Evidence, pattern: Pattern) -> float | None:
    """Return a gate that no calm step passes, never below `MIN_GATE`; None if it would be above `MAX_GATE`.

    For tier e2, which tasks share, troubles with another tool must not pass either. Calm steps at which the lesson's
    own tool failed may pass.
    """
    tier, tool = evidence.tier, evidence.kind.tool
    unwanted = [text for stretch in context.calm if tool not in stretch.failed and (text := stretch.of(tier))]
    if tier == "e2":
        unwanted += [
            "\n".join(run.texts[tier]) for run in context.failed if run.trouble and run.trouble.kind.tool != tool
        ]
    nearest = context.similarity.highest(tier, unwanted, pattern.exemplars)
    gate = round(max(MIN_GATE[tier], nearest + MARGIN), 4)
    return gate if gate <= MAX_GATE else None
