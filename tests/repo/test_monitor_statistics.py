"""The figures of the benchmark and of `reasonblocks calibrate`, held to statements of them that are slow and plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from reasonblocks_workbench.calibration.statistics import (
    FALSE_ALARMS,
    Draws,
    Tables,
    auroc,
    interval,
    mean_of,
    odds_ratio,
    recall,
    redraws,
    share,
    stratified_auroc,
    wald_bounds,
)

RANDOM = np.random.default_rng(7)
RUNS = 40
FAILING = RANDOM.random(RUNS) < 0.4
SCORES = RANDOM.integers(0, 6, RUNS).astype(np.float64)
STRATA = RANDOM.integers(0, 3, RUNS)
WEIGHTS = np.vstack([np.ones(RUNS), RANDOM.integers(0, 3, (2, RUNS))])
SAMPLES = [[run for run in range(RUNS) for _ in range(int(row[run]))] for row in WEIGHTS]
"""Each draw as the runs that are in it, some several times."""


def won(pairs: Sequence[tuple[int, int]]) -> float:
    return float(np.mean([(SCORES[bad] > SCORES[good]) + 0.5 * (SCORES[bad] == SCORES[good]) for bad, good in pairs]))


def pairs(sample: Sequence[int]) -> list[tuple[int, int]]:
    """Every failing run with every successful one."""
    return list(product([run for run in sample if FAILING[run]], [run for run in sample if not FAILING[run]]))


def best_recall(sample: Sequence[int]) -> float:
    bad = [SCORES[run] for run in sample if FAILING[run]]
    good = [SCORES[run] for run in sample if not FAILING[run]]
    found = [0.0]
    for threshold in (*bad, *good):
        if np.mean([score >= threshold for score in good]) <= FALSE_ALARMS:
            found.append(float(np.mean([score >= threshold for score in bad])))
    return max(found)


def test_auroc_is_the_share_of_pairs_that_are_in_order() -> None:
    assert auroc(FAILING, SCORES, WEIGHTS) == pytest.approx([won(pairs(sample)) for sample in SAMPLES])


def test_auroc_without_a_failing_run_is_unknown() -> None:
    assert np.isnan(auroc(np.zeros(3, dtype=np.bool_), np.arange(3.0), np.ones((1, 3)))).all()


def test_stratified_auroc_is_the_share_of_the_pairs_of_one_stratum() -> None:
    within = [[(bad, good) for bad, good in pairs(sample) if STRATA[bad] == STRATA[good]] for sample in SAMPLES]
    assert stratified_auroc(FAILING, SCORES, STRATA, WEIGHTS) == pytest.approx([won(some) for some in within])


def test_recall_is_that_of_the_best_threshold_which_spares_nine_successes_in_ten() -> None:
    assert recall(FAILING, SCORES, WEIGHTS) == pytest.approx([best_recall(sample) for sample in SAMPLES])


def test_a_share_counts_a_run_as_often_as_it_was_drawn() -> None:
    counted = [np.mean([STRATA[run] == 0 for run in sample if FAILING[run]]) for sample in SAMPLES]
    assert share(STRATA == 0, FAILING, WEIGHTS) == pytest.approx(counted)


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


def tables(*each: tuple[int, int, int, int]) -> Tables:
    def row(place: int) -> Draws:
        return np.array([[float(one[place]) for one in each]])

    return Tables(exposed_failing=row(0), exposed_passing=row(1), other_failing=row(2), other_passing=row(3))


def test_the_odds_ratio_of_one_table_is_the_cross_product() -> None:
    assert odds_ratio(tables((8, 2, 5, 10)))[0] == pytest.approx(8 * 10 / (2 * 5))


def test_the_odds_ratio_of_two_tables_is_mantels_and_haenszels() -> None:
    over, under = 8 * 10 / 25 + 3 * 4 / 10, 2 * 5 / 25 + 1 * 2 / 10
    assert odds_ratio(tables((8, 2, 5, 10), (3, 1, 2, 4)))[0] == pytest.approx(over / under)


def test_a_table_without_runs_says_nothing() -> None:
    assert odds_ratio(tables((8, 2, 5, 10), (0, 0, 0, 0)))[0] == pytest.approx(8.0)


def test_the_bounds_of_one_table_are_those_of_its_logarithm() -> None:
    half = 1.96 * math.sqrt(1 / 8 + 1 / 2 + 1 / 5 + 1 / 10)
    assert wald_bounds(tables((8, 2, 5, 10))) == pytest.approx(
        (math.exp(math.log(8) - half), math.exp(math.log(8) + half))
    )
