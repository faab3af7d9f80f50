"""However many runs are given, learning keeps a bounded part of them."""

from __future__ import annotations

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks_workbench.learning import Gathered, RunDigest, _digest, digest_of
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun
from tests.workbench.learning.world import failing, look, run, step, succeeding


def digest(recorded: RecordedRun) -> RunDigest:
    with ReasonBlocks(e_traces_enabled=False, strict=True) as rb:
        return digest_of(replay(rb, recorded), {})


def test_of_one_task_a_dozen_runs_are_kept() -> None:
    gathered, one = Gathered(), digest(failing())
    for _ in range(50):
        gathered.add(one)
    assert (len(gathered.runs), gathered.left_out) == (_digest.MAX_PER_TASK, 50 - _digest.MAX_PER_TASK)


def test_of_many_tasks_so_many_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_digest, "MAX_RUNS", 5)
    gathered = Gathered()
    for n in range(9):
        gathered.add(digest(succeeding(f"r{n}", f"t{n}")))
    assert (len(gathered.runs), gathered.left_out) == (5, 4)


def test_calm_steps_are_picked_whatever_the_order_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_digest, "MAX_CALM", 4)
    runs = [digest(run(f"r{n}", "success", look(f"r{n}"), step("read", f"page {n}", f"I read {n}."))) for n in range(9)]
    one, other = Gathered(), Gathered()
    for given in runs:
        one.add(given)
    for given in reversed(runs):
        other.add(given)
    assert len(one.calm) == 4
    assert list(one.calm) == list(other.calm)


def test_a_long_run_is_kept_by_its_first_steps() -> None:
    long = run("long", "success", *(step("read", f"page {n}", page=n) for n in range(400)))
    assert len(digest(long).acts) == 256
