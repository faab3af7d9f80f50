"""How much each monitor counts."""

from __future__ import annotations

import math

import pytest

from reasonblocks.monitors import MONITORS, WEIGHTS, resolve_weights


@pytest.mark.parametrize("profile", WEIGHTS)
def test_each_profile_sums_to_one(profile: str) -> None:
    assert math.isclose(sum(WEIGHTS[profile].values()), 1.0)


@pytest.mark.parametrize("profile", WEIGHTS)
def test_each_profile_has_a_weight_for_each_monitor(profile: str) -> None:
    assert list(WEIGHTS[profile]) == [row.name for row in MONITORS]


def test_a_custom_monitor_weighs_nothing_unless_given() -> None:
    assert resolve_weights("qa", custom=["mine"])["mine"] == 0.0
