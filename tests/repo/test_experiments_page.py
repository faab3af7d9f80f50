"""The examples of docs/experiments.md run, and its numbers are those of the code and of a simulation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.events import RunFinish
from reasonblocks.options import run as run_options
from reasonblocks_server import experiments
from reasonblocks_workbench.traces import RunLog, read_logs

PAGE = (Path(__file__).parents[2] / "docs/experiments.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PLANNED = [
    (int(share) / 100, int(units.replace(",", "")))
    for share, units in re.findall(r"^\| (\d+) % \| ([\d,]+) \|$", PAGE, re.MULTILINE)
]


def run(number: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    """Run an example in a folder, close its client, and return its names."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), names)
    names["rb"].close()
    return names


def test_the_example_of_an_experiment_prints_the_arm_and_records_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run(0, monkeypatch, tmp_path)
    arm = names["session"].run.metadata["arm"]
    assert capsys.readouterr().out == f"{run_options.MODES[arm]} {arm}\n"
    (log,) = read_logs(str(tmp_path / "runs.jsonl"))
    assert isinstance(log, RunLog)
    assert log.start is not None
    assert {*run_options.RESERVED} <= {*log.start.run.metadata}


def test_the_example_of_an_outcome_records_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(1, monkeypatch, tmp_path)
    assert capsys.readouterr().out == "failure: the tests still fail\n"
    (log,) = read_logs(str(tmp_path / "runs.jsonl"))
    assert isinstance(log, RunLog)
    assert isinstance(log.finish, RunFinish)
    assert log.finish.outcome == "failure: the tests still fail"


def test_its_numbers_are_those_of_the_code() -> None:
    numbers = (run_options.ID_BYTES, run_options.DEFAULT_FRACTION, experiments.MIN_UNITS, experiments.BROKEN_BELOW)
    assert numbers == (200, 0.5, 30, 0.001)
    for words in ("up to 200 bytes", "0.5 by default", "fewer than 30 units", "p < 0.001"):
        assert words in PAGE


def chances(success: float, units: int) -> list[float]:
    """The probability of each number of successes."""
    found = [0.0] * (units + 1)
    found[0] = 1.0
    for done in range(units):
        for wins in range(done + 1, -1, -1):
            found[wins] = found[wins] * (1 - success) + (found[wins - 1] * success if wins else 0.0)
    return found


@pytest.mark.parametrize(("success", "units"), PLANNED[:2])
def test_so_many_units_find_the_effect_four_times_in_five(success: float, units: int) -> None:
    """Exactly: the sum over all pairs of counts with a chance worth counting."""
    steered, observed = chances(success, units), chances(0.6, units)
    intervals = [experiments.wilson(wins / units, units) for wins in range(units + 1)]
    power = sum(
        one * other
        for wins, one in enumerate(steered) if one > 1e-6
        for losses, other in enumerate(observed) if other > 1e-6
        and experiments.newcombe(intervals[wins], intervals[losses]).low > 0
    )  # fmt: skip
    assert power == pytest.approx(0.8, abs=0.02)


def test_three_plans_are_listed() -> None:
    assert [share for share, _ in PLANNED] == [0.8, 0.7, 0.65]
