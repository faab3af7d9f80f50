"""The estimates, against restatements by brute force, cases worked by hand, and simulated experiments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from _outcome.rows import Row
from _outcome.statistics import (
    Sample,
    base_failure,
    break_even,
    effect,
    further,
    healthy,
    interval,
    macro,
    mcnemar,
    samples,
    share_interval,
    sign_flip_p,
)

from tests.outcome.made import branch, branches, drawn, shadow

ARM = "a@tail"


def sample_of(rows: Sequence[Row], boot: int = 200) -> Sample:
    (sample,) = samples(rows, "branch", boot).values()
    return sample


def points(*outcomes: tuple[Sequence[int], Sequence[int]]) -> Sample:
    """Points of one family, each with the outcomes of `off` and of the arm."""
    return sample_of(branches("house", [{"off": off, ARM: arm} for off, arm in outcomes]))


def test_the_advantage_counts_every_point_once_whatever_its_samples() -> None:
    found = effect(points(([0], [1]), ([1, 1, 0, 0], [0, 0, 0, 0])), ARM)
    assert (found.points, found.off[0], found.won[0], found.advantage[0]) == (2, 0.25, 0.5, 0.25)


def test_only_points_at_which_both_have_runs_count() -> None:
    rows = [*branches("house", [{"off": [0], ARM: [1]}, {"off": [1]}]), branch("house", 2, ARM, 0, False)]
    found = effect(sample_of(rows), ARM)
    assert (found.points, found.advantage[0]) == (1, 1.0)


def test_a_share_of_nothing_has_the_exact_binomial_interval() -> None:
    flips = effect(points(*[([0], [0])] * 9, ([1], [1])), ARM).flips
    found = share_interval(flips.recovery, flips.lost_points)
    assert (found.point, found.low) == (0.0, 0.0)
    assert (1 - found.high) ** 9 == pytest.approx(0.025)
    won = effect(points(*[([0], [1])] * 9, ([1], [1])), ARM).flips
    found = share_interval(won.recovery, won.lost_points)
    assert (found.point, found.high) == (1.0, 1.0)
    assert found.low**9 == pytest.approx(0.025)
    assert share_interval(won.disruption, 1).high == pytest.approx(0.975)
    samples_of_one = effect(points(([0] * 5, [0] * 5)), ARM).flips
    assert (samples_of_one.lost, samples_of_one.lost_points, samples_of_one.won_points) == (5, 1, 0)


def brute_force(rows: Sequence[Row]) -> dict[str, float]:
    """r, d, r0 and d0 from every pair of rows there is."""
    counts = dict.fromkeys(("lost", "recovered", "won", "disrupted"), 0)
    chance = dict.fromkeys(counts, 0)
    for one, other in product(rows, rows):
        if one.arm != "off" or (one.family, one.seed) != (other.family, other.seed):
            continue
        if other.arm == ARM and one.sample == other.sample:
            into = counts
        elif other.arm == "off" and one.sample != other.sample:
            into = chance
        else:
            continue
        into["won" if one.won else "lost"] += 1
        into["disrupted" if one.won else "recovered"] += one.won != other.won
    return {
        "r": counts["recovered"] / counts["lost"], "d": counts["disrupted"] / counts["won"],
        "r0": chance["recovered"] / chance["lost"], "d0": chance["disrupted"] / chance["won"],
        "lost": counts["lost"], "won": counts["won"],
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_recovery_and_disruption_are_those_of_all_pairs(seed: int) -> None:
    rows = drawn(8, {"off": 0.4, ARM: 0.6}, seed=seed, samples=3)
    rows += drawn(6, {"off": 0.5, ARM: 0.5}, seed=seed + 50, samples=2, family="hunt")
    rows = random.Random(seed).sample(rows, len(rows) - 4)
    expected = brute_force(rows)
    found = effect(sample_of(rows), ARM).flips
    figures = {
        "r": found.recovery[0], "d": found.disruption[0], "r0": found.chance_recovery[0],
        "d0": found.chance_disruption[0], "lost": found.lost, "won": found.won,
    }  # fmt: skip
    assert figures == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_recovery_and_disruption_make_up_the_advantage(seed: int) -> None:
    """With failure rate p, an arm wins p * r more and (1 - p) * d fewer: arXiv 2602.03338."""
    found = effect(sample_of(drawn(20, {"off": 0.4, ARM: 0.5}, seed=seed)), ARM)
    failure = 1 - found.off
    made_up = failure * found.flips.recovery - (1 - failure) * found.flips.disruption
    assert made_up == pytest.approx(found.advantage)


def test_an_arm_that_is_off_recovers_by_chance_only() -> None:
    found = effect(sample_of(drawn(400, {"off": 0.3, ARM: 0.3}, seed=1, samples=4), boot=20), ARM).flips
    assert found.recovery[0] == pytest.approx(0.3, abs=0.04)
    assert found.chance_recovery[0] == pytest.approx(0.3, abs=0.04)


def test_chance_is_unknown_with_one_sample_of_off() -> None:
    found = effect(points(([0], [1]), ([1], [1])), ARM).flips
    assert isnan(found.chance_recovery[0])
    assert isnan(found.chance_disruption[0])


def test_the_break_even_failure_rate_by_hand() -> None:
    """r = 2/4, d = 1/6: interventions pay above a failure rate of (1/6) / (4/6)."""
    flips = effect(points(([0] * 4, [1, 1, 0, 0]), ([1] * 6, [1, 1, 1, 1, 1, 0])), ARM).flips
    assert (flips.lost, flips.recovered, flips.won, flips.disrupted) == (4, 2, 6, 1)
    assert break_even(flips)[0] == pytest.approx(0.25)


def test_there_is_no_break_even_rate_where_nothing_turned() -> None:
    assert isnan(break_even(effect(points(([0], [0]), ([1], [1])), ARM).flips)[0])


def test_the_base_failure_rate_is_that_of_the_runs_that_are_spoken_into() -> None:
    rows = branches("house", [{"off": [1], ARM: [1]}] * 4)
    shadows = [shadow("house", seed, won=seed == 0) for seed in range(3)]
    healthy_one = shadow("house", 9, won=True, point=None)
    found = base_failure(sample_of([*rows, *shadows, healthy_one]))
    assert found is not None
    assert found[0] == pytest.approx(2 / 3)
    assert base_failure(sample_of(rows)) is None


def test_an_interval_contains_the_truth_in_about_95_experiments_of_100() -> None:
    chances = {"off": 0.2, ARM: 0.5}
    bounds = [interval(effect(sample_of(drawn(40, chances, seed=seed)), ARM).advantage) for seed in range(60)]
    covered = sum(one.low <= 0.3 <= one.high for one in bounds) / len(bounds)
    assert 0.88 <= covered < 1
    assert 0.15 < np.mean([one.high - one.low for one in bounds]) < 0.35


def test_more_samples_of_the_same_points_do_not_narrow_the_interval_by_themselves() -> None:
    outcomes = [([0], [1])] * 10 + [([0], [0])] * 10
    once = interval(effect(points(*outcomes), ARM).advantage)
    often = interval(effect(points(*[(off * 9, arm * 9) for off, arm in outcomes]), ARM).advantage)
    assert once == often


def test_the_same_points_have_the_same_draws() -> None:
    rows = drawn(20, {"off": 0.3, ARM: 0.5, "b@tail": 0.5}, seed=1)
    alone = effect(sample_of([row for row in rows if row.arm != "b@tail"]), ARM).advantage
    beside = effect(sample_of(rows), ARM).advantage
    assert np.array_equal(alone, beside)


def test_a_family_weighs_as_much_as_another_in_the_mean_over_families() -> None:
    rows = branches("house", [{"off": [0], ARM: [1]}] * 15) + branches("hunt", [{"off": [0], ARM: [0]}] * 5)
    found = macro(sample_of(rows), ARM, lambda one: one.advantage)
    assert found is not None
    assert found[0] == 0.5
    assert set(found) == {0.5}, "the families are drawn by themselves: each keeps its number of points"


def test_there_is_no_mean_over_families_of_four_points() -> None:
    assert macro(points(*[([0], [1])] * 4), ARM, lambda one: one.advantage) is None


def test_giving_up_is_ending_the_run_and_losing() -> None:
    rows = branches("house", [{"off": [0, 1], ARM: [0, 0]}])
    ended = [replace(row, ended=row.arm == ARM or row.won) for row in rows]
    found = effect(sample_of(ended), ARM)
    assert (found.off_gave_up[0], found.gave_up[0], found.giving_up[0]) == (0.0, 1.0, 1.0)


def test_tokens_are_ratios_of_means_a_run_and_a_call() -> None:
    rows = [
        branch("house", 0, "off", 0, False, steps=9, prompt=300, evaluated=60),
        branch("house", 0, ARM, 0, False, steps=6, prompt=150, evaluated=90),
        branch("house", 1, "off", 0, False, steps=9, prompt=100, evaluated=40),
        branch("house", 1, ARM, 0, False, steps=6, prompt=250, evaluated=10),
    ]
    found = effect(sample_of(rows), ARM)
    assert (found.prompt[0], found.evaluated[0]) == (1.0, 1.0)
    assert found.evaluated_a_call[0] == 2.0, "from point 3 on, off made six calls and the arm three"


def test_tokens_that_nobody_counted_are_unknown() -> None:
    rows = [replace(row, evaluated=None) for row in branches("house", [{"off": [0], ARM: [1]}])]
    assert isnan(effect(sample_of(rows), ARM).evaluated[0])


def test_healthy_tasks_are_chosen_by_their_shadow_run_alone() -> None:
    rows = [
        replace(row, phase="whole", point=None)
        for row in branches("house", [{"off": [1], "steer": [1]}, {"off": [1], "steer": [0]}, {"off": [0]}])
    ]
    shadows = [shadow("house", 0), shadow("house", 1, point=None)]
    (sample,) = healthy([*rows, *shadows], boot=2).values()
    assert [point.seed for point in sample.points] == [1]
    assert any(row.told for row in sample.points[0].runs["steer"].values()), "it counts though it was told something"


def test_the_number_of_the_shadow_run_is_left_out_of_the_healthy_runs() -> None:
    """`off` 0 has the same sampling as the shadow run that was chosen for its good order; `off` 1 was not chosen."""
    rows = [replace(row, phase="whole", point=None) for row in branches("house", [{"off": [1, 0], "steer": [0, 0]}])]
    (sample,) = healthy([*rows, shadow("house", 0, point=None)], boot=2).values()
    assert {arm: [*runs] for arm, runs in sample.points[0].runs.items()} == {"off": [1], "steer": [1]}


@pytest.mark.parametrize(
    ("recovered", "disrupted", "expected"),
    [
        (5, 0, 2 / 32),
        (0, 5, 2 / 32),
        (10, 3, 2 * (1 + 13 + 78 + 286) / 8192),
        (4, 4, 1.0),
        (0, 0, 1.0),
        (600, 600, 1.0),
    ],
)
def test_mcnemar_by_hand(recovered: int, disrupted: int, expected: float) -> None:
    assert mcnemar(recovered, disrupted) == pytest.approx(expected)


def test_four_points_won_among_many_unchanged_ones_are_too_few_though_the_interval_excludes_zero() -> None:
    outcomes = [{"off": [0], ARM: [1]}] * 4 + [{"off": [0], ARM: [0]}] * 46
    sample = sample_of(branches("house", outcomes), boot=2_000)
    assert interval(effect(sample, ARM).advantage).low > 0
    assert sign_flip_p(sample, ARM, ["house"]) == pytest.approx(2 / 2**4, abs=0.02)


def test_random_exchanges_agree_with_all_exchanges() -> None:
    sample = points(([0, 0], [1, 1]), ([0, 0], [1, 0]), ([1, 0], [0, 0]), ([0, 0], [1, 1]), ([0, 0], [0, 0]))
    differences = (1.0, 0.5, -0.5, 1.0)
    every = [abs(sum(map(lambda a, b: a * b, signs, differences))) for signs in product((-1, 1), repeat=4)]
    exact = sum(value >= abs(sum(differences)) - 1e-9 for value in every) / len(every)
    assert sign_flip_p(sample, ARM, ["house"]) == pytest.approx(exact, abs=0.02)


def test_nothing_changed_is_no_evidence() -> None:
    assert sign_flip_p(points(([0], [0]), ([1], [1])), ARM, ["house"]) == 1.0


def test_further_points_by_hand() -> None:
    """A standard error of .05 with 100 points has to be .1 / 2.8: 196 points."""
    half = np.tile([0.05, 0.15], 500)
    assert further(100, np.array([0.1, *half])) == 96
    assert further(200, np.array([0.1, *half])) == 192
    assert further(100, np.array([0.3, *half])) == 0
    assert further(100, np.array([-0.1, *half])) == 96


def test_with_the_further_points_four_experiments_in_five_settle_it() -> None:
    """The difference of two wins has the variance .2 * .8 + .4 * .6; thirty points have been seen."""
    error = (0.4 / 30) ** 0.5
    more = further(30, np.array([0.2, *np.tile([0.2 - error, 0.2 + error], 500)]))
    assert more == 49
    chances = {"off": 0.2, ARM: 0.4}
    bounds = [
        interval(effect(sample_of(drawn(30 + more, chances, seed=seed, samples=1), boot=100), ARM).advantage)
        for seed in range(50)
    ]
    assert 0.65 < np.mean([one.low > 0 for one in bounds]) < 0.95


@pytest.mark.parametrize("draws", [[0.0, 0.1, -0.1], [0.2, 0.2, 0.2], [nan, nan, nan]])
def test_nothing_is_known_of_further_points_without_an_effect_or_a_spread(draws: list[float]) -> None:
    assert further(10, np.array(draws)) is None
