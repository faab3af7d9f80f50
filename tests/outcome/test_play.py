"""Lanes play tracks of runs: each run once, its lane's own, closed in every way out."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from _outcome.arms import ARMS
from _outcome.backend import BackendError, Query, Reply
from _outcome.play import play
from _outcome.run import Run

from tests.outcome.played import Cells, Scripted, counted, go, seed_of, setting, turns


def runs(factory: type[Cells], count: int, first: int = 0) -> Iterator[Run]:
    """Runs that are made when their lane comes to them."""
    for seed in range(first, first + count):
        yield Run(setting(factory, seed=seed), ARMS["off"], 0, "shadow")


def walk(query: Query) -> Reply:
    """Go to the goal in two to four calls, depending on the task."""
    seed = seed_of(query)
    return go(5 if turns(query) == 1 + seed % 3 else 1 + turns(query))


@pytest.mark.parametrize("in_rounds", [True, False])
@pytest.mark.parametrize("lanes", [1, 3, 20])
def test_every_run_is_played_once_and_closed(in_rounds: bool, lanes: int) -> None:
    factory = counted()
    backend = Scripted(walk, lanes=lanes, in_rounds=in_rounds)
    seeds: list[int] = []
    tracks = [runs(factory, 3, 3 * track) for track in range(5)]
    play([*tracks, iter(())], backend, lambda run: seeds.append(run.row().seed))
    assert sorted(seeds) == [*range(15)]
    assert (factory.opened, factory.closed) == (15, 15)
    assert Counter(map(seed_of, backend.asked)) == {seed: 2 + seed % 3 for seed in range(15)}


@pytest.mark.parametrize("in_rounds", [True, False])
def test_a_lane_plays_its_track_in_order_and_no_lane_is_shared(in_rounds: bool) -> None:
    backend = Scripted(walk, lanes=2, in_rounds=in_rounds)
    play([runs(Cells, 3, 3 * track) for track in range(4)], backend, lambda run: None)
    lanes: dict[int, set[int]] = {}
    for query in backend.asked:
        lanes.setdefault(seed_of(query) // 3, set()).add(query.lane)
    assert all(len(of_track) == 1 for of_track in lanes.values())
    assert {lane for of_track in lanes.values() for lane in of_track} == {0, 1}
    assert all(len(batch) == len({*batch}) for batch in backend.batches)


def test_in_rounds_all_lanes_are_asked_at_once() -> None:
    backend = Scripted(walk, lanes=3)
    play([runs(Cells, 1, seed) for seed in (0, 1, 2)], backend, lambda run: None)
    assert [sorted(batch) for batch in backend.batches] == [[0, 1, 2], [0, 1, 2], [1, 2], [2]]


def test_in_threads_a_lane_does_not_wait_for_a_slower_one() -> None:
    others_done = threading.Event()

    def answer(query: Query) -> Reply:
        if seed_of(query) == 0:
            assert others_done.wait(10), "the other lane waited"
        return walk(query)

    finished: list[int] = []

    def note(run: Run) -> None:
        finished.append(run.setting.seed)
        if len(finished) == 3:
            others_done.set()

    backend = Scripted(answer, lanes=2, in_rounds=False)
    play([runs(Cells, 1), runs(Cells, 3, 1)], backend, note)
    assert finished == [1, 2, 3, 0]


@pytest.mark.parametrize("in_rounds", [True, False])
def test_an_error_of_the_backend_loses_no_finished_run_and_closes_the_others(in_rounds: bool) -> None:
    factory = counted()

    def answer(query: Query) -> Reply:
        if seed_of(query) == 4:
            raise BackendError("here", "the model is gone", "start it")
        return walk(query)

    finished: list[int] = []
    with pytest.raises(BackendError, match="the model is gone"):
        play(
            [runs(factory, 6)],
            Scripted(answer, lanes=2, in_rounds=in_rounds),
            lambda run: finished.append(run.setting.seed),
        )
    assert finished == [0, 1, 2, 3]
    assert factory.opened == factory.closed == 5


def test_answers_that_are_under_way_when_another_lane_fails_are_taken() -> None:
    both_asked, failed = threading.Barrier(2), threading.Event()

    def answer(query: Query) -> Reply:
        both_asked.wait(10)
        if seed_of(query) == 0:
            failed.set()
            raise BackendError("here", "the model is gone", "start it")
        assert failed.wait(10)
        return go(5)

    finished: list[int] = []
    factory = counted()
    with pytest.raises(BackendError):
        play(
            [runs(factory, 2), runs(factory, 2, 10)],
            Scripted(answer, lanes=2, in_rounds=False),
            lambda run: finished.append(run.setting.seed),
        )
    assert finished == [10]
    assert factory.opened == factory.closed


def test_an_error_of_one_lane_ends_its_run_only_while_others_are_answered() -> None:
    factory = counted()

    def answer(query: Query) -> Reply:
        if seed_of(query) % 4 == 1 and turns(query) == 1:
            raise BackendError("here", "the conversation is too long", "shorten it", query.lane)
        return walk(query)

    rows = []
    play([runs(factory, 8)], Scripted(answer, lanes=1, in_rounds=False), lambda run: rows.append(run.row()))
    assert [row.seed for row in rows if row.error is None] == [0, 2, 3, 4, 6, 7]
    failed = [row for row in rows if row.error]
    assert [(row.seed, row.steps, row.won, row.ended) for row in failed] == [(1, 1, False, False), (5, 1, False, False)]
    assert failed[0].error == "BackendError: here: the conversation is too long; shorten it"
    assert factory.opened == factory.closed == 8


def test_errors_without_an_answer_between_them_stop_all_runs() -> None:
    def answer(query: Query) -> Reply:
        if seed_of(query) > 1:
            raise BackendError("here", "gone", "start it", query.lane)
        return walk(query)

    seeds: list[int] = []
    with pytest.raises(BackendError, match="gone"):
        play(
            [runs(Cells, 9)],
            Scripted(answer, lanes=1, in_rounds=False),
            lambda run: seeds.append(run.setting.seed),
        )
    assert seeds == [0, 1, 2]


def test_a_run_is_closed_if_nobody_can_keep_its_row() -> None:
    factory = counted()

    def full(run: Run) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        play([runs(factory, 2), runs(factory, 2, 2)], Scripted(walk), full)
    assert factory.opened == factory.closed == 2


def test_a_backend_with_too_few_answers_is_an_error() -> None:
    class Short(Scripted):
        def complete(self, queries: object) -> list[Reply]:
            return []

    with pytest.raises(ValueError, match="shorter"):
        play([runs(Cells, 1)], Short(walk), lambda run: None)
