"""Whole runs through a framework: several at a time, each environment closed, each row kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from _outcome.experiment import Experiment
from _outcome.rows import Row
from _outcome.store import Store
from _outcome.through import FRAMEWORKS, Endpoint
from _outcome.through.plays import Plays, plays
from _outcome.through.task import Task

from reasonblocks import ReasonBlocks
from tests.outcome.played import counted

ENDPOINT = Endpoint(base_url="http://127.0.0.1:9", model="agent-model")


class Agents:
    """A framework whose agent makes one call; every `failing`th play ends with an error."""

    def __init__(self, failing: int = 0, together: int = 1) -> None:
        self.steered: list[bool] = []
        self.most = self.now = 0
        self._failing, self._lock, self._all = failing, threading.Lock(), threading.Barrier(together)

    def __call__(self) -> Any:
        return self.play

    def play(self, task: Task, endpoint: Endpoint, rb: ReasonBlocks | None) -> None:
        with self._lock:
            self.steered.append(rb is not None)
            number = len(self.steered)
            self.now += 1
            self.most = max(self.most, self.now)
        self._all.wait(10)
        with self._lock:
            self.now -= 1
        if self._failing and number % self._failing == 0:
            raise ConnectionError("the endpoint is gone")
        task.answered("I go.", calls=True, prompt=10, completion=1, cached=None)
        task.make("go", {"cell": "5"})


Left = Callable[..., Plays]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "rows.jsonl", {}) as made:
        yield made


@pytest.fixture
def left(store: Store, monkeypatch: pytest.MonkeyPatch) -> Left:
    """`left(agents, factory)`: what a store lacks of the runs of two seeds."""

    def found(agents: Agents, factory: Any, *, concurrency: int = 1, seeds: int = 2, samples: int = 1) -> Plays:
        monkeypatch.setitem(FRAMEWORKS, "hand", agents)
        what = Experiment(families={"cells": factory}, seeds=range(seeds), arms=["off"], samples=samples)
        return plays(what, ENDPOINT, "hand", store, concurrency)

    return found


def kept(found: Plays, store: Store) -> list[Row]:
    rows = []
    for row in found.rows():
        store.append(row)
        rows.append(row)
    return rows


def test_each_seed_is_played_with_and_without_steering(store: Store, left: Left) -> None:
    agents, factory = Agents(), counted()
    rows = kept(left(agents, factory), store)
    assert len(left(agents, factory)) == 0
    assert [(row.seed, row.arm, row.won, row.through) for row in rows] == [
        (seed, arm, True, "hand") for seed in (0, 1) for arm in ("off", "steer")
    ]
    assert agents.steered == [False, True] * 2
    assert factory.opened == factory.closed == 4


def test_a_run_with_an_error_is_kept_closed_and_played_again(store: Store, left: Left) -> None:
    factory = counted()
    rows = kept(left(Agents(failing=4), factory, samples=2), store)
    assert [row.error is None for row in rows] == [True, True, True, False] * 2
    again = left(Agents(), factory, samples=2)
    assert len(again) == 2
    assert all(row.error is None for row in kept(again, store))
    assert Counter((row.seed, row.arm, row.sample) for row in store.rows) == Counter(
        product((0, 1), ("off", "steer"), (0, 1))
    )
    assert factory.opened == factory.closed == 10


def test_so_many_runs_are_played_at_a_time(store: Store, left: Left) -> None:
    agents = Agents(together=3)
    kept(left(agents, counted(), concurrency=3, seeds=3), store)
    assert agents.most == 3


def test_a_framework_that_is_not_installed_is_named_before_any_run(left: Left) -> None:
    class Missing(Agents):
        def __call__(self) -> Any:
            raise ImportError("pip install hand")

    factory = counted()
    with pytest.raises(ImportError, match="pip install hand"):
        left(Missing(), factory)
    assert factory.opened == 0
