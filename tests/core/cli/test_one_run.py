"""One run, step by step, as `--run` shows it."""

from __future__ import annotations

from reasonblocks._replay import ReplayedRun
from reasonblocks.cli._replay_command import run_lines
from reasonblocks.traces import RecordedRun
from reasonblocks.types import FSMState, Injection, Step, StepDecision, ToolCall, Usage

RULES = Injection(source="E3Injection", text="Check what you change.")
TEXT = Injection(source="MonitorSteeringInjection", text="Steps 0 and 1 ran \x1b[31mls\nand got the same.")


def lines(task: str = "", thought: str = "", *injections: Injection) -> list[str]:
    steps = (Step(thought=thought), Step(tool_calls=(ToolCall(id="1", name="ls", arguments={"path": "."}),)))
    run = RecordedRun(
        run_id="r-1", steps=steps, usages=(Usage(),) * 2, file="f.jsonl", line=7, outcome="failure", task=task
    )
    decided = StepDecision(
        step=1,
        fsm_state=FSMState.SLOW,
        difficulty=0.756,
        monitors_fired=("semantic_loop",),
        gate_decision="inject",
        injections=injections,
    )
    final = StepDecision(step=2, fsm_state=FSMState.NORMAL, gate_decision="final", skipped_reason="unavailable")
    start = StepDecision(step=0, fsm_state=FSMState.INIT, injections=(RULES,))
    return list(run_lines(ReplayedRun(run=run, start=start, decisions=(decided, final))))


def test_the_title_says_which_run() -> None:
    assert lines()[0] == "r-1  failure  2 steps  f.jsonl:7"


def test_a_long_task_is_cut() -> None:
    task = lines("fix " * 99)[1]
    assert task.startswith("task: fix")
    assert task.endswith("...")


def test_a_row_tells_what_was_decided_after_the_step() -> None:
    assert lines("", "I look.")[5].split() == ["0", "SLOW", "0.76", "semantic_loop", "inject", "I", "look."]


def test_the_last_row_is_final() -> None:
    assert lines()[-1].split() == ["1", "NORMAL", "-", "-", "final", "unavailable", "ls", '{"path":"."}']


def test_injected_text_stands_below_its_step_line_by_line() -> None:
    found = lines("", "", TEXT)
    at = found.index("      > MonitorSteeringInjection")
    assert found[at - 1].startswith("0 ")
    assert found[at + 2] == "      | and got the same."


def test_the_first_call_shows_its_standing_rules() -> None:
    assert "      | Check what you change." in lines()


def test_no_control_character_reaches_the_terminal() -> None:
    shown = lines("a\x1b[2Jb", "c\x07d\nnext", TEXT)
    assert [line for line in shown if not line.isprintable()] == []
