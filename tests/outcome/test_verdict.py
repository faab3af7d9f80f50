"""A verdict is given where the evidence suffices, and says what is missing where it does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from _outcome.rows import Row
from _outcome.verdict import ALL, Verdict, as_text, verdicts

from tests.outcome.made import branches, drawn, shadow

ARM = "a@tail"
LOST, WON = {"off": [0, 0], ARM: [0, 0]}, {"off": [1, 1], ARM: [1, 1]}
HELPED, HARMED = {"off": [0, 0], ARM: [1, 1]}, {"off": [1, 1], ARM: [0, 0]}


def by_scope(rows: Sequence[Row]) -> dict[str, Verdict]:
    return {found.scope: found for found in verdicts(rows, boot=400)}


def text(found: Verdict) -> str:
    return "\n".join(as_text(found))


def test_an_arm_that_wins_more_is_to_be_used() -> None:
    rows = branches("house", [HELPED] * 10 + [LOST] * 10)
    found = by_scope(rows)
    assert {scope: one.decision for scope, one in found.items()} == {ALL: "steer", "house": "steer"}
    assert text(found[ALL]).startswith(f"small through loop, {ARM}, all families: Steer this agent here.")
    assert "+50.0 percentage points [" in text(found[ALL])
    assert "It wins 50% [" in text(found[ALL])
    assert "by chance alone a second try wins 0% [" in text(found[ALL])
    assert "It loses an unknown share of the runs that are won without steering" in text(found[ALL])
    assert found[ALL].further_tasks is None


def test_an_arm_that_does_harm_is_not() -> None:
    found = by_scope(branches("house", [HARMED] * 10 + [WON] * 10))
    assert found["house"].decision == "observe"
    assert "Do not steer this agent here" in text(found["house"])
    assert "It does harm in: house." in text(found[ALL])


def test_harm_in_one_family_is_named_beside_help_in_all() -> None:
    rows = branches("house", [HELPED] * 20) + branches("hunt", [HARMED] * 8 + [WON] * 22)
    found = by_scope(rows)
    assert (found[ALL].decision, found["hunt"].decision, found[ALL].harmed) == ("steer", "observe", ("hunt",))


def test_no_difference_is_shown_where_the_interval_contains_zero() -> None:
    found = by_scope(branches("house", [HELPED] * 6 + [HARMED] * 4 + [LOST] * 10))["house"]
    assert found.decision == "undecided"
    assert found.further_points is not None
    assert found.further_points > 100
    assert "No difference is shown yet" in text(found)
    assert "further tasks" in text(found)


def test_an_interval_that_rests_on_four_points_is_not_enough() -> None:
    found = by_scope(branches("house", [HELPED] * 5 + [LOST] * 45))["house"]
    assert found.advantage.low > 0
    assert found.p > 0.05
    assert found.decision == "undecided"


@pytest.mark.parametrize("points", [1, 4])
def test_four_points_of_a_family_are_never_enough(points: int) -> None:
    found = by_scope(branches("house", [HELPED] * points))
    assert {one.decision for one in found.values()} == {"undecided"}
    assert found["house"].further_points == 6 - points


def test_what_is_forecast_is_enough_if_as_many_points_change() -> None:
    """Five changed points of six reach p = .0625 at best: a sixth one has to change."""
    found = by_scope(branches("house", [HELPED] * 5 + [LOST]))["house"]
    assert (found.decision, found.further_points) == ("undecided", 2)
    assert "about 2 further tasks (2 branch points) would settle it" in text(found)
    assert by_scope(branches("house", [HELPED] * 6 + [LOST] * 2))["house"].decision == "steer"
    assert "about 1 further task (1 branch point) would" in text(by_scope(branches("house", [HARMED] * 5))["house"])


def test_nothing_is_forecast_of_no_effect() -> None:
    found = by_scope(branches("house", [LOST] * 3))["house"]
    assert found.further_points is None
    assert text(found).endswith("would settle it is not known yet, as no effect is seen.")


def test_the_failure_rate_has_to_be_above_the_break_even_rate() -> None:
    """r = 1, d = 1/3: above a failure rate of 1/4. Of the runs that are spoken into, one in ten fails."""
    rows = branches("house", [HELPED] * 28 + [HARMED] * 4 + [WON] * 8)
    seldom = [shadow("house", seed, won=seed % 10 != 0) for seed in range(40)]
    often = [shadow("house", seed, won=seed % 10 == 0) for seed in range(40)]
    assert by_scope([*rows, *often])["house"].decision == "steer"
    found = by_scope([*rows, *seldom])["house"]
    assert found.decision == "undecided"
    assert found.break_even is not None
    assert found.failure is not None
    assert found.break_even.point == pytest.approx(0.25)
    assert found.failure.point == 0.1
    assert "the failure rate is not above the break-even rate" in text(found)


def test_further_tasks_are_more_than_points_where_few_tasks_have_a_point() -> None:
    rows = branches("house", [HELPED] * 6 + [HARMED] * 4 + [LOST] * 10)
    shadows = [shadow("house", seed, point=3 if seed < 20 else None) for seed in range(80)]
    found = by_scope([*rows, *shadows])["house"]
    assert found.further_points is not None
    assert found.further_tasks == 4 * found.further_points


def test_whole_runs_are_judged_where_there_are_no_branches() -> None:
    whole = [replace(row, phase="whole", point=None) for row in branches("house", [HELPED] * 15 + [WON] * 5)]
    found = by_scope(whole)["house"]
    assert found.decision == "steer"
    assert found.failure is not None
    assert found.failure.point == 0.75


def test_an_arm_without_effect_is_seldom_judged() -> None:
    chances = {"off": 0.3, ARM: 0.3}
    decided = [by_scope(drawn(20, chances, seed=seed))["house"].decision != "undecided" for seed in range(40)]
    assert sum(decided) <= 5


def test_a_verdict_is_json() -> None:
    for found in verdicts(branches("house", [LOST] * 6), boot=20):
        assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["disruption"] == [None, None, None]


def test_an_arm_without_runs_of_off_at_its_points_has_no_verdict() -> None:
    assert by_scope([row for row in branches("house", [HELPED] * 6) if row.arm == ARM]) == {}
