"""`reasonblocks explain`: what a step of a recorded run did, and why the agent was told something or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonblocks import JsonlSink, ReasonBlocks
from reasonblocks.backends.profiles import ProfileFile
from reasonblocks.types import JSON, Step, StepInput
from tests.workbench.cli.conftest import Command, Write


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
        "step": "5 of stuck, before call 6",
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


CHECK = step("bash", "FAILED test_a.py::test_x - assert 1 == 2\n1 failed in 0.1s", "pytest test_a.py", is_error=True)
DONE: dict[str, object] = {"thought": "Done. All tests pass."}


def why(command: Command, path: str, at: int, *more: str) -> str:
    done = command("explain", path, str(at), "--json", *more)
    assert (done.code, done.err) == (0, "")
    return str(done.objects[0]["why"])


def test_a_monitor_that_had_all_its_texts_is_named(command: Command, write: Write) -> None:
    live = [step("read_file", f"text {at}", f"a{at}.py") for at in range(20)]
    troubles = [one for at in range(0, 20, 5) for one in (*live[at : at + 5], *[FAILED] * 5)]
    path = write("a.jsonl", run(*troubles, EDIT))
    assert [why(command, path, at).startswith("told: ") for at in (9, 18, 28)] == [True] * 3
    assert why(command, path, 38).startswith("not told, semantic_loop had all 3 texts: the same call")


def test_a_check_is_told_and_later_ones_are_not_called_the_fourth(command: Command, write: Write) -> None:
    changes = [step("edit_file", f"ok {at}", f"a.py v{at}") for at in range(6)]
    path = write("a.jsonl", run(*[one for change in changes for one in (change, CHECK)], EDIT))
    found = "the same check ended in the same way at least for the fourth time, with changes between"
    assert why(command, path, 7) == f"told: {found}"
    assert why(command, path, 9) == f"not told, cooldown: {found}"
    assert why(command, path, 11) == f"not told, there is nothing new to say: {found}"


def test_a_text_that_waits_for_its_place_says_so(command: Command, write: Write) -> None:
    hall = step("go", "You are in the hall. Doors: attic, cellar, pantry.") | {"action_input": {"door": "hall"}}
    cellar = step("go", "You are in the cellar. Doors: hall.") | {"action_input": {"door": "cellar"}}
    path = write("a.jsonl", run(*[hall, cellar] * 5))
    assert why(command, path, 5).startswith("not told, the agent goes round, and soon comes to where it can")
    assert why(command, path, 6).startswith("told: ")


def test_a_doubted_end_names_the_monitor_that_fired(command: Command, write: Write) -> None:
    path, look = write("a.jsonl", run(EDIT, CHECK, DONE)), write("look.toml", "second_look = true")
    doubted = "the step is not dead; claim_contradiction fired"
    assert why(command, path, 2) == f"not told, no call follows: {doubted}"
    assert why(command, path, 2, "--config", look) == f"would be told, but was withheld: {doubted}"


def test_a_monitor_of_the_caller_is_named(command: Command, path: str, loud: str) -> None:
    assert why(command, path, 0, "--run", "stuck", "--monitor", loud) == "told: the step is not dead; loud fired"
    assert why(command, path, 1, "--run", "stuck", "--monitor", loud).startswith("not told, cooldown: ")


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reference of a monitor that fires on every step."""
    observe = "    def observe(self, step, memory, run): return 1.0, None, ()"
    (tmp_path / "explained_loud.py").write_text(f"class Loud:\n    name = failure_type = 'loud'\n{observe}\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "explained_loud:Loud"


def test_an_observed_run_is_told_nothing(command: Command, path: str, write: Write) -> None:
    observing = write("observe.toml", 'mode = "observe"')
    assert why(command, path, 5, "--run", "stuck", "--config", observing).startswith(
        "would be told, but was withheld: "
    )


def test_steering_that_is_off_judges_nothing(command: Command, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    assert why(command, path, 5, "--run", "stuck") == "not told: steering is off"


@pytest.mark.parametrize(
    ("explore", "reason"),
    [
        (0.0, "the agent gets out by itself (own: silent, 8 runs)"),
        (1.0, "the run is left alone to learn from (explores: 8 runs)"),
    ],
)
def test_a_silent_patience_says_why(
    command: Command, write: Write, tmp_path: Path, explore: float, reason: str
) -> None:
    profiles = ProfileFile(tmp_path / "profiles.db")
    for at in range(8):
        counts: dict[str, JSON] = {"reached": [2] * 7, "needless": [2] * 7, "checks": False}
        profiles.add(("default", "clerk", "coding"), f"run {at}", counts)
    settings = write("c.toml", f'profile = "{profiles.path}"', f"explore = {explore}")
    path = write("a.jsonl", run(EDIT, *[FAILED] * 6, EDIT) | {"source": "clerk"})
    repeated = "the same call as one since the mark, with the same result"
    done = command("explain", path, "5", "--json", "--config", settings)
    assert done.objects[0]["why"] == f"not told: {repeated}; {reason}"


def test_a_step_after_a_stop_is_out_of_range(command: Command, write: Write) -> None:
    stops = write("stops.toml", 'stop_when = "stalled"', 'patience = "2 of 3"')
    done = command("explain", write("a.jsonl", run(EDIT, *[FAILED] * 24)), "24", "--config", stops)
    assert (done.code, done.out) == (2, "")
    assert "'r' has the steps 0 to 11, after which it is stopped" in done.err


def test_settings_change_what_is_explained(command: Command, path: str) -> None:
    sooner = explained(command, path, 3, "--patience", "2 of 3")
    assert (sooner["patience"], sooner["said"][:5]) == ("2 of 3 (patience: 2 of 3)", "told:")
    other = explained(command, path, 5, "--tool-role", "deploy=read")
    assert other["call"].endswith("(read)")


def test_json_has_the_account_as_replay_has_it(command: Command, path: str) -> None:
    (found,) = command("explain", path, "5", "--run", "stuck", "--json").objects
    (_, replayed) = command("replay", path, "--json").objects
    assert found == {"run_id": "stuck", "step": 5, "call": 6, **replayed["steps"][5]["account"]}
    assert (found["letter"], found["letters"], found["mark"], found["rung"]) == ("A", "..AAAA", 0, "4 of 5")
    assert found["calls"] == [{"tool": "deploy", "roles": ["change"]}]


def test_the_first_run_is_meant_unless_one_is_named(command: Command, path: str) -> None:
    assert command("explain", path, "0").out.startswith("step      0 of other, at the end\n")


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


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log with auxiliary calls, which are counted as calls and not as steps."""
    path = tmp_path / "runs.jsonl"
    rb = ReasonBlocks(sinks=[JsonlSink(path)], pattern_store=None, profile=None)
    with rb, rb.session(run_id="a-long-id-of-a-run", agent_name="fixer") as session:
        session.begin_step(StepInput())
        for at in range(5):
            session.begin_step(StepInput(auxiliary=True))
            session.begin_step(StepInput(completed=Step(thought=f"I look at {at}.")))
    return str(path)


def test_what_watch_names_is_found(command: Command, log: str) -> None:
    (line,) = [line for line in command("watch", log, "--once").out.splitlines() if "I look at 2." in line]
    found = re.search(r"fixer (\.\.\S+) +before call (\d+) ", line)
    assert found is not None
    done = command("explain", log, "--run", found[1], "--call", found[2])
    assert done.out.startswith(f"step      2 of a-long-id-of-a-run, before call {found[2]}\n")
    again = command("explain", log, "2", "--json").objects[0]
    assert (again["step"], again["call"]) == (2, int(found[2]))


def test_a_call_before_which_no_step_is_completed_is_refused(command: Command, log: str) -> None:
    done = command("explain", log, "--call", "0")
    assert (done.code, done.out) == (2, "")
    assert "--call=0: no step is completed right before this call; 'a-long-id-of-a-run' has the steps 0 to" in done.err


@pytest.mark.parametrize(
    ("argv", "told"), [((), "STEP or --call: one of them is required"), (("1", "--call", "2"), "combined")]
)
def test_a_step_is_named_in_one_way(command: Command, path: str, argv: tuple[str, ...], told: str) -> None:
    done = command("explain", path, *argv)
    assert done.code == 2
    assert told in done.err


def test_a_whole_id_goes_before_a_part_of_one(command: Command, write: Write) -> None:
    path = write("a.jsonl", run(EDIT, run_id="run-10"), run(EDIT, run_id="run-1"))
    assert "0 of run-1," in command("explain", path, "0", "--run", "run-1").out
    assert "0 of run-10," in command("explain", path, "0", "--run", "n-10").out
