"""How much each monitor counts."""

from __future__ import annotations

import math

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors import MONITORS, WEIGHTS, resolve_weights


@pytest.mark.parametrize("profile", WEIGHTS)
def test_each_profile_sums_to_one(profile: str) -> None:
    assert math.isclose(sum(WEIGHTS[profile].values()), 1.0)


@pytest.mark.parametrize("profile", WEIGHTS)
def test_each_profile_has_a_weight_for_each_monitor(profile: str) -> None:
    assert list(WEIGHTS[profile]) == [row.name for row in MONITORS]


def test_given_weights_go_over_the_profile() -> None:
    assert resolve_weights("qa", {"semantic_loop": 0.9})["semantic_loop"] == 0.9


def test_a_negative_weight_is_zero() -> None:
    assert resolve_weights("qa", {"semantic_loop": -3})["semantic_loop"] == 0.0


def test_a_weight_over_one_is_one() -> None:
    assert resolve_weights("qa", {"semantic_loop": 7})["semantic_loop"] == 1.0


@pytest.mark.parametrize("weight", [float("nan"), True, "1"])
def test_a_weight_that_is_no_number_is_refused(weight: float) -> None:
    with pytest.raises(ConfigError, match="semantic_loop"):
        resolve_weights("qa", {"semantic_loop": weight})


def test_an_unknown_monitor_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'semantic_loop'"):
        resolve_weights("qa", {"semantic_lop": 1})


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigError, match="task_profile"):
        resolve_weights("codign")


def test_a_custom_monitor_weighs_nothing_unless_given() -> None:
    assert resolve_weights("qa", custom=["mine"])["mine"] == 0.0


def test_a_custom_monitor_weighs_what_is_given() -> None:
    assert resolve_weights("qa", {"mine": 0.4}, custom=["mine"])["mine"] == 0.4
