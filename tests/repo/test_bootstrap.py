"""The bootstrap of the benchmarks: which runs are drawn together, and what an interval leaves out."""

from __future__ import annotations

from _statistics import interval, mean_of, ratio, redraws

import numpy as np
import pytest


def test_the_first_draw_is_the_runs_as_they_are() -> None:
    assert (redraws(["a", "b", "a"], 5, "source")[0] == 1).all()


def test_the_runs_of_one_task_are_drawn_together() -> None:
    drawn = redraws(["a", "b", "a", "c"], 50, "source")
    assert (drawn[:, 0] == drawn[:, 2]).all()


def test_every_draw_has_as_many_tasks_as_there_are() -> None:
    drawn = redraws(["a", "b", "a", "c"], 50, "source")
    assert (drawn[:, [0, 1, 3]].sum(axis=1) == 3).all()


def test_the_same_tasks_are_drawn_alike_each_time() -> None:
    assert (redraws(["a", "b", "c"], 20, "source") == redraws(["a", "b", "c"], 20, "source")).all()


def test_an_interval_leaves_out_draws_without_the_figure() -> None:
    found = interval(np.array([0.5, np.nan, *np.linspace(0, 1, 41)]))
    assert (found.point, found.low, found.high) == pytest.approx((0.5, 0.025, 0.975))


def test_a_mean_is_over_the_figures_that_there_are() -> None:
    assert mean_of([np.array([1.0, 1.0]), np.array([3.0, np.nan])]).tolist() == [2.0, 1.0]


def test_a_ratio_to_nothing_is_undefined() -> None:
    assert np.isnan(ratio(np.array([1.0, 2.0]), np.array([0.0, 2.0]))).tolist() == [True, False]
