"""`reasonblocks profile`: what is usual for each agent, shown, forgotten and exported; `replay --profile`."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks.backends.profiles import ProfileFile
from tests.workbench.cli.conftest import Command, Write


@pytest.fixture
def file(tmp_path: Path) -> ProfileFile:
    """A file with two agents, of 30 runs and of one."""
    found = ProfileFile(tmp_path / "profiles.db")
    for number in range(30):
        found.add(
            ("default", "clerk", "coding"),
            f"run {number}",
            {"reached": [2] * 7, "needless": [2, 2, 2, 0, 0, 0, 0], "checks": True},
        )
    found.add(("acme", "driver", "qa"), "run", {"reached": [1] * 7, "needless": [0] * 7, "checks": False})
    return found


def test_show_has_what_the_runs_counted_of_each_rung(command: Command, file: ProfileFile) -> None:
    done = command("profile", "show", "--file", file.path, "--json")
    driver, clerk = done.objects
    assert (driver["agent_name"], driver["runs"], driver["judged_by"]) == ("driver", 1, "shipped")
    assert (clerk["runs"], clerk["judged_by"]) == (30, "own: 4 of 5, 30 runs")
    assert clerk["rungs"][0] == {"rung": "2 of 3", "reached": 60, "needless": 60, "share": round(62.5 / 65, 3)}
    assert [one["needless"] for one in clerk["rungs"]] == [60, 60, 60, 0, 0, 0, 0]


def test_show_prints_a_table_for_each_agent(command: Command, file: ProfileFile) -> None:
    done = command("profile", "show", "--file", file.path)
    assert (done.code, done.err) == (0, "")
    assert "clerk (default, coding): 30 runs, own: 4 of 5, 30 runs" in done.out


def test_show_of_a_named_file_that_is_not_there_is_a_problem(command: Command, tmp_path: Path) -> None:
    done = command("profile", "show", "--file", str(tmp_path / "none.db"))
    assert (done.code, done.out) == (1, "")
    assert f"there is no file {tmp_path / 'none.db'}; --file must be" in done.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_without_profiles_says_what_makes_one(command: Command, form: tuple[str, ...]) -> None:
    done = command("profile", "show", *form)
    assert (done.code, done.out) == (0, "")
    assert "has no profile yet; a client with profile='auto' adds one" in done.err


@pytest.mark.parametrize("what", [("reset", "--all"), ("export", "--out", "a.db")])
def test_there_is_nothing_to_reset_or_export_without_profiles(command: Command, what: tuple[str, ...]) -> None:
    done = command("profile", *what)
    assert (done.code, done.out) == (1, "")
    assert "has no profile yet" in done.err


def test_an_agent_that_is_not_there_is_named_with_the_number_of_the_others(command: Command, file: ProfileFile) -> None:
    done = command("profile", "show", "--file", file.path, "--agent", "clerc", "--org", "default")
    assert (done.code, done.out) == (1, "")
    assert "has no agent with --agent 'clerc' --org 'default'; without that, it has 2 agents" in done.err


def test_reset_forgets_the_named_agent_alone(command: Command, file: ProfileFile) -> None:
    done = command("profile", "reset", "--file", file.path, "--agent", "clerk")
    assert (done.code, done.out) == (0, "forgot 30 runs of clerk (default, coding)\n")
    assert [row.agent_name for row in file.agents()] == ["driver"]


def test_reset_of_everything_must_be_asked_for(command: Command, file: ProfileFile) -> None:
    refused = command("profile", "reset", "--file", file.path)
    assert (refused.code, refused.err.startswith("reasonblocks: --agent: name an agent")) == (2, True)
    assert len(file.agents()) == 2
    assert command("profile", "reset", "--file", file.path, "--all").code == 0
    assert file.agents() == []


def test_export_writes_a_file_of_the_same_form(command: Command, file: ProfileFile, tmp_path: Path) -> None:
    out = tmp_path / "clerk.db"
    done = command("profile", "export", "--file", file.path, "--org", "default", "--out", str(out))
    assert (done.code, done.err) == (0, "")
    agent = ("default", "clerk", "coding")
    assert ProfileFile(out).read(agent, "") == file.read(agent, "")
    assert [row.agent_name for row in ProfileFile(out).agents()] == ["clerk"]


def test_export_replaces_no_file(command: Command, file: ProfileFile) -> None:
    done = command("profile", "export", "--file", file.path, "--out", file.path)
    assert done.code == 1
    assert len(file.agents()) == 2


def test_a_file_that_is_no_profile_is_one_line(command: Command, write: Write) -> None:
    done = command("profile", "show", "--file", write("runs.jsonl", *["{}"] * 200))
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert "cannot be used" in done.err


def record(number: int, source: str = "clerk", task: str | None = None) -> dict[str, object]:
    steps = [{"thought": "I look.", "action": "ls", "action_input": "x", "observation": "x"} for at in range(12)]
    return {"run_id": f"r{number}", "source": source, "task": task or f"List {number}.", "steps": steps}


def judged_by(command: Command, *argv: str) -> list[str]:
    return [found["judged_by"] for found in command("replay", *argv, "--json").objects]


def test_replay_own_judges_a_run_by_the_others_of_its_agent(command: Command, write: Write) -> None:
    path = write("a.jsonl", *map(record, range(21)), record(21, "driver"))
    *clerk, driver = judged_by(command, path, "--profile", "own")
    assert set(clerk) == {"own: 2 of 3, 20 runs"}
    assert driver == "shipped"


def test_replay_own_leaves_out_runs_of_the_same_task(command: Command, write: Write) -> None:
    path = write("a.jsonl", *[record(number, task="The same.") for number in range(30)])
    assert set(judged_by(command, path, "--profile", "own")) == {"shipped"}


def test_replay_own_judges_one_run_by_all_others(command: Command, write: Write) -> None:
    path = write("a.jsonl", *map(record, range(21)))
    assert "judged by: own: 2 of 3, 20 runs" in command("replay", path, "--profile", "own", "--run", "r3").out


def test_replay_with_a_file_reads_and_does_not_write_it(command: Command, write: Write, file: ProfileFile) -> None:
    path = write("a.jsonl", *map(record, range(3)))
    assert set(judged_by(command, path, "--profile", file.path)) == {"own: 4 of 5, 30 runs"}
    assert [row.runs for row in file.agents()] == [1, 30]


def test_replay_has_the_shipped_patience_unless_asked(command: Command, write: Write) -> None:
    path = write("a.jsonl", *map(record, range(25)))
    assert set(judged_by(command, path)) == {"shipped"}
