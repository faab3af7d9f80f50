"""`reasonblocks explain`: what a step of a recorded run did, and why the agent was told something or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]
Write = Callable[..., str]


def step(action: str, observation: str, argument: str = "x", **more: object) -> dict[str, object]:
    return {"thought": "I try.", "action": action, "action_input": argument, "observation": observation, **more}


EDIT = step("edit_file", "ok", "a.py")
FAILED = step("deploy", "Error: quota exceeded", is_error=True)


def run(*steps: dict[str, object], run_id: str = "r") -> dict[str, object]:
    return {"run_id": run_id, "steps": list(steps)}


@pytest.fixture
def path(write: Write) -> str:
    return write("runs.jsonl", run(EDIT, run_id="other"), run(EDIT, *[FAILED] * 6, EDIT, run_id="stuck"))


def explained(command: Command, path: str, at: int, *more: str) -> dict[str, str]:
    done = command("explain", path, str(at), "--run", "stuck", *more)
    assert (done.code, done.err) == (0, "")
    return {line[:9].strip(): line[10:] for line in done.out.splitlines()}


def test_a_step_is_explained_in_the_words_of_the_account(command: Command, path: str) -> None:
    told = explained(command, path, 5)
    assert told == {
        "step": "5 of stuck",
        "call": 'deploy(input="x")  (change)',
        "result": "failed: Error: quota exceeded",
        "since": "step 0: nothing has changed after it, as far as is known",
        "newest": "..AAAA (the newest last; a letter is a dead step, a small one only looked)",
        "patience": "4 of 5 (shipped)",
        "said": "told: the same call as one since the mark, with the same result; "
        "4 of the newest 5 steps are dead, as 4 of 5 asks",
    }


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (0, "not told: the step is not dead"),
        (4, "3 of the newest 5 steps are dead, and 4 of 5 asks for 4"),
        (6, "not told, cooldown: the same call"),
        (7, "not told, no call follows: "),
    ],
)
def test_it_says_why_nothing_was_told(command: Command, path: str, at: int, why: str) -> None:
    assert why in explained(command, path, at)["said"]


def test_settings_change_what_is_explained(command: Command, path: str) -> None:
    sooner = explained(command, path, 3, "--patience", "2 of 3")
    assert (sooner["patience"], sooner["said"][:5]) == ("2 of 3 (patience: 2 of 3)", "told:")
    other = explained(command, path, 5, "--tool-role", "deploy=read")
    assert other["call"].endswith("(read)")


def test_json_has_the_account_as_replay_has_it(command: Command, path: str) -> None:
    (found,) = command("explain", path, "5", "--run", "stuck", "--json").objects
    (_, replayed) = command("replay", path, "--json").objects
    assert found == {"run_id": "stuck", "step": 5, **replayed["steps"][5]["account"]}
    assert (found["letter"], found["letters"], found["mark"], found["rung"]) == ("A", "..AAAA", 0, "4 of 5")
    assert found["calls"] == [{"tool": "deploy", "roles": ["change"]}]


def test_the_first_run_is_meant_unless_one_is_named(command: Command, path: str) -> None:
    assert command("explain", path, "0").out.startswith("step      0 of other\n")


def test_profiles_of_the_other_runs_are_used_if_asked(command: Command, write: Write) -> None:
    runs = [run(*[FAILED] * 12, run_id=f"r{at}") | {"source": "clerk", "task": f"Task {at}."} for at in range(9)]
    done = command("explain", write("a.jsonl", *runs), "3", "--profile", "own")
    assert "patience  2 of 3 (own: 2 of 3, 8 runs)" in done.out


@pytest.mark.parametrize(("at", "said"), [("8", "'stuck' has the steps 0 to 7"), ("99", "0 to 7"), ("-1", "0 to 7")])
def test_a_step_that_the_run_lacks_is_named_with_those_that_it_has(
    command: Command, path: str, at: str, said: str
) -> None:
    done = command("explain", path, "--run", "stuck", "--", at)
    assert done.code == 2
    assert said in done.err


def test_a_run_that_is_not_there_is_a_problem(command: Command, path: str) -> None:
    done = command("explain", path, "0", "--run", "none")
    assert (done.code, done.out) == (1, "")
    assert "no run is called 'none'" in done.err
