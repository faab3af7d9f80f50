"""The experiment: shadow runs, then their branches, or whole runs; what is in the store already is not run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from .arms import ARMS, Arm
from .backend import Backend
from .environment import Closing, Solvable, ToolError
from .play import Track, play
from .policies import reference_wins
from .rows import Phase, Row
from .run import Factory, Point, Run, Setting
from .store import Store

Phased: TypeAlias = Callable[[Backend, Store, Callable[[Row], None]], None]
"""Plays a phase: `step` is called with each finished run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is run: every family on every seed. `points` limits the branch points of each family; 0 takes all."""

    families: Mapping[str, Factory]
    seeds: Sequence[int]
    arms: Sequence[str]
    samples: int
    points: int = 0

    def shadow(self, backend: Backend, store: Store, step: Callable[[Row], None]) -> None:
        """Play the unsteered runs."""
        settings = self._settings(backend.model)
        self._play(
            [self._runs(setting, "shadow", [ARMS["off"]], 1, store) for setting in settings], backend, store, step
        )

    def branch(self, backend: Backend, store: Store, step: Callable[[Row], None]) -> None:
        """Play every arm from every branch point."""
        arms = [ARMS[name] for name in self.arms]
        points = self._branch_points(backend.model, store)
        self._play([self._branches(*point, arms, store) for point in points], backend, store, step)

    def whole(self, backend: Backend, store: Store, step: Callable[[Row], None]) -> None:
        """Play every arm from the first call."""
        arms = [ARMS[name] for name in self.arms]
        settings = self._settings(backend.model)
        self._play([self._runs(item, "whole", arms, self.samples, store) for item in settings], backend, store, step)

    def count(self, phase: Phase, model: str, store: Store) -> int:
        """Return the number of runs of a phase, those that are there already included."""
        if phase == "branch":
            return len(self._branch_points(model, store)) * len(self.arms) * self.samples
        runs = len(self.families) * len(self.seeds)
        return runs if phase == "shadow" else runs * len(self.arms) * self.samples

    def _settings(self, model: str) -> list[Setting]:
        """Return the runs' settings; the families take turns, so that a part of the experiment has some of each."""
        return [
            Setting(family=name, seed=seed, factory=factory, model=model)
            for seed in self.seeds
            for name, factory in self.families.items()
        ]

    def _branch_points(self, model: str, store: Store) -> list[tuple[Setting, Point]]:
        found, counts = [], Counter[str]()
        rows = {(row.family, row.seed): row for row in store.rows if row.phase == "shadow" and row.model == model}
        for setting in self._settings(model):
            row = rows.get((setting.family, setting.seed))
            if row is None or row.point is None or (self.points and counts[setting.family] >= self.points):
                continue
            counts[setting.family] += 1
            calls = row.calls[: row.point]
            found.append((setting, Point(calls=calls, kind=row.kind, monitor=row.monitor)))
        return found

    def _branches(self, setting: Setting, point: Point, arms: Sequence[Arm], store: Store) -> Iterator[Run]:
        """Yield the branches of one point; the reference policy is asked once, when the first one starts."""
        judged: Point | None = None
        for arm, sample in self._missing(setting, "branch", arms, self.samples, store):
            judged = judged or replace(point, winnable=_winnable(setting, point))
            yield Run(setting, arm, sample, "branch", judged)

    def _runs(self, setting: Setting, phase: Phase, arms: Sequence[Arm], samples: int, store: Store) -> Iterator[Run]:
        for arm, sample in self._missing(setting, phase, arms, samples, store):
            yield Run(setting, arm, sample, phase)

    def _missing(
        self, setting: Setting, phase: Phase, arms: Sequence[Arm], samples: int, store: Store
    ) -> Iterator[tuple[Arm, int]]:
        """Yield what the store does not have yet."""
        for sample in range(samples):
            for arm in arms:
                key = (setting.model, setting.through, phase, setting.family, setting.seed, arm.name, sample)
                if key not in store.done:
                    yield arm, sample

    def _play(self, tracks: Sequence[Track], backend: Backend, store: Store, step: Callable[[Row], None]) -> None:
        def finished(run: Run) -> None:
            row = run.row()
            store.append(row)
            step(row)

        play(tracks, backend, finished)


def _winnable(setting: Setting, point: Point) -> bool | None:
    """Return True if the reference policy wins from this point in the steps left; None without a policy."""
    environment = setting.factory()
    environment.reset(setting.seed)
    try:
        if not isinstance(environment, Solvable):
            return None
        for made in point.calls:
            with suppress(ToolError):
                environment.call(made.name, made.arguments)
        return reference_wins(environment, environment.max_steps - len(point.calls))
    finally:
        if isinstance(environment, Closing):
            environment.close()
