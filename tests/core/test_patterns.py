"""The rules of patterns that every store stands on: curves and their way back, and what a changed pattern becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors import MONITORS
from reasonblocks.monitors.kinds import KINDS, TYPES
from reasonblocks.patterns import Curve, best, check_pattern, fits, pattern_of, revise_pattern, standing, visible
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, Pattern

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
    new = replace(LESSON, created_at=None)
    assert (revise_pattern(new, None, later).created_at, revise_pattern(LESSON, None, later).created_at) == (later, NOW)


def test_the_same_pattern_again_changes_nothing() -> None:
    stored = replace(LESSON, revision=4, stats={"injected": 2})
    assert revise_pattern(replace(LESSON, created_at=None), stored, "later") == stored


def test_a_different_one_is_the_next_revision_and_is_not_judged_by_the_old_counts() -> None:
    stored = replace(LESSON, revision=4, stats={"not_recovered": 9})
    new = revise_pattern(replace(LESSON, exemplars=("other",), created_at=None), stored, "later")
    assert (new.revision, new.stats, new.created_at) == (5, {}, NOW)


def test_counts_that_are_brought_along_are_taken() -> None:
    stored = replace(LESSON, stats={"injected": 2})
    assert revise_pattern(replace(LESSON, stats={"injected": 7}), stored, "later").stats == {"injected": 7}


@pytest.mark.parametrize(
    "wrong",
    [
        {"org_id": ""},
        {"org_id": 3},
        {"failure_type": ""},
        {"fields": {"a": float("nan")}},
        {"fields": {"a": object()}},
        {"fields": {1: "a"}},
        {"requires_signal": True},
        {"requires_signal": True, "tier": "e3", "failure_type": "loop"},
        {"tier": "e1"},
        {"kinds": ["waiting"]},
        {"kinds": ("",)},
        {"kinds": (3,)},
        {"kinds": ("waiting",) * 33},
        {"kinds": ("waiting",), "tier": "e3"},
        {"gate_threshold": 1.1},
        {"gate_threshold": True},
        {"exemplars": ("text",) * 33},
        {"gate_threshold": float("nan")},
        {"gate_threshold": 10**400},
    ],
)
def test_what_no_store_can_keep_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="pattern 'a'"):
        check_pattern(replace(LESSON, **wrong))


def test_a_kind_that_no_monitor_has_is_kept_and_fits_no_finding() -> None:
    pattern = pattern_of({"id": "a", "tier": "e2", "exemplars": ["text"], "kinds": ["of-next-year"]})
    assert (pattern.kinds, [kind for kind in TYPES if fits(pattern, kind)]) == (("of-next-year",), [])


def test_no_two_failure_types_share_a_kind() -> None:
    assert len(TYPES) == sum(map(len, KINDS.values()))


def test_every_built_in_monitor_has_kinds() -> None:
    only_scored = {"sprawl", "drift"}
    assert set(KINDS) == {row.failure_type for row in MONITORS} - only_scored


ASKED = Retrieve(tier="e2", texts=("text",), top_k=2, similarity=0.7, org_id="acme", failure_type=None, model="")
LOOP: dict[str, Any] = {"failure_type": "loop"}


@pytest.mark.parametrize(
    ("stored", "asked", "seen"),
    [
        ({}, {}, True),
        ({"tier": "e3"}, {}, False),
        ({"off": True}, {}, False),
        ({"org_id": "acme"}, {}, True),
        ({"org_id": "other"}, {}, False),
        ({"tier": "e1", "org_id": "acme"}, {"tier": "e1"}, True),
        ({"tier": "e1"}, {"tier": "e1"}, False),
        (LOOP, {}, True),
        (LOOP, LOOP, True),
        ({}, LOOP, True),
        ({"failure_type": "drift"}, LOOP, False),
        ({**LOOP, "requires_signal": True}, {}, False),
        ({**LOOP, "requires_signal": True}, LOOP, True),
        ({"failure_type": "drift", "requires_signal": True}, LOOP, False),
        ({"kinds": ("waiting",)}, {}, True),
        ({"kinds": ("repeat", "waiting")}, {"kind": "waiting"}, True),
        ({"kinds": ("waiting",)}, {"kind": "unmoved"}, False),
        ({}, {"kind": "unmoved"}, True),
        ({**LOOP, "kinds": ("waiting",)}, {"failure_type": "drift", "kind": "waiting"}, False),
    ],
)
def test_who_sees_a_pattern(stored: dict[str, Any], asked: dict[str, Any], seen: bool) -> None:
    assert visible(replace(LESSON, **stored), replace(ASKED, **asked)) is seen


def _found(name: str, similarity: float, **changes: Any) -> ETrace:
    return ETrace(pattern=replace(LESSON, id=name, **changes), similarity=similarity)


def _passing(*found: ETrace) -> list[str]:
    return [trace.pattern.id for trace in best(found, ASKED)]


@pytest.mark.parametrize(
    ("traces", "passing"),
    [
        ([_found("a", 0.7), _found("b", 0.6999)], ["a"]),
        ([_found("high", 0.9, gate_threshold=0.95), _found("low", 0.2, gate_threshold=0.1)], ["low"]),
        ([_found("a", 0.0, gate_threshold=0.0)], ["a"]),
        ([_found("c", 0.8), _found("b", 0.8), _found("a", 0.75)], ["b", "c"]),
    ],
    ids=["as high as the gate", "a gate of its own goes first", "zero is a gate", "the best, and equals by id"],
)
def test_what_passes_the_gate_comes_by_similarity(traces: list[ETrace], passing: list[str]) -> None:
    assert _passing(*traces) == passing


@pytest.mark.parametrize(
    ("recovered", "not_recovered", "order"), [(0, 4, "ab"), (0, 5, "ba"), (1, 4, "ba"), (2, 6, "ab"), (1, 3, "ab")]
)
def test_a_pattern_is_last_after_five_judgements_of_which_fewer_than_a_quarter_are_good(
    recovered: int, not_recovered: int, order: str
) -> None:
    stats = {"recovered": recovered, "not_recovered": not_recovered}
    assert _passing(_found("a", 0.9, stats=stats), _found("b", 0.7)) == list(order)


def test_standing_rules_come_by_id_those_that_do_not_help_last() -> None:
    rules = [replace(LESSON, id=name, tier="e3") for name in "cb"]
    useless = replace(LESSON, id="a", tier="e3", stats={"not_recovered": 9})
    given_ = standing([useless, *rules], replace(ASKED, tier="e3", top_k=9))
    assert [trace.pattern.id for trace in given_] == ["b", "c", "a"]
