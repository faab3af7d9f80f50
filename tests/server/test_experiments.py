"""The report of an experiment: units, intervals, the ratio of the arms, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import erf, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks_server.experiments import Interval, Report, mean_difference, newcombe, report_of, sample_ratio, wilson
from reasonblocks_server.values import RunRow

TABLE_II = [
    ((56, 70), (48, 80), (0.0524, 0.3339)),
    ((9, 10), (3, 10), (0.1705, 0.8090)),
    ((6, 7), (2, 7), (0.0582, 0.8062)),
    ((5, 56), (0, 29), (-0.0381, 0.1926)),
    ((0, 10), (0, 20), (-0.1611, 0.2775)),
    ((0, 10), (0, 10), (-0.2775, 0.2775)),
    ((10, 10), (0, 20), (0.6791, 1.0000)),
    ((10, 10), (0, 10), (0.6075, 1.0000)),
]
"""Newcombe 1998, table II: two shares, and the limits by method 10."""
COUNTS = st.integers(1, 400).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))


def row(
    run_id: str, arm: str | None = "on", outcome: str | None = "success", *, unit: str = "", steps: int = 10,
    tokens: int | None = 1_000, parent: str | None = None, fraction: object = 0.5, started: float = 0.0,
) -> RunRow:  # fmt: skip
    return RunRow(
        org_id="org", run_id=run_id, started=started, seen=1.0, outcome=outcome, steps=steps, tokens=tokens,
        mode="observe" if arm == "off" else "steer", parent_run_id=parent, experiment_id="exp", arm=arm,
        unit_id=unit or None, body={"metadata": {"on_fraction": fraction}},
    )  # fmt: skip


def arm(name: str, wins: int, losses: int) -> list[RunRow]:
    outcomes = ["success"] * wins + ["failure: ValueError"] * losses
    return [row(f"{name}-{number}", name, outcome) for number, outcome in enumerate(outcomes)]


def verdict(on: tuple[int, int], off: tuple[int, int]) -> str:
    return report_of([*arm("on", *on), *arm("off", *off)]).verdict


def of(count: tuple[int, int]) -> Interval:
    return wilson(count[0] / count[1], count[1])


def score_limit(share: float, count: int, end: float) -> float:
    """Return the most distant parameter towards `end` whose score test does not reject the share, by bisection."""
    inside, outside = share, end
    for _ in range(200):
        middle = (inside + outside) / 2
        rejects = (share - middle) ** 2 * count > 1.959963984540054**2 * middle * (1 - middle)
        inside, outside = (inside, middle) if rejects else (middle, outside)
    return inside


@pytest.mark.parametrize(("first", "second", "limits"), TABLE_II)
def test_the_interval_is_that_of_the_published_examples(
    first: tuple[int, int], second: tuple[int, int], limits: tuple[float, float]
) -> None:
    found = newcombe(of(first), of(second))
    assert (round(found.low, 4), round(found.high, 4)) == limits


@given(COUNTS)
def test_the_interval_of_a_share_holds_the_parameters_that_a_score_test_does_not_reject(count: tuple[int, int]) -> None:
    found, share = of(count), count[0] / count[1]
    assert found.low == pytest.approx(score_limit(share, count[1], 0.0), abs=1e-9)
    assert found.high == pytest.approx(score_limit(share, count[1], 1.0), abs=1e-9)
    assert 0 <= found.low <= share <= found.high <= 1


@given(COUNTS, COUNTS)
def test_the_interval_of_a_difference_is_made_of_both_limits(first: tuple[int, int], second: tuple[int, int]) -> None:
    """By complex numbers: the distance to a limit is the length of the two shares' distances at right angles."""
    found = newcombe(of(first), of(second))
    shares = [wins / count for wins, count in (first, second)]
    (low1, high1), (low2, high2) = (
        (score_limit(share, count, 0.0), score_limit(share, count, 1.0))
        for share, (_, count) in zip(shares, (first, second), strict=True)
    )
    difference = shares[0] - shares[1]
    assert found.low == pytest.approx(difference - abs(complex(shares[0] - low1, high2 - shares[1])), abs=1e-8)
    assert found.high == pytest.approx(difference + abs(complex(high1 - shares[0], shares[1] - low2)), abs=1e-8)
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_about_one_experiment_in_twenty_without_an_effect_has_a_verdict() -> None:
    draw = Random(7)
    verdicts = []
    for _ in range(400):
        on, off = (sum(draw.random() < 0.6 for _ in range(80)) for _ in range(2))
        verdicts.append(verdict((on, 80 - on), (off, 80 - off)))
    assert 0.02 <= 1 - verdicts.count("no difference shown") / 400 <= 0.08


@pytest.mark.parametrize(
    ("on", "off", "expected"),
    [
        ((50, 10), (30, 30), "better"),
        ((30, 30), (50, 10), "worse"),
        ((40, 20), (38, 22), "no difference shown"),
        ((29, 0), (0, 29), "not enough data"),
        ((30, 0), (0, 30), "better"),
        ((30, 0), (0, 29), "not enough data"),
        ((0, 0), (0, 0), "not enough data"),
        ((90, 10), (30, 10), "assignment broken"),
    ],
)
def test_the_verdict(on: tuple[int, int], off: tuple[int, int], expected: str) -> None:
    assert verdict(on, off) == expected


def test_runs_without_a_known_outcome_count_for_the_ratio_and_not_for_success() -> None:
    unknown: list[str | None] = [None, "failure: abandoned", "unknown"]
    live = [row(f"{name}-{number}", name, unknown[number % 3]) for name in ("on", "off") for number in range(100, 130)]
    found = report_of([*arm("on", 20, 9), *arm("off", 20, 9), *live])
    assert (found.verdict, found.on.known, found.on.units, found.on.unknown_runs) == ("not enough data", 29, 59, 30)
    assert (found.expected_on, found.chi_square) == (59, 0)


@pytest.mark.parametrize(
    "outcome", ["stopped: the run is stalled", "failure: ValueError", "failure: the customer wrote again"]
)
def test_every_other_outcome_is_no_success(outcome: str) -> None:
    found = report_of([row("a", outcome=outcome), row("b")])
    assert found.on.success == wilson(0.5, 2)


def test_a_unit_counts_once_with_the_mean_of_its_runs() -> None:
    busy = [row(f"busy-{number}", unit="busy", outcome="failure: E", steps=30, tokens=None) for number in range(9)]
    found = report_of([*busy, row("busy-9", unit="busy", steps=40), row("calm", unit="calm", steps=11)])
    assert (found.on.runs, found.on.units, found.on.success) == (11, 2, wilson(0.55, 2))
    assert (found.on.steps, found.on.tokens, found.on.tokens_units) == (21, 1_000, 2)


def test_a_unit_in_both_arms_is_a_broken_assignment_and_in_the_means_of_neither() -> None:
    runs = [*arm("on", 40, 0), *arm("off", 40, 0), row("x", "on", unit="u"), row("y", "off", unit="u")]
    found = report_of(runs)
    assert (found.verdict, found.in_both_arms, found.broken) == (
        "assignment broken", 1, ("units with runs in both arms: 1",),
    )  # fmt: skip
    assert (found.on.units, found.off.units, found.on.runs) == (40, 40, 41)


def test_a_run_with_another_mode_than_its_arm_is_a_broken_assignment() -> None:
    runs = [*arm("on", 40, 0), *arm("off", 40, 0)]
    assert report_of([replace(runs[0], mode="observe"), *runs[1:]]).verdict == "assignment broken"
    assert report_of([*runs[:-1], replace(runs[-1], mode="steer")]).verdict == "assignment broken"


def test_a_run_that_another_run_started_adds_its_steps_and_tokens_only() -> None:
    inner = row("inner", outcome="failure: E", steps=5, tokens=500, parent="outer")
    innermost = row("innermost", outcome="failure: E", steps=2, tokens=None, parent="inner")
    found = report_of([inner, innermost, row("outer", parent="no such run")])
    assert (found.on.runs, found.on.units, found.on.steps, found.on.tokens) == (1, 1, 17, 1_500)
    assert found.on.success == wilson(1.0, 1)


def test_runs_that_claim_to_have_started_each_other_are_one_run() -> None:
    found = report_of([row("a", parent="b", started=2.0), row("b", parent="a", outcome="failure: E", started=1.0)])
    assert (found.on.runs, found.on.success) == (1, wilson(0.0, 1))


class Counted(str):
    """An id that counts how often it is looked up."""

    __slots__ = ()
    looked_up = 0

    def __hash__(self) -> int:
        Counted.looked_up += 1
        return super().__hash__()

    __eq__ = str.__eq__


@pytest.mark.parametrize("ends", [None, "r0", "r100"])
def test_each_run_of_a_chain_of_parents_is_passed_once(ends: str | None) -> None:
    parents = [ends, *[f"r{number}" for number in range(1_999)]]
    runs = [row(f"r{number}", parent=parent and Counted(parent), started=float(number))
            for number, parent in enumerate(parents)]  # fmt: skip
    Counted.looked_up = 0
    found = report_of(Random(1).sample(runs, len(runs)))
    assert (found.on.runs, found.on.units, found.on.steps) == (1, 1, 20_000)
    assert Counted.looked_up <= 4 * len(runs)


def test_runs_without_an_arm_are_left_out() -> None:
    found = report_of([row("a"), row("b", arm=None), row("c", arm="treatment")])
    assert (found.left_out, found.on.runs, found.off.runs) == (2, 1, 0)


def normal(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


@given(st.integers(0, 500), st.integers(1, 500), st.floats(0.01, 0.99))
def test_the_ratio_is_tested_as_pearson_does(on: int, off: int, fraction: float) -> None:
    expected, chi_square, p = sample_ratio([fraction] * on, [fraction] * off)
    count = on + off
    pairs = ((on, count * fraction), (off, count * (1 - fraction)))
    statistic = sum((observed - wanted) ** 2 / wanted for observed, wanted in pairs)
    assert expected == pytest.approx(count * fraction)
    assert chi_square == pytest.approx(statistic, abs=1e-9)
    assert p == pytest.approx(2 * (1 - normal(sqrt(statistic))), abs=1e-9)


def test_the_ratio_of_one_in_a_thousand() -> None:
    """The 99.9 % quantile of the chi-square distribution with one degree of freedom is 10.828."""
    below, above = (sample_ratio([0.5] * on, [0.5] * (2_500 - on)) for on in (1_332, 1_333))
    assert below[1] is not None
    assert above[1] is not None
    assert below[1] < 10.828 < above[1]
    assert below[2] is not None
    assert above[2] is not None
    assert below[2] > 0.001 > above[2]


@pytest.mark.parametrize(("on", "off", "p"), [(5, 0, 1.0), (5, 1, 0.0), (0, 5, 0.0)])
def test_everybody_on_has_a_ratio_of_its_own(on: int, off: int, p: float) -> None:
    assert sample_ratio([1.0] * on, [1.0] * off)[2] == p


@pytest.mark.parametrize("fraction", [None, True, "0.5", float("nan"), -0.1, 1.1])
def test_a_fraction_that_is_none_tests_nothing(fraction: object) -> None:
    runs = [row(str(number), fraction=fraction) for number in range(50)]
    found = report_of(runs)
    assert (found.on_fraction, found.expected_on, found.chi_square, found.p) == (None, None, None, None)
    assert not found.broken


def test_units_of_several_fractions_are_tested_by_their_own() -> None:
    runs = [row(f"{n}", "on" if n % 10 == 0 else "off", fraction=0.1) for n in range(200)]
    runs += [row(f"{n}", "on" if n % 10 else "off", fraction=0.9) for n in range(200, 400)]
    found = report_of(runs)
    assert found.on_fraction is None
    assert found.expected_on == pytest.approx(200)
    assert found.p == pytest.approx(1.0)


def test_the_difference_of_means_by_hand() -> None:
    first, second = [1.0, 3.0] * 20, [2.0] * 30
    found = mean_difference(first, second)
    assert found is not None
    half = 1.959963984540054 * sqrt((40 / 39) / 40)
    assert found.value == 0.0
    assert found.low == pytest.approx(-half)
    assert found.high == pytest.approx(half)
    assert mean_difference(first[:29], second) is None


RUNS = st.lists(
    st.builds(
        row,
        st.integers(0, 30).map(str),
        st.sampled_from(["on", "off", None]),
        st.sampled_from([None, "success", "failure: E", "stopped: reason", "failure: abandoned"]),
        unit=st.integers(0, 12).map(str),
        steps=st.integers(0, 50),
        tokens=st.none() | st.integers(0, 10_000),
        parent=st.none() | st.integers(0, 30).map(str),
        fraction=st.sampled_from([0.5, 0.2, 1, None]),
    ),
    unique_by=lambda run: run.run_id,
)


def mirrored(run: RunRow) -> RunRow:
    """Return the run in the other arm."""
    other = {"on": ("off", "observe"), "off": ("on", "steer")}
    name, mode = other.get(run.arm or "", (run.arm, run.mode))
    return replace(run, arm=name, mode=mode)


@given(RUNS)
def test_exchanging_the_arms_changes_the_sign(runs: Sequence[RunRow]) -> None:
    found, other = report_of(runs), report_of([mirrored(run) for run in runs])
    assert replace(found.on, name="") == replace(other.off, name="")
    assert (found.difference is None) == (other.difference is None)
    if found.difference is not None and other.difference is not None:
        assert found.difference.value == pytest.approx(-other.difference.value)
        assert found.difference.low == pytest.approx(-other.difference.high)


@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(runs: list[RunRow], draw: Random) -> None:
    before = report_of(runs)
    draw.shuffle(runs)
    assert report_of(runs) == before


@given(RUNS)
def test_every_run_is_counted_somewhere(runs: Sequence[RunRow]) -> None:
    found = report_of(runs)
    units = {run.unit_id for run in runs}
    assert found.on.runs + found.off.runs + found.left_out <= len(runs)
    assert found.on.units + found.off.units + found.in_both_arms <= len(units)
    assert found.on.known <= found.on.units
    assert round_trip(found) == found.as_dict()


def round_trip(report: Report) -> object:
    return json.loads(json.dumps(report.as_dict(), allow_nan=False))
