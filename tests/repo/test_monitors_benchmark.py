"""benchmarks/monitors.py measures what it says, on runs of our own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _monitors.measure import judge, row, troubles
from _monitors.plain import dead_steps, spoken
from _monitors.told import halves
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks_workbench.traces import RecordedRun

ROOT = Path(__file__).parents[2]
DEAD = st.lists(st.booleans(), max_size=40)


def step(name: str, output: str, argument: str = "x") -> Step:
    call = ToolCall(id="c", name=name, arguments={"input": argument})
    return Step(tool_calls=(call,), tool_results=(ToolResult(call_id="c", name=name, output=output),))


def flags(text: str) -> list[bool]:
    return [letter == "x" for letter in text]


# --- the plain rule


@pytest.mark.parametrize(
    ("steps", "dead"),
    [
        ([step("read", "a b c")] * 3, ".xx"),
        ([step("read", "a b c"), step("edit", "ok", "new"), step("read", "a b c")], "..."),
        ([step("read", "at 12:00:01 done"), step("read", "at 12:05:09 done")], ".x"),
        ([step("run", f"Error: no file {at}", str(at)) for at in range(3)], ".xx"),
        ([step("search", "no results", str(at)) for at in range(4)], "..xx"),
        ([step("look", "the same long answer to all of them, " * 4, str(at)) for at in range(4)], "..xx"),
        ([step("edit", "ok", str(at)) for at in range(4)], "...."),
        ([step("job_status", "running")] * 4, "...."),
    ],
)
def test_the_plain_rule_finds_dead_steps(steps: Sequence[Step], dead: str) -> None:
    assert dead_steps(steps) == flags(dead)


def test_the_plain_rule_speaks_apart_and_five_times_at_most() -> None:
    assert spoken([True] * 40, 4, 5) == [3, 6, 9, 12, 15]
    assert spoken(flags("xxx.xx..."), 4, 5) == [4]


# --- the measure


@given(DEAD)
def test_a_trouble_is_four_dead_of_six_and_ends_before_three_others(dead: list[bool]) -> None:
    found = troubles(dead)
    for first, last in found:
        assert dead[first]
        assert dead[last]
        assert sum(dead[first : first + 6]) >= 4
        assert not any(dead[last + 1 : last + 4])
    starts = [at for at in range(len(dead) - 5) if dead[at] and sum(dead[at : at + 6]) >= 4]
    assert all(any(first <= at <= last for first, last in found) for at in starts)


def test_interventions_are_judged_by_what_followed() -> None:
    dead = [flags("xxxx....x....."), flags("xxxxxxxxxx")]
    judged = judge(dead, [[3, 8], [4]], [True, False])
    assert (judged.judged, judged.needless, judged.told, judged.steps) == (3, 2, 3, 24)
    assert (judged.early, judged.ever, judged.delays) == (1, 2, [4, 5])
    assert (judged.failing, judged.successful) == (1.0, 1.0)


def test_a_trouble_without_a_word_is_never_told() -> None:
    judged = judge([flags("xxxxxx")], [[]], [None])
    assert (judged.ever, judged.delays, math.isnan(judged.failing)) == (0, [math.inf], True)
    assert row([judged])["in 5"] == "0.000"


# --- the command


def run(number: int) -> RecordedRun:
    return RecordedRun(run_id=f"r{number}", steps=(), usages=(), file="f", line=1, task=f"Task {number % 30}.")


def test_no_task_is_learned_from_and_measured() -> None:
    own, others = halves([run(number) for number in range(90)])
    assert len(own) + len(others) == 90
    assert {one.task for one in own}.isdisjoint({one.task for one in others})


def recorded(number: int) -> dict[str, object]:
    stuck = {"thought": "Again.", "action": "deploy", "action_input": "x", "observation": "Error: quota exceeded"}
    fine = [
        {"thought": "I look.", "action": "read", "action_input": str(at), "observation": f"file {at}"}
        for at in range(9)
    ]
    steps = [*fine[:2], *[stuck] * 8] if number % 2 else fine
    outcome = "failure" if number % 2 else "success"
    return {"run_id": f"r{number}", "source": "clerk", "task": f"Task {number}.", "outcome": outcome, "steps": steps}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, str]], Path]:
    folder = tmp_path_factory.mktemp("measured")
    path = folder / "clerk.jsonl"
    path.write_text("".join(json.dumps(recorded(number)) + "\n" for number in range(60)), encoding="utf-8")
    command = [sys.executable, str(ROOT / "benchmarks/monitors.py"), str(path), "--json", "--before", str(ROOT)]
    command += ["--moments", "2", "--out", str(folder / "moments")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()], folder


def test_each_rule_has_a_row(printed: tuple[list[dict[str, str]], Path]) -> None:
    rows = {one["rule"]: one for one in printed[0]}
    assert [*rows] == [
        "this build", "this build, 20 own runs", "this build, 50 own runs", "plain rule, 3 of 5", "plain rule, 4 of 5",
        "the build before",
    ]  # fmt: skip
    assert rows["this build"]["ever"] == "1.000"
    assert rows["this build"]["failing, successful"] == "1.000, 0.000"
    assert {**rows["the build before"], "rule": ""} == {**rows["this build"], "rule": ""}
    assert float(rows["this build, 20 own runs"]["early"]) >= float(rows["this build"]["early"])


def test_moments_are_written_without_who_would_speak(printed: tuple[list[dict[str, str]], Path]) -> None:
    moments, keys = (
        [json.loads(line) for line in (printed[1] / name).read_text(encoding="utf-8").splitlines()]
        for name in ("moments.jsonl", "moments.key.jsonl")
    )
    assert [one["id"] for one in moments] == [one["id"] for one in keys] == [*range(len(keys))]
    assert {*moments[0]} == {"id", "task", "before", "after"}
    for moment, key in zip(moments, keys, strict=True):
        assert moment["before"][-1]["step"] == str(key["step"])


def test_nothing_is_opened_that_is_closed(tmp_path: Path) -> None:
    (tmp_path / "vorflux.jsonl").mkdir()  # reading it would be an error
    command = [sys.executable, str(ROOT / "benchmarks/monitors.py"), str(tmp_path / "vorflux.jsonl"), "--open"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no recorded run of at least four steps was found" in done.stderr
