"""`reasonblocks calibrate`: recorded runs in, an agent's level of difficulty out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.engine.scoring import LEVEL_STEPS, calm_of, parts_of
from reasonblocks.monitors.calibration import SHIPPED_LEVEL, level_of
from reasonblocks.types import Step
from tests.workbench.cli.conftest import Command, Write

SAID = "I look at the next one of the files that the user has named, and compare it with the one before."


def record(number: int, **more: object) -> dict[str, object]:
    steps = [{"thought": f"{SAID} {at}"} for at in range(LEVEL_STEPS)]
    return {
        "run_id": f"r{number}",
        "task": f"List {number}.",
        "source": "clerk",
        "outcome": None,
        "steps": steps,
        **more,
    }


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "agent.toml"


def test_the_level_is_the_mean_of_the_first_steps_of_all_runs(command: Command, write: Write, out: Path) -> None:
    later = [{"thought": SAID * 50}] * 9
    first = record(0)
    assert isinstance(first["steps"], list)
    first["steps"] += later
    done = command("calibrate", write("a.jsonl", first, record(1)), "--out", str(out))
    assert (done.code, done.err) == (0, "")
    calm = [calm_of(parts_of(Step(thought=f"{SAID} {at}"))) for at in range(LEVEL_STEPS)]
    made = level_of(out)
    assert made.mean == pytest.approx(sum(calm) / len(calm), abs=1e-4)
    assert made.spread == SHIPPED_LEVEL.spread


def test_the_file_is_what_the_client_takes_and_says_of_what_it_was_made(
    command: Command, write: Write, out: Path
) -> None:
    command("calibrate", write("a.jsonl", *map(record, range(4)), record(4, steps=[])), "--out", str(out))
    assert out.read_text(encoding="utf-8").startswith("# Made by `reasonblocks calibrate`: 4 runs of clerk.\n\n")
    ReasonBlocks(calibration=out).session()


def test_with_json_it_prints_the_level_beside_the_shipped_one(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", *map(record, range(4))), "--out", str(out), "--json")
    told = json.loads(done.out)
    assert told == {
        "out": str(out),
        "runs": 4,
        "sources": ["clerk"],
        "difficulty_mean": {"calibrated": level_of(out).mean, "shipped": SHIPPED_LEVEL.mean},
    }


def test_the_file_may_go_to_stdout_alone(command: Command, write: Write, tmp_path: Path) -> None:
    done = command("calibrate", write("a.jsonl", record(0)), "--out", "-")
    assert "difficulty_mean = " in done.out
    refused = command("calibrate", write("a.jsonl", record(0)), "--out", "-", "--json")
    assert refused.code != 0
    assert "both would go to stdout" in refused.err


def test_runs_without_a_step_give_no_level(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", record(0, steps=[])), "--out", str(out))
    assert (done.code, done.err) == (1, "reasonblocks calibrate: no run with a step could be read\n")
    assert not out.exists()


def test_a_file_to_write_must_be_named(command: Command) -> None:
    done = command("calibrate", "runs.jsonl")
    assert done.code == 2
    assert "--out" in done.err


def test_one_run_is_not_called_runs(command: Command, write: Write, out: Path) -> None:
    done = command("calibrate", write("a.jsonl", record(0)), "--out", str(out))
    assert out.read_text(encoding="utf-8").startswith("# Made by `reasonblocks calibrate`: 1 run of clerk.\n\n")
    assert done.out.startswith(f"{out}: 1 run of clerk\n")
