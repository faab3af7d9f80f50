"""Reduces finished runs to what learning needs, and keeps a bounded number of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import NamedTuple

from reasonblocks.engine import TEXT_BYTES
from reasonblocks.engine.gates import E1_COMPOSITE, LOOK_BACK, TIER_RULES
from reasonblocks.masking.mask import hidden, private_words, run_label
from reasonblocks.types import FSMState, Step, StepDecision, Tier
from reasonblocks.util.text import cut_with_hash, digest

from ..replay import ReplayedRun
from ._acts import Act, act_of
from ._trouble import Trouble, first_trouble

MAX_STEPS = 256
"""Steps of a run that are compared with those of other runs; the first ones."""
MAX_CALM_PER_RUN = 24
MAX_PER_TASK = 12
"""Failed runs, and successful runs, that are kept of one task; the first ones."""
MAX_RUNS = 4_000
"""Runs that are kept in all: some 100 MB if all are long."""
MAX_CALM = 400
"""Calm stretches that are kept in all: as many texts as the bank that similarities are fitted to."""
MAX_WORDS = 20_000
MIN_TASKS = 3
"""Tasks in which a value must occur before a lesson may show it: then it identifies nobody."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Calm:
    """A stretch of a run without trouble, as the texts of the queries that a live run would send there.

    `e1` is empty if the gate of tier e1 would be shut, as it mostly is. `failed` are the tools that failed or found
    nothing in the stretch: a lesson about one of them may rightly be shown here.
    """

    e1: str
    e2: str
    failed: tuple[str, ...] = ()

    def of(self, tier: Tier) -> str:
        return self.e1 if tier == "e1" else self.e2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDigest:
    """One finished run. `texts` are those at the trouble, by tier, masked; `calm` is unmasked, and never stored."""

    run_id: str
    label: str
    """The id as a lesson shows it: without secrets and people."""
    task_key: str
    agent: str
    succeeded: bool
    acts: tuple[Act, ...]
    trouble: Trouble | None
    texts: Mapping[Tier, tuple[str, ...]]
    calm: tuple[Calm, ...]


def digest_of(replayed: ReplayedRun, tool_roles: Mapping[str, str]) -> RunDigest:
    """Return what learning needs of a run whose outcome is known."""
    run, decisions = replayed.run, replayed.decisions[:MAX_STEPS]
    steps = run.steps[:MAX_STEPS]
    private = private_words(
        [text for step in steps for text in (step.observation[: TEXT_BYTES * 4], step.action_input)]
    )
    acts = tuple(act_of(step, tool_roles, private) for step in steps)
    trouble = first_trouble(acts, decisions)
    succeeded = run.outcome_kind == "success"
    tiers: tuple[Tier, ...] = ("e1", "e2")
    masked = (
        {tier: tuple(_masked(step, private) for step in _queried(steps, trouble.at, tier)) for tier in tiers}
        if trouble is not None
        else {}
    )
    return RunDigest(
        run_id=run.run_id,
        label=run_label(run.run_id, private),
        task_key=run.task_key,
        agent=run.source or "",
        succeeded=succeeded,
        acts=acts,
        trouble=trouble,
        texts=masked,
        calm=_calm(steps, acts, decisions) if succeeded and not (trouble and trouble.sustained) else (),
    )


def texts_at(steps: Sequence[Step], at: int, tier: Tier) -> tuple[str, ...]:
    """Return the texts that a live run would send to a store after step `at`: the last steps, each cut to a bound."""
    return tuple(cut_with_hash(step.scored_text, TEXT_BYTES) for step in _queried(steps, at, tier))


def _queried(steps: Sequence[Step], at: int, tier: Tier) -> Sequence[Step]:
    return steps[max(0, at + 1 - TIER_RULES[tier].steps) : at + 1]


def _masked(step: Step, private: Collection[str]) -> str:
    """Mask the step's text before it is cut, so that no half of a secret remains unrecognised."""
    return cut_with_hash(hidden(step.scored_text, private), TEXT_BYTES)


def asks(tier: Tier, decisions: Sequence[StepDecision], at: int) -> bool:
    """Return True if a live run that has not used this tier yet would query it after step `at`.

    BEHAVIOUR section 5 defines the gates.
    """
    now = decisions[at]
    if now.fsm_state in (FSMState.FAST, FSMState.END):
        return False
    fired = any(decision.monitors_fired for decision in decisions[max(0, at - LOOK_BACK) : at + 1])
    return tier == "e2" or fired or (now.composite or 0.0) > E1_COMPOSITE


def failed_before(acts: Sequence[Act], at: int) -> tuple[str, ...]:
    """Return the tools that failed or found nothing in the steps of the longest query, the newest first."""
    recent = acts[max(0, at + 1 - TIER_RULES["e2"].steps) : at + 1]
    return tuple(dict.fromkeys(act.tool for act in reversed(recent) if act.fruitless and not act.says))


def _calm(steps: Sequence[Step], acts: Sequence[Act], decisions: Sequence[StepDecision]) -> tuple[Calm, ...]:
    """Return stretches at whose end a live run would query a store, spread over the run."""
    points = [at for at in range(len(decisions)) if asks("e2", decisions, at)]
    stride = -(-len(points) // MAX_CALM_PER_RUN) if points else 1
    return tuple(
        Calm(
            e1="\n".join(texts_at(steps, at, "e1")) if asks("e1", decisions, at) else "",
            e2="\n".join(texts_at(steps, at, "e2")),
            failed=failed_before(acts, at),
        )
        for at in points[::stride]
    )


class _Stratum(NamedTuple):
    """The runs that share one `MAX_PER_TASK`."""

    agent: str
    task_key: str
    succeeded: bool


@dataclass(slots=True)
class Gathered:
    """The runs kept so far, the same for the same runs in the same order. `left_out` counts those beyond the bounds."""

    runs: list[RunDigest] = field(default_factory=list)
    left_out: int = 0
    _counts: Counter[_Stratum] = field(default_factory=Counter)
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The first `MIN_TASKS` tasks in which each word occurred."""
    _calm: list[tuple[int, Calm]] = field(default_factory=list)
    """A heap: the stretches with the lowest hashes."""

    def add(self, run: RunDigest) -> None:
        """Add one run, unless it teaches nothing or a bound is reached."""
        self._add_calm(run)
        for act in run.acts:
            for argument in act.arguments:
                self._add_word(argument.word, run.task_key)
        if not run.succeeded and run.trouble is None:
            return
        stratum = _Stratum(run.agent, run.task_key, run.succeeded)
        if self._counts[stratum] >= MAX_PER_TASK or len(self.runs) >= MAX_RUNS:
            self.left_out += 1
            return
        self._counts[stratum] += 1
        self.runs.append(run)

    @property
    def failed(self) -> list[RunDigest]:
        """Failed runs whose trouble is sustained, or an error that another failed run of the agent met as well."""
        found = [run for run in self.runs if not run.succeeded and run.trouble is not None]
        met = Counter((run.agent, run.trouble.kind) for run in found if run.trouble)
        return [run for run in found if run.trouble and (run.trouble.sustained or met[run.agent, run.trouble.kind] > 1)]

    def successful(self, agent: str, task_key: str | None = None) -> Iterator[RunDigest]:
        """Yield the agent's successful runs, of one task or of all."""
        for run in self.runs:
            if run.succeeded and run.agent == agent and task_key in (None, run.task_key):
                yield run

    @property
    def common(self) -> frozenset[str]:
        """Words of values that occur in several tasks, and therefore identify nobody."""
        return frozenset(word for word, tasks in self._words.items() if len(tasks) >= MIN_TASKS)

    @property
    def calm(self) -> Sequence[Calm]:
        """Calm stretches, chosen by their hashes, so that the order of the runs does not matter."""
        return [stretch for _, stretch in sorted(self._calm, key=lambda pair: -pair[0])]

    def _add_word(self, word: str, task_key: str) -> None:
        if not word:
            return
        tasks = self._words.get(word, ())
        if task_key not in tasks and len(tasks) < MIN_TASKS and (tasks or len(self._words) < MAX_WORDS):
            self._words[word] = (*tasks, task_key)

    def _add_calm(self, run: RunDigest) -> None:
        kept = {stretch.e2 for _, stretch in self._calm}
        for stretch in run.calm:
            if stretch.e2 in kept:
                continue
            entry = (-int(digest(stretch.e2), 16), stretch)
            if len(self._calm) < MAX_CALM:
                heappush(self._calm, entry)
            else:
                heappushpop(self._calm, entry)
