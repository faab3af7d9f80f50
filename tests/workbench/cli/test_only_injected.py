"""`replay --only-injected`: the runs in which steering intervenes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workbench.cli.conftest import Command, Write

LOOK = {"thought": "I look at the file.", "action": "ls", "action_input": ".", "observation": "a.py"}
FAILED = {
    "thought": "I run it again.",
    "action": "run",
    "action_input": "x",
    "observation": "Error: no such module",
    "is_error": True,
}


def looping(run_id: str, steps: int = 12) -> dict[str, object]:
    return {"run_id": run_id, "outcome": "failure", "steps": [FAILED] * steps}


def fine(run_id: str) -> dict[str, object]:
    return {"run_id": run_id, "outcome": "success", "steps": [LOOK]}


@pytest.fixture
def path(write: Write) -> str:
    """A file of three runs that loop and two that do not."""
    return write("a.jsonl", fine("f-0"), looping("l-0"), fine("f-1"), looping("l-1"), looping("l-2", 6))


def test_a_run_has_its_outcome_its_first_text_and_why(command: Command, path: str) -> None:
    lines = command("replay", path, "--only-injected").out.splitlines()
    assert lines[0] == "l-0  failure  once after step 4 of 12: loop (semantic_loop 0.80)"
    assert lines[1].strip("| ┃").startswith("run(input=")


def test_runs_without_an_intervention_are_only_counted(command: Command, path: str) -> None:
    out = command("replay", path, "--only-injected").out
    assert [name for name in ("f-0", "f-1") if name in out] == []
    assert out.splitlines()[-1] == "3 interventions in 3 of 5 runs read"


def test_standing_rules_do_not_count(command: Command, write: Write) -> None:
    done = command("replay", write("a.jsonl", fine("f-0")), "--only-injected")
    assert (done.code, done.out) == (0, "no intervention in 1 run read\n")


def test_the_limit_counts_the_runs_that_are_listed(command: Command, path: str) -> None:
    out = command("replay", path, path, "--only-injected", "--limit", "2").out.splitlines()
    assert [line[:3] for line in out if line.startswith("l-")] == ["l-0", "l-1"] * 2
    assert out[-1].endswith("in 4 of 8 runs read")


def test_json_has_only_the_runs_with_an_intervention(command: Command, path: str) -> None:
    whole = command("replay", path, "--json").objects
    listed = command("replay", path, "--only-injected", "--json")
    assert listed.objects == [run for run in whole if run["run_id"].startswith("l-")]
    assert command("replay", path, "--only-injected", "--json", "--limit", "1").objects == listed.objects[:1]


def test_with_a_run_only_its_steps_with_a_text_are_shown(command: Command, path: str) -> None:
    out = command("replay", path, "--only-injected", "--run", "l-0").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("step")] == ["4"]


@pytest.mark.parametrize("columns", ["60", "100"])
def test_a_long_run_id_is_never_cut(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    name = "a-run-with-a-name-" * 6
    out = command("replay", write("a.jsonl", looping(name)), "--only-injected").out.splitlines()
    assert out[0] == name
    assert max(map(len, out[1:])) <= int(columns)
    assert out[1].startswith("  failure  once after step 4 of 12")


STOPS = "long enough"


@pytest.fixture
def stop_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A condition of one's own that ends a run before its seventh call."""
    (tmp_path / "conditions.py").write_text(
        f"def long(run):\n    return {STOPS!r} if len(run.step_log) >= 7 else None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "conditions:long"


def test_a_stopped_run_says_so_even_without_an_intervention(command: Command, write: Write, stop_module: str) -> None:
    calm = {"run_id": "c", "steps": [{**LOOK, "action_input": name, "observation": name} for name in "abcdefgh"]}
    out = command("replay", write("b.jsonl", looping("l"), calm), "--only-injected", "--stop-when", stop_module).out
    lines = out.splitlines()
    assert [line for line in lines if line[:1] in "lc"] == [
        f"l  failure  once after step 4 of 12: loop (semantic_loop 0.80); stopped before step 6: {STOPS}",
        f"c  outcome unknown  stopped before step 6 of 8: {STOPS}",
    ]
    assert lines[-1] == "1 intervention in 1 of 2 runs read; 2 runs stopped"


def test_json_lists_stopped_runs_with_the_step_and_the_reason(command: Command, write: Write, stop_module: str) -> None:
    path = write("b.jsonl", fine("f"), {"run_id": "s", "steps": [LOOK] * 8})
    runs = command("replay", path, "--json", "--stop-when", stop_module).objects
    assert [(run["stopped_at"], run["stop"], len(run["steps"])) for run in runs] == [(None, None, 1), (5, STOPS, 6)]
    assert command("replay", path, "--json", "--only-injected", "--stop-when", stop_module).objects == runs[1:]


def test_the_summary_shows_stops_and_that_there_are_none(command: Command, write: Write, stop_module: str) -> None:
    path = write("b.jsonl", {"outcome": "failure", "steps": [LOOK] * 8})
    stopped = command("replay", path, "--stop-when", stop_module).out
    assert "1 run (1 failing); 2 of 8 steps not made" in stopped
    none = command("replay", write("c.jsonl", fine("f")), "--stop-when", "stalled").out
    assert next(line.split() for line in none.splitlines() if "stopped" in line) == ["stopped", "none"]


def test_full_prints_every_text_of_each_run_whole(command: Command, path: str) -> None:
    objects = command("replay", path, "--only-injected", "--json").objects
    out = command("replay", path, "--only-injected", "--full").out
    said = " ".join(line[2:] for line in out.splitlines() if line[:2] in ("| ", "┃ "))
    texts = [injection["text"] for run in objects for step in run["steps"] for injection in step["injections"]]
    assert len(texts) == 3
    assert [text for text in texts if " ".join(text.split()) not in said] == []
    assert said.count("monitor says, before step 5: loop (semantic_loop 0.80)") == 3
    assert "standing rules" not in out


TESTED = {**FAILED, "action": "run_tests", "observation": "1 failed, 3 passed"}
UNCHECKED: dict[str, Any] = {
    "run_id": "u",
    "outcome": "success",
    "steps": [FAILED, {"thought": "All tests pass, done."}],
}


@pytest.mark.parametrize("mode", ["steer", "observe"])
def test_a_second_look_of_the_settings_is_listed_and_shown(command: Command, write: Write, mode: str) -> None:
    path = write(
        "u.jsonl", {**UNCHECKED, "steps": [FAILED, {**LOOK, "is_error": False}, TESTED, UNCHECKED["steps"][-1]]}
    )
    config = write("look.toml", f'second_look = true\nmode = "{mode}"')
    listed = command("replay", path, "--only-injected", "--config", config).out.splitlines()
    assert "a second look after step 3 of 4" in listed[0]
    assert listed[-1].endswith("a second look in 1 run")
    assert ["second", "looks", "1", "run", "(1", "succeeding)"] in [
        line.split() for line in command("replay", path, "--config", config).out.splitlines()
    ]
    view = command("replay", path, "--run", "u", "--config", config).out
    assert view.index("step 3") < view.index("a second look would say, after step 3: ") < view.index("outcome  ")


def test_a_text_that_on_injection_drops_is_reported_as_dropped(
    command: Command, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drops.py").write_text("def all_texts(injection, run):\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    out = command("replay", path, "--run", "l-0", "--on-injection", "drops:all_texts").out
    assert "silent (dropped by on_injection): loop (semantic_loop 0.80)" in out
    assert "dropped" not in out.partition("step 4")[0]
