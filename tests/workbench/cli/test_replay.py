"""`reasonblocks replay`: recorded runs through the engine that steers live ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.cli.conftest import Command, Write

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "dev"
KEYS = ["run_id", "file", "source", "outcome", "judged_by", "start", "steps", "doubts", "stopped_at", "stop"]
STEP_KEYS = [
    "step",
    "call",
    "difficulty",
    "difficulty_parts",
    "fsm_state",
    "scores",
    "composite",
    "fired",
    "failure_type",
    "gate_decision",
    "injections",
    "skipped_reason",
    "account",
]


def step(thought: str = "I look at the file.", **more: object) -> dict[str, object]:
    return {"thought": thought, "action": "ls", "action_input": ".", "observation": "a.py", **more}


def looping(run_id: str = "loop", steps: int = 12, **header: object) -> dict[str, object]:
    failed = step("I run it again.", observation="Error: no such module", is_error=True)
    return {"run_id": run_id, "steps": [failed] * steps, **header}


RUN: dict[str, object] = {"run_id": "r", "steps": [step(), step("Now I edit it."), step("Done.", action="")]}


def one(command: Command, *argv: str) -> dict[str, Any]:
    (found,) = command("replay", *argv, "--json").objects
    assert isinstance(found, dict)
    return found


def test_json_has_exactly_its_keys_in_order_and_what_the_file_says_of_the_run(command: Command, write: Write) -> None:
    path = write("a.jsonl", {**RUN, "source": "s", "outcome": "failure"})
    found = one(command, path)
    assert list(found) == KEYS
    assert [found[key] for key in KEYS[:4]] == ["r", path, "s", "failure"]
    assert list(found["start"]) == ["fsm_state", "injections"]
    assert [list(step) for step in found["steps"]] == [STEP_KEYS] * 3


def test_source_and_outcome_are_null_where_the_file_is_silent(command: Command, write: Write) -> None:
    found = one(command, write("a.jsonl", RUN))
    assert (found["source"], found["outcome"]) == (None, None)


def test_the_first_call_is_the_start_and_each_step_names_the_call_that_it_decided(
    command: Command, write: Write
) -> None:
    found = one(command, write("a.jsonl", RUN))
    assert found["start"]["fsm_state"] == "INIT"
    assert [(step["step"], step["call"]) for step in found["steps"]] == [(0, 1), (1, 2), (2, None)]


def test_the_last_step_is_final_and_injects_nothing(command: Command, write: Write) -> None:
    last = one(command, write("a.jsonl", looping()))["steps"][-1]
    assert (last["gate_decision"], last["injections"]) == ("final", [])


def test_every_step_is_judged(command: Command, write: Write) -> None:
    steps = one(command, write("a.jsonl", RUN))["steps"]
    assert all(0 <= step["difficulty"] <= 1 and step["composite"] is not None and step["scores"] for step in steps)


def test_a_loop_is_told_about(command: Command, write: Write) -> None:
    steps = one(command, write("a.jsonl", looping()))["steps"]
    texts = [injection for step in steps for injection in step["injections"]]
    assert texts
    assert "MonitorSteeringInjection" in {injection["source"] for injection in texts}


def test_a_run_of_one_step_is_only_final(command: Command, write: Write) -> None:
    steps = one(command, write("a.jsonl", {"steps": [step()]}))["steps"]
    assert [(step["call"], step["gate_decision"]) for step in steps] == [(None, "final")]


def test_a_run_without_steps_has_only_a_start(command: Command, write: Write) -> None:
    assert one(command, write("a.jsonl", {"steps": []}))["steps"] == []


def test_a_switched_off_run_still_has_every_step(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a.jsonl", RUN)
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    steps = one(command, path)["steps"]
    assert [step["skipped_reason"] for step in steps] == ["disabled"] * 3


def test_the_same_file_twice_gives_the_same_lines(command: Command, write: Write) -> None:
    path = write("a.jsonl", looping(), RUN, looping("b", 30))
    assert command("replay", path, "--json").out == command("replay", path, "--json").out


def test_runs_of_one_id_do_not_touch_each_other(command: Command, write: Write) -> None:
    first, second = command("replay", write("a.jsonl", looping(), looping()), "--json").objects
    assert first == second


def test_langchain_messages_give_what_our_own_format_gives(command: Command, write: Write) -> None:
    ours = write("a.jsonl", {"run_id": "r", "task": "fix", "steps": [
        {"thought": "I look.", "action": "ls", "action_input": '{"path": "."}', "observation": "x"},
        {"thought": "Done."},
    ]})  # fmt: skip
    call = {"id": "1", "name": "ls", "args": {"path": "."}}
    theirs = write("b.json", {"run_id": "r", "messages": [
        {"type": "human", "data": {"content": "fix"}},
        {"type": "ai", "data": {"content": "I look.", "tool_calls": [call]}},
        {"type": "tool", "data": {"content": "x", "tool_call_id": "1", "status": "success"}},
        {"type": "ai", "data": {"content": "Done."}},
    ]})  # fmt: skip
    assert {**one(command, ours), "file": ""} == {**one(command, theirs), "file": ""}


def test_a_setting_changes_what_is_decided(command: Command, write: Write) -> None:
    path = write("a.jsonl", {"steps": [step(action_input=name, observation=name) for name in "abcd"]})
    narrow = one(command, path, "--fast-threshold", "0.98", "--fsm", "slow_threshold=0.99", "--fsm",
                 "skip_threshold=1", "--fsm", "hysteresis_margin=0", "--fsm", "fast_window=1")  # fmt: skip
    assert [step["fsm_state"] for step in narrow["steps"]][-1] == "FAST"


def composite(command: Command, path: str, *argv: str) -> list[float]:
    return [step["composite"] for step in one(command, path, *argv)["steps"]]


def test_a_run_brings_its_own_profile(command: Command, write: Write) -> None:
    qa, coding = (write(f"{name}.jsonl", looping(task_profile=name)) for name in ("qa", "coding"))
    assert composite(command, qa) != composite(command, coding)


def test_an_unknown_profile_means_that_of_the_settings(command: Command, write: Write) -> None:
    other, qa = (write(f"{name}.jsonl", looping(task_profile=name)) for name in ("other", "qa"))
    assert composite(command, other, "--config", write("c.toml", 'task_profile = "qa"')) == composite(command, qa)


def test_the_option_goes_before_the_profile_of_a_run(command: Command, write: Write) -> None:
    qa, coding = (write(f"{name}.jsonl", looping(task_profile=name)) for name in ("qa", "coding"))
    assert composite(command, qa, "--task-profile", "coding") == composite(command, coding)


def test_limit_takes_the_first_runs_of_each_file(command: Command, write: Write) -> None:
    paths = [write(name, {"run_id": f"{name}1", "steps": []}, {"run_id": f"{name}2", "steps": []}) for name in "ab"]
    assert [run["run_id"] for run in command("replay", *paths, "--limit", "1", "--json").objects] == ["a1", "b1"]


def test_malformed_records_are_counted_and_said_on_stderr_and_the_rest_is_replayed(
    command: Command, write: Write
) -> None:
    path = write("a.jsonl", RUN, {"steps": 3}, "{", RUN)
    assert "2, 6 steps, 2 malformed" in command("replay", path).out
    done = command("replay", path, "--json")
    assert (done.code, len(done.objects)) == (0, 2)
    assert [line.startswith(f"{path}:{n}: ") for n, line in zip((2, 3), done.err.splitlines(), strict=True)] == [
        True
    ] * 2


def test_nothing_readable_is_a_problem(command: Command, write: Write, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    files = [write("a.jsonl", "{"), write("b", "# a title"), str(tmp_path / "none"), str(empty)]
    done = command("replay", *files)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == len(files) + 1


def test_one_readable_run_is_enough(command: Command, write: Write, tmp_path: Path) -> None:
    done = command("replay", str(tmp_path / "none"), write("a.jsonl", RUN))
    assert done.code == 0
    assert "no such file" in done.err


def test_several_files_have_a_total(command: Command, write: Write) -> None:
    out = command("replay", write("a.jsonl", RUN), write("b.jsonl", RUN)).out
    assert "all 2 files" in out


def test_one_run_is_shown_step_by_step(command: Command, write: Write) -> None:
    done = command("replay", write("a.jsonl", RUN, looping("wanted")), "--run", "wanted")
    assert done.out.startswith("wanted ")
    assert "monitor says, before step 5: churn" in done.out


def test_one_run_as_json_is_one_object(command: Command, write: Write) -> None:
    found = one(command, write("a.jsonl", RUN, looping("wanted")), "--run", "wanted")
    assert found["run_id"] == "wanted"


def test_a_run_that_is_not_there_is_a_problem_with_the_nearest_name(command: Command, write: Write) -> None:
    done = command("replay", write("a.jsonl", {**RUN, "run_id": "bugfix-17"}), "--run", "bugfix-71")
    assert done.code == 1
    assert "'bugfix-17'" in done.err


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ([], "Missing command"),
        (["replay"], "FILE"),
        (["replay", "f", "--limit", "0"], "'0'"),
        (["replay", "f", "--fsm", "slow_threshold=2"], "slow_threshold"),
        (["replay", "f", "--fsm", "slow_treshold=0.5"], "did you mean 'slow_threshold'"),
        (["replay", "f", "--task-profile", "poetry"], "poetry"),
        (["replay", "f", "--route", "INIT=m"], "INIT"),
        (["replay", "f", "--weight", "semantic_lop=1"], "semantic_loop"),
        (["replay", "f", "--token-budget", "much"], "much"),
        (["replay", "f", "--config", "/no/such.toml"], "/no/such.toml"),
        (["replay", "f", "--no-such-option"], "--no-such-option"),
        (["replay", "f", "--run"], "reasonblocks replay: Option '--run' requires an argument"),
        (["replay", "f", "--only-injected", "--diff", "a", "b"], "--diff: cannot be combined with --only-injected"),
        (["repaly"], "Did you mean 'replay'?"),
        (["replay", "f", "--jsno"], "--json"),
    ],
)
def test_a_usage_error_is_one_line_and_code_2(command: Command, argv: list[str], word: str) -> None:
    done = command(*argv)
    assert (done.code, done.out) == (2, "")
    assert word in done.err
    assert len(done.err.splitlines()) == 1


def test_a_scorer_that_fails_is_said_once_and_counted(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_broken_scorer.py").write_text("def broken(step):\n    raise ValueError('no')\n")
    monkeypatch.chdir(tmp_path)
    done = command("replay", write("a.jsonl", RUN, {**RUN, "run_id": "s"}), "--scorer", "my_broken_scorer:broken")
    assert done.code == 0
    assert "ValueError: no" in done.err
    assert "run 's'" not in done.err
    assert "Traceback" not in done.err
    assert "6 steps went unsteered" in done.out


def test_strict_ends_with_what_a_scorer_raised(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_raising_scorer.py").write_text("def broken(step):\n    raise ZeroDivisionError\n")
    monkeypatch.chdir(tmp_path)
    done = command("replay", write("a.jsonl", RUN), "--strict", "--scorer", "my_raising_scorer:broken")
    assert done.code == 1
    assert (
        done.err.splitlines()[-1] == f"reasonblocks: run {RUN['run_id']!r} is not replayed further: ZeroDivisionError"
    )


def test_too_little_memory_is_said_in_one_line(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greedy_part.py").write_text("class Greedy:\n    def __init__(self):\n        raise MemoryError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    done = command("replay", "--scorer", "greedy_part:Greedy", write("a.jsonl", RUN))
    assert (done.code, done.out, done.err) == (1, "", "reasonblocks: out of memory\n")


def test_nothing_is_written(command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.jsonl", looping())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    command("replay", path)
    assert [found.name for found in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
def test_runs_of_every_source_of_the_corpus_are_replayed(command: Command) -> None:
    files = [str(path) for path in sorted(CORPUS.iterdir())]
    done = command("replay", *files, "--limit", "5", "--json")
    assert (done.code, done.err) == (0, "")
    assert len(done.objects) == 5 * len(files)
    assert all(json.dumps(run, allow_nan=False) for run in done.objects)


def test_the_environment_says_how_much_of_a_packed_file_is_read(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(RUN)}\n".encode() * 9_000, 1))
    monkeypatch.setenv("REASONBLOCKS_UNPACKED_MB", "1")
    done = command("replay", str(path), "--limit", "9000", "--run", "none")
    assert (done.code, "unpacks to more than 1 MB" in done.err) == (1, True)
    monkeypatch.setenv("REASONBLOCKS_UNPACKED_MB", "many")
    assert command("replay", str(path)).code == 2


CLAIMED: dict[str, object] = {
    "run_id": "claimed",
    "outcome": "success",
    "steps": [
        step("I change the rounding.", action="edit_file", action_input="prices.py", observation="ok"),
        step("I run the tests.", action="run_tests", action_input="", observation="3 failed"),
        step("All tests pass, done.", action="", observation=""),
    ],
}


def test_json_has_the_doubts_of_the_final_step(command: Command, write: Write) -> None:
    (doubt,) = one(command, write("a.jsonl", CLAIMED))["doubts"]
    assert doubt["monitor"] == "claim_contradiction"
    assert doubt["text"].startswith("The newest check, 1 step before this answer, failed")


def test_a_run_that_nothing_speaks_against_has_no_doubts(command: Command, write: Write) -> None:
    path = write("a.jsonl", RUN)
    assert one(command, path)["doubts"] == []
    out = command("replay", path).out
    assert [line.split()[-1] for line in out.splitlines() if "ends in doubt" in line] == ["none"]


def test_the_table_of_runs_counts_those_that_end_in_doubt(command: Command, write: Write) -> None:
    out = command("replay", write("a.jsonl", CLAIMED, {**CLAIMED, "run_id": "b"}, RUN)).out
    (row,) = [line for line in out.splitlines() if "ends in doubt" in line and "run" in line]
    assert "claim_contradiction in 2 runs" in row
    assert "2 of them reported success" in row


def test_a_folder_is_replayed_as_one_and_its_unreadable_files_are_named_and_counted(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write("a.jsonl", RUN)
    (tmp_path / "deeper").mkdir()
    write("deeper/b.jsonl", looping())
    write("deeper/notes.md", "# Notes")
    done = command("replay", str(tmp_path))
    assert "2, 15 steps, 1 malformed" in done.out
    assert f"{tmp_path}/deeper/notes.md" in done.err


BROKEN = """
class Broken:
    name = failure_type = "broken"
    def observe(self, step, memory, run):
        raise ValueError("my own mistake")
"""


@pytest.mark.parametrize("argv", [("replay", "a.jsonl"), ("explain", "a.jsonl", "0")])
def test_an_error_of_the_users_code_has_one_traceback_of_that_code(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = f"broken_{argv[0]}"
    Path(f"{module}.py").write_text(BROKEN, encoding="utf-8")
    write("a.jsonl", {"run_id": "r", "steps": [{"thought": "I look."}, {"thought": "I look again."}]})
    done = command(*argv, "--monitor", f"{module}:Broken", "--strict")
    lines = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert lines[0] == "Traceback (most recent call last):"
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "{tmp_path / module}.py", line 5, in observe'
    ]
    assert lines[-2:] == [
        "ValueError: my own mistake",
        "reasonblocks: run 'r' is not replayed further: ValueError: my own mistake",
    ]
