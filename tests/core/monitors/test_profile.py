"""What an agent's finished runs say of the patience that the next one has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.monitors.profile import (
    Summary,
    explores,
    parse_patience,
    patience_of,
    summary_in,
    summary_of,
    totals_of,
)
from reasonblocks.types import Account, Patience, TraceState
from reasonblocks.types.account import Check, Count

COUNTS = st.lists(st.integers(0, 40), min_size=7, max_size=7)


def run(reached: int, needless: int, *, checks: bool = False) -> Summary:
    return {"reached": [reached] * 7, "needless": [needless] * 7, "checks": checks}


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=12))
def test_the_rung_is_the_least_patient_one_whose_share_is_within_the_goal(
    runs: list[tuple[list[int], list[int]]],
) -> None:
    summaries: list[Summary] = [
        {"reached": reached, "needless": [min(pair) for pair in zip(reached, needless, strict=True)], "checks": False}
        for reached, needless in runs
    ]
    totals = totals_of(summaries)
    names = ("2 of 3", "3 of 5", "3 of 3", "4 of 5", "5 of 6", "6 of 7", "8 of 9")
    priors = (0.5, 0.4, 0.4, 0.3, 0.25, 0.2, 0.15)
    within = [
        name
        for name, prior, (reached, needless) in zip(names, priors, totals, strict=True)
        if (needless + 5 * prior) / (reached + 5) <= 0.3
    ]
    enough = max(reached for reached, _ in totals) >= 8
    expected = "4 of 5" if not enough else within[0] if within else ""
    assert patience_of(summaries).rung == expected


def test_the_name_says_where_the_patience_comes_from() -> None:
    assert patience_of([]).name == "shipped"
    assert patience_of([run(1, 0)] * 7).name == "shipped"
    assert patience_of([run(1, 0)] * 8).name == "own: 2 of 3, 8 runs"
    assert patience_of([run(9, 9)] * 9).name == "own: silent, 9 runs"
    assert parse_patience("3 of 5") == Patience(rung="3 of 5", name="patience: 3 of 5")


def test_a_share_of_the_runs_of_an_agent_with_a_profile_explores() -> None:
    runs = [run(2, 1)] * 8
    chosen = [patience_of(runs, f"run {at}", 0.25) for at in range(400)]
    share = sum(map(explores, chosen)) / 400
    assert 0.18 < share < 0.32
    assert {one.rung for one in chosen if explores(one)} == {""}
    assert [patience_of(runs, f"run {at}", 0.25) for at in range(400)] == chosen
    assert not any(explores(patience_of([], f"run {at}", 1.0)) for at in range(9))
    assert explores(patience_of(runs, "any", 1.0))
    assert not explores(patience_of([run(9, 9)] * 9))


def test_one_run_that_checked_something_lets_the_end_of_the_next_be_doubted() -> None:
    assert not patience_of([run(0, 0)]).checks
    assert patience_of([run(0, 0), run(0, 0, checks=True)]).checks


def test_a_run_is_summed_up_in_counts_and_nothing_of_its_text() -> None:
    counts = tuple([Count(reached=at, needless=at // 2) for at in range(7)])
    check = Check(step=1, call=2, line=3, failed=False)
    lived = TraceState(trace_id="t", patience=Patience(counts=counts), account=Account(check=check))
    assert summary_of(lived) == {"reached": [0, 1, 2, 3, 4, 5, 6], "needless": [0, 0, 1, 1, 2, 2, 3], "checks": True}
    assert summary_of(TraceState(trace_id="t")) == {}


@given(COUNTS, st.booleans())
def test_a_stored_summary_is_read_as_it_was_written(counts: list[int], checks: bool) -> None:
    summary: Summary = {"reached": counts, "needless": counts, "checks": checks}
    assert summary_in(summary) == summary


@pytest.mark.parametrize(
    "given",
    [
        None, 5, {}, {"levels": [0.3]}, {**run(1, 0), "reached": [1] * 6}, {**run(1, 0), "needless": [-1] * 7},
        {**run(1, 0), "reached": [True] * 7}, {**run(1, 0), "checks": 1}, {**run(1, 0), "reached": [10**9] * 7},
        {**run(1, 0), "reached": "1111111"},
    ],
)  # fmt: skip
def test_what_is_no_summary_is_none(given: object) -> None:
    assert summary_in(given) is None
