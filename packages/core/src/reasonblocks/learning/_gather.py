"""Which finished runs learning looks at together: bounded, however many are given, and the same for the same runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop

from .._text import digest
from ._digest import Calm, RunDigest

MAX_PER_TASK = 12
"""Runs of one task that are kept, of those that failed and of those that succeeded: the first ones."""
MAX_RUNS = 4_000
"""Runs that are kept at all: some 100 MB when all are long."""
MAX_CALM = 400
"""Stretches without trouble: the bank of 400 that similarities are fitted to, turned round."""
MAX_WORDS = 20_000
COMMON = 3
"""Tasks that a value is seen in before a lesson may say it: it names no one then."""


@dataclass(slots=True)
class Gathered:
    """The runs kept so far. `left_out` counts those beyond the bounds."""

    runs: list[RunDigest] = field(default_factory=list)
    left_out: int = 0
    _counts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _calm: list[tuple[int, Calm]] = field(default_factory=list)

    def add(self, run: RunDigest) -> None:
        """Take one run in."""
        self._keep_calm(run)
        for act in run.acts:
            for given in act.given:
                self._see(given.word, run.task_key)
        if not run.succeeded and run.trouble is None:
            return
        key = (run.agent, run.task_key, run.succeeded)
        if self._counts[key] >= MAX_PER_TASK or len(self.runs) >= MAX_RUNS:
            self.left_out += 1
            return
        self._counts[key] += 1
        self.runs.append(run)

    @property
    def failed(self) -> list[RunDigest]:
        """Those in trouble: sustained, or by an error that another failed run of the agent met as well."""
        found = [run for run in self.runs if not run.succeeded and run.trouble is not None]
        met = Counter((run.agent, run.trouble.kind) for run in found if run.trouble)
        return [run for run in found if run.trouble and (run.trouble.sustained or met[run.agent, run.trouble.kind] > 1)]

    def successful(self, agent: str, task_key: str | None = None) -> Iterator[RunDigest]:
        """Of an agent; of one task, or of all."""
        for run in self.runs:
            if run.succeeded and run.agent == agent and task_key in (None, run.task_key):
                yield run

    @property
    def common(self) -> frozenset[str]:
        """Words that stand for a value and were seen in several tasks: they name no one."""
        return frozenset(word for word, tasks in self._words.items() if len(tasks) >= COMMON)

    @property
    def calm(self) -> Sequence[Calm]:
        """Stretches without trouble, picked by their hashes: the same whatever the order of the runs."""
        return [one for _, one in sorted(self._calm, key=lambda pair: -pair[0])]

    def _see(self, word: str, task_key: str) -> None:
        if not word:
            return
        tasks = self._words.get(word, ())
        if task_key not in tasks and len(tasks) < COMMON and (tasks or len(self._words) < MAX_WORDS):
            self._words[word] = (*tasks, task_key)

    def _keep_calm(self, run: RunDigest) -> None:
        kept = {one.e2 for _, one in self._calm}
        for one in run.calm:
            mark = (-int(digest(one.e2), 16), one)
            if one.e2 in kept:
                continue
            if len(self._calm) < MAX_CALM:
                heappush(self._calm, mark)
            else:
                heappushpop(self._calm, mark)
