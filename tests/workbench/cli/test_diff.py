"""`replay --diff A.toml B.toml`: two sets of settings on the same runs."""

from __future__ import annotations

from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.types import Account, FSMState, Injection, Patience, Step, StepDecision, Usage
from reasonblocks_workbench.cli._diff import Comparison, diff_json, differing, differing_steps, entry_lines
from reasonblocks_workbench.cli._lines import ASCII, Canvas, plain
from reasonblocks_workbench.replay import ReplayedRun, Stand
from reasonblocks_workbench.traces import RecordedRun
from tests.workbench.cli.conftest import Command, Write

CANVAS = Canvas(width=100, glyphs=ASCII)
TEXT = Injection(source="MonitorSteeringInjection", text="You loop.")
FAILED = {
    "thought": "I run it again.",
    "action": "run",
    "action_input": "x",
    "observation": "Error: no such module",
    "is_error": True,
}
LOOK = {"thought": "I look at the file.", "action": "ls", "action_input": ".", "observation": "a.py"}


def decided(*injections: Injection, state: FSMState = FSMState.NORMAL, **fields: Any) -> StepDecision:
    return StepDecision(step=1, fsm_state=state, injections=injections, **fields)


def replayed(*decisions: StepDecision, steps: int | None = None, outcome: str = "failure") -> ReplayedRun:
    count = len(decisions) if steps is None else steps
    run = RecordedRun(
        run_id="r-1", steps=tuple(Step(thought=f"Thought {index}.") for index in range(count)),
        usages=(Usage(),) * count, file="f.jsonl", line=1, outcome=outcome,
    )  # fmt: skip
    start, stands = StepDecision(step=0, fsm_state=FSMState.INIT), (Stand(Account(), Patience()),) * len(decisions)
    return ReplayedRun(run=run, start=start, decisions=decisions, stands=stands)


@pytest.mark.parametrize(
    "other",
    [
        decided(TEXT),
        decided(state=FSMState.SLOW),
        decided(route="SLOW"),
        decided(standing_rules="Check."),
    ],
)
def test_a_step_differs_by_its_text_state_route_or_rules(other: StepDecision) -> None:
    assert differing(replayed(decided(), decided()), replayed(decided(), other)) == [1]


@pytest.mark.parametrize("other", [decided(composite=0.9, difficulty=0.9), decided(gate_decision="cooldown")])
def test_scores_and_gates_alone_are_no_difference(other: StepDecision) -> None:
    assert differing(replayed(decided()), replayed(other)) == []


def test_the_placement_matters_only_where_something_is_said() -> None:
    here, there = (decided(TEXT, placement=where) for where in ("tail", "system"))
    assert differing(replayed(here, decided()), replayed(there, replace(decided(), placement="system"))) == [0]


def test_a_run_that_one_side_stops_differs_in_all_steps_after_that() -> None:
    whole, stopped = replayed(*[decided()] * 4), replayed(*[decided()] * 2, steps=4)
    assert differing(whole, stopped) == [2, 3]
    made: dict[str, Any] = diff_json([whole, stopped]) or {}
    assert [(step["step"], step["b"]) for step in made["steps"]] == [(2, None), (3, None)]
    lines = [plain(line) for line in differing_steps([whole, stopped], ["a.toml", "b.toml"], CANVAS, full=False)]
    assert lines.count("B  not decided: the run would have been stopped before") == 2


def test_an_observed_run_differs_only_where_it_would_be_stopped_first() -> None:
    held = decided(mode="observe", withheld_stop="stalled")
    sides = [replayed(*[decided(mode="observe")] * 4), replayed(decided(mode="observe"), held, held, held)]
    assert differing(*sides) == [1]
    assert "  B  NORMAL, would stop the run: stalled" in [plain(line) for line in entry_lines(sides, CANVAS)]
    shown = [plain(line) for line in differing_steps(sides, ["a.toml", "b.toml"], CANVAS, full=False)]
    assert "   | the run would be stopped, before step 2: stalled" in shown


def test_a_second_look_is_counted_apart() -> None:
    last = decided(gate_decision="final")
    sides = [replayed(decided(), end) for end in (last, replace(last, withheld=(TEXT,)))]
    comparison = Comparison()
    comparison.add(sides)
    rows = {row[0]: tuple(row[1:]) for row in comparison.table().rows}
    assert (rows["runs with a second look"], rows["interventions"]) == (("0", "1"), ("0", "0"))
    assert "  B  NORMAL, a second look would say: You loop." in [plain(line) for line in entry_lines(sides, CANVAS)]


def test_the_overview_counts_by_side_and_outcome() -> None:
    said, silent = replayed(decided(TEXT), decided()), replayed(decided(), decided())
    won = [replace(run, run=replace(run.run, outcome="success")) for run in (silent, said)]
    comparison = Comparison()
    for pair in ([said, silent], [said, said], won):
        comparison.add(pair)
    table = comparison.table()
    assert table.title == "2 of 3 runs are decided differently, in 2 of 6 steps"
    assert [tuple(row) for row in table.rows] == [
        ("interventions", "2", "2"),
        ("runs with an intervention, of 3", "2", "2"),
        ("  under this side only", "1", "1"),
        ("failing runs with an intervention, of 2", "2", "1"),
        ("  under this side only", "1", "0"),
        ("succeeding runs with an intervention, of 1", "0", "1"),
        ("  under this side only", "0", "1"),
    ]


CONTROLLED: Any = make_dataclass("CONTROLLED", [("stop", Any, None)], bases=(StepDecision,), frozen=True, kw_only=True)


def test_runs_that_one_side_stops_are_counted_and_named() -> None:
    stopped = replayed(CONTROLLED(step=1, fsm_state=FSMState.NORMAL, stop="stalled"), steps=2)
    pair = [replayed(decided(), decided()), stopped]
    comparison = Comparison()
    comparison.add(pair)
    assert [tuple(row) for row in comparison.table().rows if "stopped" in row[0]] == [
        ("runs that are stopped", "0", "1"),
        ("failing runs that are stopped", "0", "1"),
    ]
    assert [plain(line) for line in entry_lines(pair, CANVAS)][1:] == [
        "  A  NORMAL, says nothing",
        "  B  NORMAL, stops the run: stalled",
    ]


def test_an_entry_has_the_first_differing_step_and_what_each_side_does() -> None:
    quiet = decided(gate_decision="quiet", monitors_fired=("semantic_loop",))
    pair = [replayed(decided(), decided(TEXT, state=FSMState.SLOW)), replayed(decided(), quiet)]
    assert [plain(line) for line in entry_lines(pair, CANVAS)] == [
        "r-1  failure  1 of 2 steps differ, the first is step 1",
        "  A  SLOW, monitor says: You loop.",
        "  B  NORMAL, says nothing (too few dead steps)",
    ]


def test_one_run_shows_its_differing_steps_one_side_under_the_other() -> None:
    late = decided(gate_decision="cooldown", monitors_fired=("semantic_loop",), state=FSMState.SLOW)
    pair = [replayed(decided(TEXT), decided(), late), replayed(decided(TEXT), decided(), decided(TEXT))]
    lines = [plain(line) for line in differing_steps(pair, ["a.toml", "b.toml"], CANVAS, full=False)]
    at = lines.index("step 2")
    assert lines[at:] == [
        "step 2",
        "  Thought 2.",
        "A  SLOW",
        "   - silent (cooldown, the last text was 2 steps before): semantic_loop",
        "B  NORMAL",
        "   | monitor says, before step 3",
        "   | You loop.",
        "",
        "1 of 3 steps are decided differently",
    ]
    assert not any(line.startswith(("step 0", "step 1")) for line in lines)


@pytest.fixture
def path(write: Write) -> str:
    """A file with a run that loops and one that does not."""
    loop = {"run_id": "loop", "outcome": "failure", "steps": [FAILED] * 12}
    return write("runs.jsonl", {"run_id": "fine", "outcome": "success", "steps": [LOOK] * 2}, loop)


@pytest.fixture
def sides(write: Write) -> tuple[str, str]:
    """The shipped settings, and some with which the state machine never leaves NORMAL for SLOW."""
    thresholds = ("[fsm_thresholds]", "slow_threshold = 1.0", "skip_threshold = 1.0")
    return write("a.toml"), write("b.toml", *thresholds)


def test_the_overview_comes_first_and_then_every_differing_run(
    command: Command, path: str, sides: tuple[str, str]
) -> None:
    lines = command("replay", path, "--diff", *sides).out.splitlines()
    assert [line[:3] for line in lines[:2]] == ["A  ", "B  "]
    assert lines[2].startswith("1 of 2 runs are decided differently")
    entry = next(index for index, line in enumerate(lines) if line.startswith("loop"))
    assert [line[:9] for line in lines[entry + 1 :] if line[2] in "AB"] == ["  A  SLOW", "  B  NORM"]
    assert not any(line.startswith("fine") for line in lines)


def test_the_same_settings_never_differ(command: Command, path: str, sides: tuple[str, str]) -> None:
    done = command("replay", path, "--diff", sides[0], sides[0])
    assert (done.code, done.out.splitlines()[2]) == (0, "0 of 2 runs are decided differently, in 0 of 14 steps")
    assert command("replay", path, "--diff", sides[0], sides[0], "--json").out == ""


def test_json_is_one_object_per_differing_run(command: Command, path: str, sides: tuple[str, str]) -> None:
    (run,) = command("replay", path, "--diff", *sides, "--json").objects
    assert list(run) == ["run_id", "file", "source", "outcome", "start_differs", "interventions", "steps"]
    assert (run["run_id"], run["start_differs"], set(run["interventions"])) == ("loop", False, {"a", "b"})
    assert {(step["a"]["fsm_state"], step["b"]["fsm_state"]) for step in run["steps"]} == {("SLOW", "NORMAL")}
    single = command("replay", path, "--json", "--config", sides[1], "--run", "loop").objects[0]["steps"]
    shown = run["steps"][0]
    assert {"step": shown["step"], "call": shown["step"] + 1, **shown["b"]} == single[shown["step"]]


def test_rules_of_every_call_differ_once(command: Command, path: str, write: Write) -> None:
    run = write("run.toml", 'standing_rules = "run"')
    none = write("none.toml", "e_traces_enabled = false")
    runs = command("replay", path, "--diff", none, run, "--json").objects
    assert [(run["run_id"], run["start_differs"], len(run["steps"])) for run in runs if run["run_id"] == "fine"] == [
        ("fine", True, 0)
    ]


def test_one_run_is_compared_in_detail(command: Command, path: str, sides: tuple[str, str]) -> None:
    out = command("replay", path, "--diff", *sides, "--run", "loop").out
    assert out.startswith("loop  failure  12 steps\n")
    assert "A  SLOW" in out
    assert "B  NORMAL" in out
    assert command("replay", path, "--diff", *sides, "--run", "nothing").code == 1


def test_the_settings_of_the_command_hold_for_both_sides_and_override_them(
    command: Command, path: str, sides: tuple[str, str]
) -> None:
    options = ("--slow-threshold", "0.9", "--skip-threshold", "1.0")
    assert command("replay", path, "--diff", *sides, *options, "--json").out == ""


def test_the_config_file_holds_where_a_side_is_silent(command: Command, path: str, sides: tuple[str, str]) -> None:
    assert command("replay", path, "--config", sides[1], "--diff", *sides, "--json").out == ""


def test_a_side_overrides_the_config_file(command: Command, write: Write, path: str, sides: tuple[str, str]) -> None:
    shipped = write("s.toml", "[fsm_thresholds]", "slow_threshold = 0.45", "skip_threshold = 0.75")
    assert command("replay", path, "--config", sides[1], "--diff", shipped, sides[1], "--json").objects != []


def test_a_task_profile_of_a_side_goes_before_that_of_a_run(command: Command, write: Write) -> None:
    path = write("runs.jsonl", {"run_id": "r", "task_profile": "qa", "steps": [FAILED] * 4})
    coding = command("replay", path, "--task-profile", "coding", "--json").objects[0]["steps"]
    sides = write("a.toml", 'task_profile = "coding"'), write("b.toml", "[fsm_thresholds]", "slow_window = 1")
    (run,) = command("replay", path, "--diff", *sides, "--json").objects
    (first, *_) = run["steps"]
    assert first["a"]["composite"] == coding[first["step"]]["composite"] != first["b"]["composite"]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("token_buget = 9", "did you mean 'token_budget'"),
        ('api_key = "secret"', "unknown"),
        ("token_budget = -1", "b.toml: token_budget"),
        ("weights = [1]", "weights"),
        ("= nonsense", "is not TOML"),
    ],
)
def test_a_wrong_settings_file_is_a_usage_error_with_its_name(
    command: Command, write: Write, path: str, line: str, word: str
) -> None:
    done = command("replay", path, "--diff", write("a.toml"), write("b.toml", line))
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert word in done.err
    assert "b.toml" in done.err


def test_a_settings_file_that_is_not_there_is_a_usage_error(command: Command, path: str, tmp_path: Path) -> None:
    done = command("replay", path, "--diff", str(tmp_path / "none.toml"), str(tmp_path / "none.toml"))
    assert (done.code, "none.toml" in done.err) == (2, True)


def test_each_side_may_have_its_own_profile(command: Command, write: Write) -> None:
    look = {"thought": "I look at the file.", "action": "ls", "observation": "a.py"}
    runs = [
        {"run_id": f"r{at}", "source": "clerk", "task_key": str(at), "steps": [{**look, "action_input": str(at)}] * 3}
        for at in range(21)
    ]
    own = write("own.toml", 'profile = "own"')
    done = command("replay", write("runs.jsonl", *runs), "--diff", write("a.toml"), own)
    assert (done.code, " of 21 runs are decided differently" in done.out) == (0, True)
