"""`reasonblocks calibrate`: recorded runs in, an agent's calibration out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.util.files import loads
from reasonblocks_workbench.calibration import calibration_of

Command = Callable[..., Any]
Write = Callable[..., str]


def step(observation: str, **more: object) -> dict[str, object]:
    return {"thought": "I look.", "action": "ls", "action_input": observation, "observation": observation, **more}


def record(number: int, outcome: str | None) -> dict[str, object]:
    """A run that repeats itself if it fails."""
    failing = str(outcome).startswith("failure")
    steps = [step("there is nothing" if failing else f"file {number}-{index}") for index in range(8)]
    return {"run_id": f"r{number}", "task": f"List {number}.", "outcome": outcome, "steps": steps}


def records(runs: int) -> list[dict[str, object]]:
    return [record(number, "failure: Timeout" if number % 2 else "success") for number in range(runs)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "agent.toml"


def test_the_file_is_what_the_client_takes(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", *records(40)), "--out", str(out))
    assert (done.code, done.err) == (0, "")
    ReasonBlocks(calibration=out).session()
    assert calibration_of(out) != calibration_of(None)


def test_the_header_says_of_what_it_was_made_and_what_it_is_worth(command: Command, write: Write, out: Path) -> None:
    command("calibrate", write("a.jsonl", *records(40), record(40, None), {**record(41, "success"), "steps": []}),
            "--out", str(out))  # fmt: skip
    head = out.read_text(encoding="utf-8").partition("\n\n")[0]
    for said in (
        "40 runs, 20 failed",
        "level of difficulty alone: 1",
        "no step: 1",
        "8.5%",
        "calibrated",
        "shipped",
        "# match ",
    ):
        assert said in head


def test_runs_without_an_outcome_are_counted_beside_those_with_one(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", *records(40), record(40, "gave up")), "--out", str(out))
    said = "reasonblocks calibrate: of unknown outcome, used for the level of difficulty alone: 1\n"
    assert (done.code, done.err) == (0, said)


def test_runs_without_any_outcome_give_thresholds_and_a_level(command: Command, write: Write, out: Path) -> None:
    unlabelled = [{**one, "outcome": None} for one in records(40)]
    done = command("calibrate", write("a.jsonl", *unlabelled), "--out", str(out))
    assert (done.code, done.err) == (0, "")
    made, shipped = calibration_of(out), calibration_of(None)
    assert made.evidence == shipped.evidence
    assert made.level.mean != shipped.level.mean
    assert made.fires["semantic_loop"] > shipped.fires["semantic_loop"], "half of the runs loop: it is usual here"


def test_the_header_of_a_fit_without_outcomes_says_how_often_it_alarms(
    command: Command, write: Write, out: Path
) -> None:
    unlabelled = [{**one, "outcome": None} for one in records(40)]
    (found,) = command("calibrate", write("a.jsonl", *unlabelled), "--out", str(out), "--json").objects
    assert (found["runs"], found["calibrated"]["flagged"], found["shipped"]["flagged"]) == (40, 0.5, 0.5)
    assert "40 runs, all of unknown outcome" in out.read_text(encoding="utf-8")


def test_what_is_malformed_is_said_and_left_out(command: Command, write: Write, out: Path) -> None:
    path = write("a.jsonl", *records(40), '{"steps": 5}')
    done = command("calibrate", path, "--out", str(out))
    assert done.code == 0
    assert done.err.startswith(f"{path}:41: steps: ")


def test_a_dash_prints_the_file_alone(command: Command, write: Write) -> None:
    done = command("calibrate", write("a.jsonl", *records(40)), "--out", "-")
    keys = {"difficulty_mean", "difficulty_spread", "composite_fires", "fires", "evidence", "persistence"}
    assert set(loads(done.out)) == keys


def test_json_is_one_object(command: Command, write: Write, out: Path) -> None:
    (found,) = command("calibrate", write("a.jsonl", *records(40)), "--out", str(out), "--json").objects
    assert (found["runs"], found["failed"], found["left_out"]) == (40, 20, {})
    assert len(found["calibrated"]["match"]) == len(found["shipped"]["match"]) == 3


def test_json_has_the_number_of_runs_with_an_unknown_outcome(command: Command, write: Write, out: Path) -> None:
    runs = [*records(40), record(40, "gave up"), record(41, None)]
    (found,) = command("calibrate", write("a.jsonl", *runs), "--out", str(out), "--json").objects
    assert (found["runs"], found["unknown_outcomes"]) == (40, 2)


def test_json_needs_a_file_beside_it(command: Command, write: Write) -> None:
    done = command("calibrate", write("a.jsonl", *records(40)), "--out", "-", "--json")
    assert (done.code, done.out) == (2, "")
    assert "--out" in done.err


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (records(29), "at least 30 finished runs"),
        ([record(number, "success") for number in range(40)], "at least 5 failures"),
        ([record(number, None) for number in range(29)], "at least 30 runs"),
    ],
    ids=["too few", "one outcome", "too few without an outcome"],
)
def test_runs_that_nothing_can_be_fitted_to_are_refused(
    given: list[dict[str, object]], why: str, command: Command, write: Write, out: Path
) -> None:
    done = command("calibrate", write("a.jsonl", *given), "--out", str(out))
    assert (done.code, done.out, out.exists()) == (2, "", False)
    assert why in done.err.splitlines()[-1]


def test_a_file_without_runs_is_a_problem(command: Command, out: Path) -> None:
    done = command("calibrate", "/missing/runs.jsonl", "--out", str(out))
    assert done.code == 1
    assert done.err.endswith("reasonblocks calibrate: no run could be read\n")


def test_a_share_of_false_alarms_beyond_1_is_refused(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", *records(40)), "--out", str(out), "--false-alarms", "8.5")
    assert done.code == 2
    assert "false_alarms=8.5" in done.err


def test_a_role_that_is_none_is_refused(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", *records(40)), "--out", str(out), "--tool-role", "ls=raed")
    assert done.code == 2
    assert "did you mean 'read'" in done.err


def test_the_same_runs_give_the_same_file(command: Command, write: Write) -> None:
    path = write("a.jsonl", *records(40))
    assert command("calibrate", path, "--out", "-").out == command("calibrate", path, "--out", "-").out
