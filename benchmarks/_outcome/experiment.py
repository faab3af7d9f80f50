"""The experiment: shadow runs, then their branches, or whole runs; what is in the store already is not run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from .arms import ARMS, Arm
from .backend import Backend
from .environment import Call, Solvable
from .play import Track, play
from .policies import close, outcome, reference_wins
from .rows import Phase, Row
from .run import Factory, Point, Run, Setting
from .store import Store

Phased: TypeAlias = Callable[[Backend, Store, Callable[[Row], None]], None]
"""Plays a phase: `step` is called with each finished run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment: every family on every seed. `points` limits the branch points of each family; 0 takes all."""

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
        points = self._branch_points(backend.model, store)
        self._play([self._branches(*point, store) for point in points], backend, store, step)

    def whole(self, backend: Backend, store: Store, step: Callable[[Row], None]) -> None:
        """Play every arm from the first call."""
        settings = self._settings(backend.model)
        tracks = [self._runs(setting, "whole", self._arms, self.samples, store) for setting in settings]
        self._play(tracks, backend, store, step)

    def count(self, phase: Phase, model: str, store: Store) -> int:
        """Return the number of runs of a phase that the store does not have."""
        points = self._branch_points(model, store) if phase == "branch" else []
        settings = [setting for setting, _ in points] if phase == "branch" else self._settings(model)
        arms, samples = ([ARMS["off"]], 1) if phase == "shadow" else (self._arms, self.samples)
        return sum(len([*self._missing(setting, phase, arms, samples, store)]) for setting in settings)

    @property
    def _arms(self) -> list[Arm]:
        return [ARMS[name] for name in self.arms]

    def _settings(self, model: str) -> list[Setting]:
        """Return the runs' settings; the families take turns, so that a part of the experiment has some of each."""
        return [
            Setting(family=name, seed=seed, factory=factory, model=model)
            for seed in self.seeds
            for name, factory in self.families.items()
        ]

    def _branch_points(self, model: str, store: Store) -> list[tuple[Setting, Point]]:
        found, counts = [], Counter[str]()
        shadows = [row for row in store.rows if row.phase == "shadow" and row.model == model and row.error is None]
        rows = {(row.family, row.seed): row for row in shadows}
        for setting in self._settings(model):
            row = rows.get((setting.family, setting.seed))
            if row is None or row.point is None or (self.points and counts[setting.family] >= self.points):
                continue
            counts[setting.family] += 1
            calls = row.calls[: row.point]
            found.append((setting, Point(calls=calls, kind=row.kind, monitor=row.monitor)))
        return found

    def _branches(self, setting: Setting, point: Point, store: Store) -> Iterator[Run]:
        """Yield the branches of one point; the reference policy is asked once, when the first one starts."""
        judged: Point | None = None
        for arm, sample in self._missing(setting, "branch", self._arms, self.samples, store):
            judged = judged or replace(point, winnable=_winnable(setting, point))
            yield Run(setting, arm, sample, "branch", judged)

    def _runs(self, setting: Setting, phase: Phase, arms: Sequence[Arm], samples: int, store: Store) -> Iterator[Run]:
        for arm, sample in self._missing(setting, phase, arms, samples, store):
            yield Run(setting, arm, sample, phase)

    def _missing(
        self, setting: Setting, phase: Phase, arms: Sequence[Arm], samples: int, store: Store
    ) -> Iterator[tuple[Arm, int]]:
        """Yield what the store does not have yet, the arms in a random order that is always the same.

        The first branch of a point fills the prompt's cache for the others: no arm should pay for this more often.
        """
        for sample in range(samples):
            for arm in Random(f"{setting.family} {setting.seed} {sample}").sample(arms, len(arms)):
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
    try:
        environment.reset(setting.seed)
        if not isinstance(environment, Solvable):
            return None
        for made in point.calls:
            if made.name:  # a turn without a call changes nothing
                outcome(environment, Call(made.name, made.arguments))
        return reference_wins(environment, environment.max_steps - len(point.calls))
    finally:
        close(environment)
