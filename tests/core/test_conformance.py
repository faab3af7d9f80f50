"""The hand-written loop passes the suite that every adapter has to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks.testing import ConformanceSuite, LoopHarness

SCENARIO = "test_history_stays_clean"


class TestLoop(ConformanceSuite):
    harness = LoopHarness()
    golden_dir = Path(__file__).parents[1] / "golden"


def test_an_overridden_scenario_is_refused() -> None:
    with pytest.raises(TypeError, match="overridden"):
        type("Sneaky", (ConformanceSuite,), {"harness": LoopHarness(), SCENARIO: lambda self: None})


def test_a_deleted_scenario_is_refused() -> None:
    with pytest.raises(TypeError, match="overridden"):
        type("Sneaky", (ConformanceSuite,), {"harness": LoopHarness(), SCENARIO: None})


def test_an_expected_failure_needs_a_reason() -> None:
    with pytest.raises(TypeError, match="reason"):
        type("Lazy", (ConformanceSuite,), {"harness": LoopHarness(), "expected_failures": {SCENARIO: ""}})


def test_a_few_runs_are_not_many_at_once() -> None:
    with pytest.raises(TypeError, match="at_once of 8 or more"):
        type("Lone", (ConformanceSuite,), {"harness": LoopHarness(), "at_once": 7})


def test_a_folder_without_golden_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="holds no golden runs"):
        type("Elsewhere", (ConformanceSuite,), {"harness": LoopHarness(), "golden_dir": tmp_path})


def test_a_suite_without_modes_is_refused() -> None:
    class Idle(LoopHarness):
        modes = ()

    with pytest.raises(TypeError, match="modes"):
        type("Idling", (ConformanceSuite,), {"harness": Idle()})
