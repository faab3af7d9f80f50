"""One run, step by step, as `--run` shows it."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from typing import Any

import pytest

from reasonblocks.types import Doubt, FSMState, Injection, Step, StepDecision, ToolCall, ToolResult, Usage
from reasonblocks_workbench.cli._lines import ASCII, Canvas, canvas, cells, plain
from reasonblocks_workbench.cli._run_view import run_lines
from reasonblocks_workbench.replay import ReplayedRun
from reasonblocks_workbench.traces import RecordedRun
from tests.workbench.cli.conftest import Command, Write

RULES = Injection(source="E3Injection", text="Check what you change.", pattern_ids=("rb-check",))
TEXT = Injection(source="MonitorSteeringInjection", text="Steps 0 and 1 ran \x1b[31mls\nand got the same.")
LESSON = Injection(source="E2Injection", text="Look at the error first.", pattern_ids=("rb-loop",))
LS = ToolCall(id="1", name="ls", arguments={"path": "."})
START = StepDecision(step=0, fsm_state=FSMState.INIT, injections=(RULES,))


def decided(index: int = 0, **fields: Any) -> StepDecision:
    return StepDecision(step=index + 1, **{"fsm_state": FSMState.NORMAL, "difficulty": 0.5, **fields})


def looping(*injections: Injection, gate: Any = "inject", **fields: Any) -> StepDecision:
    return decided(
        fsm_state=FSMState.SLOW, difficulty=0.756, monitors_fired=("semantic_loop",), failure_type="loop",
        gate_decision=gate, injections=injections, **fields,
    )  # fmt: skip


def replayed(*decisions: StepDecision, steps: tuple[Step, ...] = (), **header: Any) -> ReplayedRun:
    steps = steps or tuple(Step(thought=f"Thought {index}.", tool_calls=(LS,)) for index in range(len(decisions)))
    known: dict[str, Any] = {"run_id": "r-1", "file": "f.jsonl", "line": 7, "outcome": "failure", **header}
    run = RecordedRun(steps=steps, usages=tuple(Usage(output=1_234) for _ in steps), **known)
    return ReplayedRun(run=run, start=START, decisions=decisions)


def lines(run: ReplayedRun, width: int = 100, **how: bool) -> list[str]:
    return [plain(line) for line in run_lines(run, Canvas(width=width, glyphs=ASCII), **how)]


def shown(*steps: Step, width: int = 100, **how: bool) -> list[str]:
    """Return the lines below the head of the first step."""
    found = lines(replayed(*(decided() for _ in steps), steps=steps), width, **how)
    at = next(index for index, line in enumerate(found) if line.startswith("step 0"))
    return found[at + 1 :]


def test_the_title_names_the_run_its_outcome_its_length_and_its_place() -> None:
    title, place, *_ = lines(replayed(decided(), decided(), source="mine", model="big", task_profile="qa"))
    assert title == "r-1  failure  2 steps, no text"
    assert place == "mine, big, task profile: qa, f.jsonl:7"


def test_a_long_task_is_cut() -> None:
    found = lines(replayed(decided(), task="fix " * 999))
    task = found[found.index(next(line for line in found if line.startswith("task"))) :][:4]
    assert task[0].startswith("task        fix")
    assert any(line.endswith("...") for line in task)


def test_the_head_of_a_step_has_its_state_difficulty_and_tokens() -> None:
    assert "step 0  SLOW    ########.. 0.76  1,234 tokens" in lines(replayed(looping(TEXT)))


def test_a_step_shows_its_thought_its_calls_and_their_results() -> None:
    step = Step(thought="I look.", tool_calls=(LS,), tool_results=(ToolResult(call_id="1", output="a.py\nb.py"),))
    assert shown(step)[:4] == ["  I look.", "  > ls  .", "    : a.py", "    : b.py"]


def test_parallel_calls_are_shown_each_with_its_result() -> None:
    calls = (LS, ToolCall(id="2", name="cat", arguments={"path": "a.py", "lines": 3}), ToolCall(id="3", name="pwd"))
    results = (ToolResult(call_id="2", output="two"), ToolResult(call_id="1", output="one"))
    assert shown(Step(tool_calls=calls, tool_results=results))[:5] == [
        "  > ls  .", "    : one", "  > cat  path=a.py  lines=3", "    : two", "  > pwd",
    ]  # fmt: skip


def test_results_without_the_id_of_a_call_go_by_their_position() -> None:
    calls = (ToolCall(id="", name="ls"), ToolCall(id="", name="pwd"))
    results = tuple(ToolResult(call_id="", output=text, name="late") for text in ("one", "two", "three"))
    assert shown(Step(tool_calls=calls, tool_results=results))[:6] == [
        "  > ls", "    : one", "  > pwd", "    : two", "  > late", "    : three",
    ]  # fmt: skip


def test_an_error_is_marked() -> None:
    result = ToolResult(call_id="1", output="nothing there", is_error=True)
    assert shown(Step(tool_calls=(LS,), tool_results=(result,)))[1:3] == ["    : error", "    : nothing there"]


def test_a_result_that_announces_an_error_is_marked_unless_the_recording_denies_it() -> None:
    def of(is_error: bool | None) -> bool:
        result = ToolResult(call_id="1", output="Error: no such file", is_error=is_error)
        return "    : error" in shown(Step(tool_calls=(LS,), tool_results=(result,)))

    assert (of(None), of(False)) == (True, False)


def test_a_result_without_text_says_so() -> None:
    assert "    : no output" in shown(Step(tool_calls=(LS,), tool_results=(ToolResult(call_id="1", output=" \n"),)))


def test_a_long_result_keeps_its_first_and_last_lines() -> None:
    output = "\n".join(f"line {index}" for index in range(1_000))
    found = shown(Step(tool_calls=(LS,), tool_results=(ToolResult(call_id="1", output=output),)))[1:7]
    assert found[:3] == [f"    : line {index}" for index in range(3)]
    assert found[3] == "    : ... 8,855 characters ..."
    assert found[4:] == ["    : line 998", "    : line 999"]


def test_full_shows_every_line_of_every_text() -> None:
    output, thought = ("\n".join(f"{what} {index}" for index in range(50)) for what in ("line", "thought"))
    call = ToolCall(id="1", name="write", arguments={"path": "a.py", "text": "one\ntwo " + "long " * 99})
    step = Step(
        thought=thought,
        reasoning="a reason",
        tool_calls=(call,),
        tool_results=(ToolResult(call_id="1", output=output),),
    )
    found = shown(step, full=True)
    assert [index for index in range(50) if f"    : line {index}" not in found] == []
    assert [index for index in range(50) if f"  thought {index}" not in found] == []
    assert "  a reason" in found
    assert " ".join(found).count("long") == 99


def test_the_reasoning_stands_in_for_a_missing_thought() -> None:
    assert shown(Step(reasoning="I wonder."))[:2] == ["  reasoning", "  I wonder."]


def test_what_is_said_stands_between_its_step_and_the_next_one() -> None:
    found = lines(replayed(looping(TEXT), decided()))
    at = found.index("| monitor says, before step 1: loop (semantic_loop)")
    assert found[at + 1 : at + 3] == ["| Steps 0 and 1 ran ls", "| and got the same."]
    assert [line[:6] for line in found[:at] if line.startswith("step")] == ["step 0"]


def test_a_lesson_is_named_by_its_patterns() -> None:
    assert "| lesson says, before step 1: rb-loop" in lines(replayed(looping(TEXT, LESSON), decided()))


def test_the_lesson_in_the_text_of_a_monitor_is_named() -> None:
    text = Injection(source="MonitorSteeringInjection", text="You loop.", pattern_ids=("rb-loop",))
    assert "| monitor says, before step 1: loop (semantic_loop) with lesson rb-loop" in lines(replayed(looping(text)))


def test_a_text_of_steering_is_never_clipped() -> None:
    long = Injection(source="MonitorSteeringInjection", text="\n".join(f"part {index}" for index in range(40)))
    assert [index for index in range(40) if f"| part {index}" not in lines(replayed(looping(long)))] == []


def test_the_first_call_shows_its_standing_rules() -> None:
    found = lines(replayed(decided()))
    at = found.index("| standing rules, before the first call")
    assert found[at + 1] == "| Check what you change."


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ("quiet", "too few dead steps"),
        ("cap", "the run has had all its texts"),
        ("duplicate", "there is nothing new to say"),
        ("unavailable", "no evaluation"),
        ("final", "no call follows"),
        ("inject", "its text did not fit, or is in the history already"),
        (None, "steering is off"),
    ],
)
def test_a_monitor_that_fires_in_silence_has_its_reason(gate: Any, why: str) -> None:
    assert f"  - silent ({why}): loop (semantic_loop)" in lines(replayed(looping(gate=gate)))


def test_a_cooldown_counts_from_the_last_text() -> None:
    found = lines(replayed(looping(TEXT), decided(), looping(gate="cooldown")))
    assert "  - silent (cooldown, the last text was 2 steps before): loop (semantic_loop)" in found


def test_a_lesson_neither_ends_a_silence_nor_counts_for_the_cooldown() -> None:
    found = lines(replayed(looping(TEXT), looping(LESSON, gate="quiet"), looping(gate="cooldown")))
    assert "  - silent (too few dead steps): loop (semantic_loop)" in found
    assert "  - silent (cooldown, the last text was 2 steps before): loop (semantic_loop)" in found


def test_a_quiet_step_on_which_nothing_fired_needs_no_reason() -> None:
    assert not any("silent (" in line for line in lines(replayed(decided(gate_decision="quiet"))))


@pytest.mark.parametrize(("reason", "words"), [("fault", "steering failed"), ("unavailable", "gave no answer")])
def test_a_step_without_steering_says_why(reason: Any, words: str) -> None:
    assert any(words in line for line in lines(replayed(decided(skipped_reason=reason))))


def test_the_course_of_the_difficulty_has_a_mark_below_each_step_with_a_text() -> None:
    found = lines(replayed(decided(difficulty=0.0), looping(TEXT), decided(difficulty=1.0)))
    drawn = [line for line in found if line.startswith(("difficulty", "said  "))]
    assert drawn[:2] == ["difficulty  _*#", "said         ^"]


def test_a_long_course_fits_and_says_how_many_steps_a_column_has() -> None:
    found = lines(replayed(*(decided(index) for index in range(1_000))), 60)
    assert max(map(cells, found)) <= 60
    assert any("the highest of 21 steps in each column" in line for line in found)


def test_the_end_sums_up_what_was_said_and_what_was_not() -> None:
    last = decided(doubts=(Doubt(monitor="claim_contradiction", text="The tests failed."),))
    found = lines(replayed(looping(TEXT, LESSON), looping(gate="cooldown"), last, outcome="success"))
    assert found[-5:] == [
        "outcome     success",
        "said        1 by a monitor, 1 by a lesson; after step 0",
        "silent      cooldown 1",
        "states      SLOW 2, NORMAL 1",
        "doubt       claim_contradiction: The tests failed.",
    ]


def test_only_the_steps_with_a_text_are_shown_and_the_others_counted() -> None:
    found = lines(replayed(decided(), decided(), looping(TEXT), decided()), only_said=True)
    assert [line for line in found if line.startswith(("step", "..."))] == [
        "... 2 steps without a text ...",
        "step 2  SLOW    ########.. 0.76  1,234 tokens",
        "... 1 step without a text ...",
    ]


def test_the_steps_after_the_end_of_a_stopped_run_are_shown_as_not_decided() -> None:
    run = replayed(decided(), looping(TEXT), steps=tuple(Step(thought=f"Thought {index}.") for index in range(4)))
    found = lines(run)
    at = found.index("not decided from here on: the run is stopped")
    assert [line.split()[:2] for line in found[:at] if line.startswith("step")] == [["step", "0"], ["step", "1"]]
    assert [line for line in found[at:] if line.startswith("step")] == ["step 2  1,234 tokens", "step 3  1,234 tokens"]


def test_rules_of_every_call_are_shown_once(command: Command, write: Write) -> None:
    path = write("a.jsonl", {"run_id": "r", "steps": [{"thought": f"Thought {index}."} for index in range(5)]})
    out = command("replay", path, "--run", "r", "--standing-rules", "run").out
    assert out.count("standing rules, before") == 1
    assert out.index("standing rules, before the first call") < out.index("Thought 0.")


def test_a_run_without_steps_has_a_head_and_an_end() -> None:
    found = lines(replayed(outcome=None))
    assert (found[0], found[-2]) == ("r-1  outcome unknown  0 steps, no text", "outcome     unknown")


def test_what_observing_withholds_is_shown_as_what_would_be_said() -> None:
    seen = StepDecision(
        step=1, fsm_state=FSMState.SLOW, failure_type="loop", mode="observe", withheld=(TEXT,), withheld_stop="stalled"
    )
    found = lines(replayed(seen, decided()))
    assert "| monitor would say, before step 1: loop" in found
    assert "| the run would be stopped, before step 1: stalled" in found
    assert found[-3:-1] == ["would stop  before step 1: stalled", "would say   1 by a monitor; after step 0"]
    assert found[0] == "r-1  failure  2 steps, 1 text withheld, would be stopped before step 1"


def test_an_observed_run_that_goes_on_shows_only_its_first_stop() -> None:
    seen = decided(mode="observe", withheld_stop="mine", monitors_fired=("semantic_loop",), gate_decision="cap")
    found = lines(replayed(decided(), seen, seen, decided()))
    assert [line for line in found if "would be stopped," in line] == [
        "| the run would be stopped, before step 2: mine"
    ]
    assert [line for line in found if "silent (" in line] == [
        "  - silent (the run has had all its texts): semantic_loop"
    ] * 2


def test_the_verdict_is_in_the_first_line() -> None:
    last = decided(doubts=(Doubt(monitor="claim_contradiction", text="The tests failed."),))
    assert lines(replayed(looping(TEXT, LESSON), last))[0] == "r-1  failure  2 steps, 2 texts, ends in doubt"
    stopped = replayed(looping(TEXT), decided(stop="mine"), steps=(Step(thought="One."),) * 9)
    assert lines(stopped)[0] == "r-1  failure  9 steps, 1 text, stopped before step 2"


def test_a_verdict_that_does_not_fit_is_wrapped_and_not_cut() -> None:
    found = lines(replayed(decided(), decided(stop="mine"), steps=(Step(),) * 9, run_id="r" * 30), width=56)
    assert found[:3] == ["r" * 30, "  failure  9 steps, no text, stopped before step 2", "f.jsonl:7"]
    found = lines(replayed(decided(stop="mine"), steps=(Step(),) * 9, outcome="failure: " + "x" * 20), width=56)
    assert found[1:3] == [
        "  failure: xxxxxxxxxxxxxxxxxxxx  9 steps, no text,",
        "                                 stopped before step 1",
    ]


def test_the_course_of_the_difficulty_marks_a_stop_and_a_doubtful_end() -> None:
    run = replayed(looping(TEXT), decided(), decided(stop="mine"), steps=(Step(),) * 5)
    assert [line for line in lines(run) if line.startswith(("said  ", "stopped  ", "doubt  "))][:2] == [
        "said        ^", "stopped       x",
    ]  # fmt: skip
    doubtful = replayed(decided(), decided(doubts=(Doubt(monitor="claim_contradiction", text="No."),)))
    assert "doubt        ?" in lines(doubtful)


def lasting(*fired: tuple[str, ...], told: int = 1, **last: Any) -> ReplayedRun:
    """Return a run that is told so many texts, and then stopped as stalled after steps on which these fired."""
    newest = [decided(monitors_fired=names, gate_decision="quiet") for names in fired[:-1]]
    final = decided(monitors_fired=fired[-1], gate_decision="final", stop="stalled", **last)
    return replayed(*[looping(TEXT)] * told, *newest, final, steps=(Step(),) * 20)


def stop_line(run: ReplayedRun) -> str:
    (line,) = (line for line in lines(run, width=120) if line.startswith("| the run"))
    return line.partition(": ")[2]


def test_a_stalled_run_says_that_it_is_in_skip() -> None:
    assert stop_line(lasting(("a",), fsm_state=FSMState.SKIP)) == "stalled (state SKIP)"


def test_a_stalled_run_names_the_only_monitor_that_fired_to_its_end() -> None:
    run = lasting(*[("a", "b")] * 4, ("a",), *[("a", "b")] * 3)
    why = "stalled (a was told of, and fired on each of the last 8 steps)"
    assert stop_line(run) == why
    assert f"stopped     before step 9: {why}" in lines(run)


def test_the_kinds_of_the_findings_tell_which_monitor_had_its_texts() -> None:
    both = ("semantic_loop", "cyclic_compression")
    churning = looping(TEXT, finding_kind="stale")
    stop = decided(monitors_fired=both, gate_decision="final", stop="stalled")
    newest = [decided(monitors_fired=both)] * 7
    run = replayed(looping(TEXT), churning, *newest, stop, steps=(Step(),) * 12)
    assert stop_line(run).startswith("stalled (cyclic_compression was")
    run = replayed(looping(TEXT), looping(TEXT, finding_kind="error"), *newest, stop, steps=(Step(),) * 12)
    assert stop_line(run).startswith("stalled (semantic_loop was")


def test_a_stalled_run_does_not_choose_between_monitors() -> None:
    assert stop_line(lasting(*[("b", "a")] * 8)).startswith("stalled (one of a, b was told of")


@pytest.mark.parametrize(
    "run", [lasting(*[("a",)] * 8, told=0), lasting(*[("a",)] * 4, ("b",), *[("a",)] * 3), lasting(("a",))]
)
def test_a_stop_that_the_decisions_do_not_explain_has_its_reason_alone(run: ReplayedRun) -> None:
    assert stop_line(run) == "stalled"


def test_a_text_that_on_injection_drops_is_not_called_too_little_evidence() -> None:
    dropped = looping(gate="quiet", dropped=("MonitorSteeringInjection",))
    found = lines(replayed(dropped, looping(gate="quiet", dropped=("E1Injection",))))
    assert [line for line in found if "silent" in line] == [
        "  - silent (dropped by on_injection): loop (semantic_loop)",
        "  - silent (too few dead steps): loop (semantic_loop)",
        "silent      dropped 1, quiet 1",
    ]


def test_a_second_look_is_shown_at_the_end_and_is_no_intervention() -> None:
    run = replayed(decided(), looping(gate="final", withheld=(TEXT,)))
    found = lines(run, only_said=True)
    at = found.index("| a second look would say, after step 1: loop (semantic_loop)")
    assert found[at + 1] == "| Steps 0 and 1 ran ls"
    assert [line for line in found if line.startswith(("step", "said", "second"))] == [
        "step 1  SLOW    ########.. 0.76  1,234 tokens",
        "said        nothing but standing rules",
        "second look would follow step 1",
    ]
    assert (found[0], "silent" in " ".join(found)) == ("r-1  failure  2 steps, no text", False)


def test_the_end_of_a_stopped_run_has_its_reason() -> None:
    stopped = StepDecision(
        step=1, fsm_state=FSMState.SLOW, monitors_fired=("semantic_loop",), gate_decision="final", stop="stalled"
    )
    found = lines(replayed(stopped, steps=(Step(thought="One."), Step(thought="Two."))))
    assert "| the run is stopped, before step 1: stalled" in found
    assert "stopped     before step 1: stalled" in found
    assert not any("silent (" in line for line in found)


def test_no_control_character_reaches_the_terminal() -> None:
    evil = "c\x07d\x1b[2J\u202e\u2066\u200b\r\u2028next"
    call = ToolCall(id="1", name=evil, arguments={evil: evil, "b": [evil]})
    result = ToolResult(call_id="1", output=evil, is_error=True)
    step = Step(thought=evil, reasoning=evil, tool_calls=(call,), tool_results=(result, result))
    run = replayed(looping(TEXT), steps=(step,), task=evil, run_id=evil, source=evil, outcome=evil)
    assert [line for how in (False, True) for line in lines(run, full=how) if not line.isprintable()] == []


@pytest.mark.parametrize("width", [56, 60, 100])
def test_every_line_keeps_within_the_width(width: int) -> None:
    wide = "漢字 🛹 e\u0301" * 80
    call = ToolCall(id="1", name="run_a_tool_with_a_rather_long_name", arguments={"key": wide, "other": wide})
    step = Step(thought=wide, tool_calls=(call,), tool_results=(ToolResult(call_id="1", output=wide),))
    said = Injection(source="MonitorSteeringInjection", text=wide)
    run = replayed(looping(said), looping(gate="quiet"), steps=(step, step), task=wide, run_id="r" * 40)
    assert max(map(cells, lines(run, width))) <= width
    doubt = Doubt(monitor="claim_contradiction", text=wide)
    for end in (decided(stop=wide), decided(gate_decision="final", withheld=(said,), doubts=(doubt,), mode="observe")):
        ended = replayed(looping(said), *(decided() for _ in range(99)), end, steps=(Step(),) * 300, outcome="o" * 99)
        assert max(map(cells, lines(ended, width))) <= width


@dataclass
class Terminal(io.StringIO):
    """A stdout of an encoding."""

    encoding: str = "ascii"


@pytest.mark.parametrize(("encoding", "drawn"), [("ascii", False), ("utf-8", True)])
def test_an_encoding_without_unicode_gets_ascii(monkeypatch: pytest.MonkeyPatch, encoding: str, drawn: bool) -> None:
    monkeypatch.setattr("sys.stdout", Terminal(encoding))
    assert all(getattr(canvas().glyphs, part.name).isascii() for part in fields(ASCII)) is not drawn


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("9", 56), ("999", 120)])
def test_the_width_is_that_of_the_terminal_within_limits(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert canvas().width == width


def test_full_without_a_run_is_a_usage_error_that_names_the_flag_as_it_is_typed(command: Command, write: Write) -> None:
    done = command("replay", write("a.jsonl", {"steps": []}), "--full")
    assert (done.code, done.err) == (
        2,
        "reasonblocks: --full: add --run ID or --only-injected, whose texts it shows whole\n",
    )
