"""The rules of patterns that every store stands on: curves and their way back, and what a changed pattern becomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import Curve, checked, revised
from reasonblocks.types import Pattern, evolve

NOW = "2026-01-01T00:00:00+00:00"
LESSON = Pattern(id="a", tier="e2", exemplars=("text",), created_at=NOW)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Any curve, flat and steep parts among them."""
    count = draw(st.integers(2, 5))
    cosines = draw(st.lists(st.integers(-100, 100), min_size=count, max_size=count, unique=True))
    worth = draw(st.lists(st.integers(0, 20), min_size=count, max_size=count))
    return Curve(tuple((one / 100, other / 20) for one, other in zip(sorted(cosines), sorted(worth))))


@given(curves(), st.floats(-1, 1), st.floats(0, 1))
def test_what_is_worth_enough_is_within_reach(curve: Curve, cosine: float, similarity: float) -> None:
    assert curve(cosine) < similarity or cosine >= curve.reach(similarity) - 1e-9


@given(curves(), st.floats(0, 1))
def test_what_is_well_beyond_reach_is_worth_enough(curve: Curve, similarity: float) -> None:
    reach = curve.reach(similarity)
    assert reach in (float("inf"), float("-inf")) or curve(reach) >= similarity - 2e-4


@given(curves(), st.floats(-1, 1), st.floats(-1, 1))
def test_a_nearer_text_is_never_worth_less(curve: Curve, one: float, other: float) -> None:
    assert curve(min(one, other)) <= curve(max(one, other))


def test_a_new_pattern_gets_its_time_and_keeps_one_that_it_has() -> None:
    later = "2030-01-01T00:00:00+00:00"
    new = evolve(LESSON, created_at=None)
    assert (revised(new, None, later).created_at, revised(LESSON, None, later).created_at) == (later, NOW)


def test_the_same_pattern_again_changes_nothing() -> None:
    stored = evolve(LESSON, revision=4, stats={"injected": 2})
    assert revised(evolve(LESSON, created_at=None), stored, "later") == stored


def test_a_different_one_is_the_next_revision_and_is_not_judged_by_the_old_counts() -> None:
    stored = evolve(LESSON, revision=4, stats={"not_recovered": 9})
    new = revised(evolve(LESSON, exemplars=("other",), created_at=None), stored, "later")
    assert (new.revision, new.stats, new.created_at) == (5, {}, NOW)


def test_counts_that_are_brought_along_are_taken() -> None:
    stored = evolve(LESSON, stats={"injected": 2})
    assert revised(evolve(LESSON, stats={"injected": 7}), stored, "later").stats == {"injected": 7}


@pytest.mark.parametrize(
    "wrong",
    [
        {"org_id": ""},
        {"org_id": 3},
        {"failure_type": ""},
        {"fields": {"a": float("nan")}},
        {"fields": {"a": object()}},
        {"fields": {1: "a"}},
        {"gate_threshold": float("nan")},
        {"gate_threshold": 10**400},
    ],
)
def test_what_no_store_can_keep_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="pattern 'a'"):
        checked(evolve(LESSON, **wrong))
