"""An experiment plays what its store does not have: shadow runs, branches of those with a point, whole runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from _outcome.backend import BackendError, Query, Reply
from _outcome.environment import Call, Environment
from _outcome.experiment import Experiment
from _outcome.rows import Row
from _outcome.run import Factory, NotRepeatable
from _outcome.store import Store

from tests.outcome.played import Cells, Scripted, counted, go, seed_of, to_and_fro, turns


class Solved(Cells):
    """Cells with a reference policy, which goes to the goal."""

    asked = 0

    def reference(self) -> Call | None:
        type(self).asked += 1
        return Call("go", {"cell": "5"})


def stuck_if_odd(query: Query) -> Reply:
    return to_and_fro(query) if seed_of(query) % 2 else go(5)


def experiment(**given: Any) -> Experiment:
    settings: dict[str, Any] = {"families": {"cells": Cells}, "seeds": range(4), "arms": ["off", "shipped"]}
    return Experiment(**{**settings, "samples": 2, **given})


def store(path: Path) -> Store:
    return Store(path / "rows.jsonl", {"model": "scripted"})


def families(*names: str, factory: Factory = Cells) -> Mapping[str, Factory]:
    return dict.fromkeys(names, factory)


def ignored(row: Row) -> None:
    """Take no note of a finished run."""


def test_branches_are_played_from_the_shadow_runs_that_have_a_point(tmp_path: Path) -> None:
    backend, what, steps = Scripted(stuck_if_odd), experiment(), list[Row]()
    with store(tmp_path) as kept:
        assert what.count("shadow", "scripted", kept) == 4
        what.shadow(backend, kept, steps.append)
        assert what.count("branch", "scripted", kept) == 8
        what.branch(backend, kept, steps.append)
        rows = kept.rows
    assert [row.key for row in steps] == [row.key for row in rows]
    played = Counter((row.phase, row.seed, row.arm) for row in rows)
    shadows = {("shadow", seed, "off"): 1 for seed in range(4)}
    assert played == {**shadows, **{("branch", seed, arm): 2 for seed in (1, 3) for arm in ("off", "shipped")}}
    points = {row.seed: row.point for row in rows if row.phase == "shadow"}
    assert points == {0: None, 1: 6, 2: None, 3: 6}


def test_what_is_there_is_not_played_again(tmp_path: Path) -> None:
    what = experiment()
    for phase in ("shadow", "branch", "whole"):
        with store(tmp_path) as kept:
            getattr(what, phase)(Scripted(stuck_if_odd), kept, ignored)
    silent = Scripted(stuck_if_odd)
    with store(tmp_path) as kept:
        before = kept.rows
        for phase in ("shadow", "branch", "whole"):
            assert what.count(phase, "scripted", kept) == 0  # type: ignore[arg-type]
            getattr(what, phase)(silent, kept, ignored)
        assert (silent.asked, kept.rows) == ([], before)


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path: Path) -> None:
    what, calls = experiment(), Counter[str]()

    def fails_later(query: Query) -> Reply:
        calls["made"] += 1
        if calls["made"] == 30:
            raise BackendError("here", "gone", "start it")
        return stuck_if_odd(query)

    with store(tmp_path) as kept:
        what.shadow(Scripted(stuck_if_odd), kept, ignored)
        with pytest.raises(BackendError):
            what.branch(Scripted(fails_later, lanes=1), kept, ignored)
        had = {row.key for row in kept.rows if row.phase == "branch"}
    assert 0 < len(had) < 8
    steps: list[Row] = []
    with store(tmp_path) as kept:
        assert what.count("branch", "scripted", kept) == 8 - len(had)
        what.branch(Scripted(stuck_if_odd), kept, steps.append)
    assert len(steps) == 8 - len(had)
    assert had.isdisjoint({row.key for row in steps})


def test_more_samples_arms_and_seeds_add_to_what_is_there(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        small, large = experiment(samples=1, seeds=range(2)), experiment(arms=["off", "shipped", "generic"])
        for what in (small, large):
            what.shadow(Scripted(stuck_if_odd), kept, ignored)
            what.branch(Scripted(stuck_if_odd), kept, ignored)
        played = Counter(row.key for row in kept.rows)
    assert {*played.values()} == {1}
    assert sum(key[2] == "branch" for key in played) == 2 * 3 * 2


def test_points_limits_the_branch_points_of_each_family(tmp_path: Path) -> None:
    what = experiment(families=families("a", "b"), seeds=range(6), points=1, samples=1)
    with store(tmp_path) as kept:
        what.shadow(Scripted(stuck_if_odd), kept, ignored)
        what.branch(Scripted(stuck_if_odd), kept, ignored)
        branched = {(row.family, row.seed) for row in kept.rows if row.phase == "branch"}
    assert branched == {(family, seed) for family in ("a", "b") for seed in (1,)}


def test_families_take_turns(tmp_path: Path) -> None:
    what = experiment(families=families("a", "b", "c"), seeds=range(2))
    with store(tmp_path) as kept:
        what.shadow(Scripted(lambda query: go(5), lanes=1), kept, ignored)
        assert [row.family for row in kept.rows] == ["a", "b", "c"] * 2


def test_no_arm_is_always_the_first_at_its_point(tmp_path: Path) -> None:
    what = experiment(seeds=range(1, 16, 2), samples=1)
    with store(tmp_path) as kept:
        what.shadow(Scripted(stuck_if_odd), kept, ignored)
        what.branch(Scripted(stuck_if_odd, lanes=1), kept, ignored)
        branches = [row for row in kept.rows if row.phase == "branch"]
    first = Counter({row.seed: row.arm for row in reversed(branches)}.values())
    assert min(first["off"], first["shipped"]) > 1


def test_whole_runs_are_steered_from_their_first_call(tmp_path: Path) -> None:
    what = experiment(arms=["off", "rules"], samples=1, seeds=range(2))
    with store(tmp_path) as kept:
        what.whole(Scripted(stuck_if_odd), kept, ignored)
        told = {(row.seed, row.arm): [text.step for text in row.told] for row in kept.rows}
    assert told == {(0, "off"): [], (1, "off"): [], (0, "rules"): [0], (1, "rules"): [0]}


def test_branches_of_another_model_are_not_taken_for_this_one(tmp_path: Path) -> None:
    other = Scripted(stuck_if_odd)
    other.model = "other"
    with store(tmp_path) as kept:
        experiment().shadow(Scripted(stuck_if_odd), kept, ignored)
        assert experiment().count("branch", "other", kept) == 0
        assert experiment().count("shadow", "other", kept) == 4


# --- whether a point can still be won


def branches(tmp_path: Path, factory: Factory, policy: Any = to_and_fro) -> list[Row]:
    what = experiment(families={"cells": factory}, seeds=[1], samples=1)
    with store(tmp_path) as kept:
        what.shadow(Scripted(policy), kept, ignored)
        what.branch(Scripted(policy), kept, ignored)
        return [row for row in kept.rows if row.phase == "branch"]


def test_the_reference_policy_is_asked_once_for_a_point(tmp_path: Path) -> None:
    class Counting(Solved):
        asked = 0

    assert [row.winnable for row in branches(tmp_path, Counting)] == [True, True]
    assert Counting.asked == 1


def test_a_point_that_the_policy_cannot_win_in_the_steps_left_is_lost(tmp_path: Path) -> None:
    class Slow(Solved):
        def reference(self) -> Call | None:
            return Call("go", {"cell": str(self._at + (1 if self._at > 4 else 0))})

    assert [row.winnable for row in branches(tmp_path, Slow)] == [False, False]


def test_without_a_policy_nobody_knows(tmp_path: Path) -> None:
    assert [row.winnable for row in branches(tmp_path, Cells)] == [None, None]


def test_a_turn_without_a_call_is_not_made_again_in_the_environment(tmp_path: Path) -> None:
    class Strict(Solved):
        def call(self, name: str, arguments: Mapping[str, Any]) -> str:
            assert name, "a turn without a call was made as one"
            return super().call(name, arguments)

    def hesitant(query: Query) -> Reply:
        return Reply(text="Hm.") if turns(query) == 0 else to_and_fro(query)

    assert [row.winnable for row in branches(tmp_path, Strict, hesitant)] == [True, True]


# --- environments that hold something open


def test_all_environments_are_closed(tmp_path: Path) -> None:
    factory = counted()
    branches(tmp_path, factory)
    assert factory.opened == factory.closed == 1 + 2 + 1


def test_an_environment_with_other_results_stops_the_experiment_in_plain_words(tmp_path: Path) -> None:
    class Renumbered(counted()):  # type: ignore[misc]
        def call(self, name: str, arguments: Mapping[str, Any]) -> str:
            return f"{super().call(name, arguments)} This is house {self._number}."

        def reset(self, seed: int) -> str:
            self._number = self.opened
            return str(super().reset(seed))

    renumbered: type[Environment] = Renumbered
    with pytest.raises(NotRepeatable, match="the same calls give the same results"):
        branches(tmp_path, renumbered)
    assert Renumbered.opened == Renumbered.closed
