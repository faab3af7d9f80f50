"""Plays the whole runs of an experiment through a framework, several at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import NamedTuple

from reasonblocks import ReasonBlocks

from ..experiment import Experiment
from ..policies import close
from ..rows import Row
from ..run import Factory
from ..store import Store
from . import ARMS, Endpoint, play_through, player


class _Play(NamedTuple):
    family: str
    factory: Factory
    seed: int
    arm: str
    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plays:
    """The runs that are still to be made."""

    missing: tuple[_Play, ...]
    endpoint: Endpoint
    through: str
    concurrency: int
    rb: ReasonBlocks

    def __len__(self) -> int:
        return len(self.missing)

    def rows(self) -> Iterator[Row]:
        """Play them, and yield each row when its run has ended."""
        with ThreadPoolExecutor(self.concurrency) as threads:
            futures = [threads.submit(self._row, play) for play in self.missing]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

    def _row(self, play: _Play) -> Row:
        environment = play.factory()
        try:
            return play_through(
                environment,
                play.seed,
                play.arm,
                through=self.through,
                endpoint=self.endpoint,
                rb=self.rb,
                family=play.family,
                sample=play.sample,
            )
        finally:
            close(environment)


def plays(what: Experiment, endpoint: Endpoint, through: str, store: Store, concurrency: int) -> Plays:
    """Return the whole runs of an experiment that the store does not have: each seed with and without steering.

    Raises `ImportError`, before any run, if the framework is not installed.
    """
    player(through)
    missing = [
        _Play(family, factory, seed, arm, sample)
        for sample in range(what.samples)
        for seed in what.seeds
        for family, factory in what.families.items()
        for arm in ARMS
        if (endpoint.model, through, "whole", family, seed, arm, sample) not in store.done
    ]
    rb = ReasonBlocks(profile=None)  # no run changes how another one is judged
    return Plays(missing=tuple(missing), endpoint=endpoint, through=through, concurrency=concurrency, rb=rb)
