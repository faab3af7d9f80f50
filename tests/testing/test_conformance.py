"""The hand-written loop passes the suite that every adapter has to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks_testing import ConformanceSuite, LoopHarness

pytest_plugins = ["pytester"]

SCENARIO = "test_history_stays_clean"
GOLDEN = Path(__file__).parents[1] / "golden"


class TestLoop(ConformanceSuite):
    harness = LoopHarness()
    golden_dir = GOLDEN


def test_an_overridden_scenario_is_refused() -> None:
    with pytest.raises(TypeError, match="overridden"):
        type("Sneaky", (ConformanceSuite,), {"harness": LoopHarness(), SCENARIO: lambda self: None})


def test_a_deleted_scenario_is_refused() -> None:
    with pytest.raises(TypeError, match="overridden"):
        type("Sneaky", (ConformanceSuite,), {"harness": LoopHarness(), SCENARIO: None})


def test_an_expected_failure_needs_a_reason() -> None:
    with pytest.raises(TypeError, match="reason"):
        type("Lazy", (ConformanceSuite,), {"harness": LoopHarness(), "expected_failures": {SCENARIO: ""}})


def test_a_mode_of_an_expected_failure_needs_a_reason() -> None:
    with pytest.raises(TypeError, match="reason"):
        type("Lazy", (ConformanceSuite,), {"harness": LoopHarness(), "expected_failures": {f"{SCENARIO}[sync]": ""}})


GOLDEN_RUNS = "test_golden_runs_decide_as_written"
UNKNOWN = {
    "test_of_nothing": f"{SCENARIO}, ",
    "test_of_nothing[sync]": f"{SCENARIO}, ",
    f"{SCENARIO}[stream]": rf"there is {SCENARIO}\[sync\], {SCENARIO}\[async\]$",
    f"{SCENARIO}[slow]": rf"there is {SCENARIO}\[sync\], ",
    f"{SCENARIO}[sync": rf"there is {SCENARIO}\[sync\], ",
    f"{GOLDEN_RUNS}[slowly]": rf"{GOLDEN_RUNS}\[slow\], ",
    f"{GOLDEN_RUNS}[slow-stream]": rf"{GOLDEN_RUNS}\[slow-sync\], ",
    "test_a_cancelled_run_tells_what_it_did[sync]": "neither modes nor golden runs",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_expected_failure_of_what_is_not_there_is_refused_with_the_names_that_are(name: str) -> None:
    given = {"harness": LoopHarness(), "golden_dir": TestLoop.golden_dir, "expected_failures": {name: "cannot"}}
    with pytest.raises(TypeError, match=UNKNOWN[name]):
        type("Mistaken", (ConformanceSuite,), given)


def test_a_golden_run_is_no_expected_failure_where_there_are_none() -> None:
    given = {"harness": LoopHarness(), "expected_failures": {f"{GOLDEN_RUNS}[slow]": "cannot"}}
    with pytest.raises(TypeError, match=r"\[sync\]"):
        type("Mistaken", (ConformanceSuite,), given)


DECLARED = {
    "test_history_stays_clean[async]": {"test_history_stays_clean[async]"},
    "test_history_stays_clean": {"test_history_stays_clean[sync]", "test_history_stays_clean[async]"},
    f"{GOLDEN_RUNS}[slow]": {f"{GOLDEN_RUNS}[slow-sync]", f"{GOLDEN_RUNS}[slow-async]"},
    f"{GOLDEN_RUNS}[slow-sync]": {f"{GOLDEN_RUNS}[slow-sync]"},
    f"{GOLDEN_RUNS}[sync]": {f"{GOLDEN_RUNS}[slow-sync]", f"{GOLDEN_RUNS}[fast-sync]"},
}
SUITES = f"""
from pathlib import Path
from reasonblocks_testing import ConformanceSuite, LoopHarness

for at, name in enumerate({list(DECLARED)!r}):
    class TestDeclared(ConformanceSuite):
        harness = LoopHarness()
        golden_dir = Path("golden").resolve()
        expected_failures = {{name: "it passes after all"}}
    globals()[f"Test{{at}}"] = TestDeclared
del TestDeclared
"""


def test_an_expected_failure_is_that_of_its_mode_and_golden_run_alone(pytester: pytest.Pytester) -> None:
    """The loop passes everything, so each cell that is declared fails, as strict, and no other."""
    golden = pytester.mkdir("golden")
    for run in ("slow", "fast"):
        (golden / f"{run}.jsonl").write_bytes((GOLDEN / f"{run}.jsonl").read_bytes())
    pytester.makepyfile(test_declared=SUITES)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "stays_clean or golden")
    failures = [report.nodeid.split("::")[1:] for report in done.reprec.getfailures()]  # type: ignore[attr-defined]
    for at, (name, cells) in enumerate(DECLARED.items()):
        assert {test for suite, test in failures if suite == f"Test{at}"} == cells, name
    done.assert_outcomes(passed=6 * len(DECLARED) - len(failures), failed=len(failures))


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
