"""`reasonblocks watch` shows runs while they are recorded."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reasonblocks import JsonlSink, ReasonBlocks, SQLiteMonitorSink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.types import JSON, RunInfo
from reasonblocks_testing import LoopHarness
from reasonblocks_testing.script import long_script
from reasonblocks_workbench.cli._lines import Canvas, cells, plain
from reasonblocks_workbench.cli._watch import RUNS_KEPT, Watched, WatchedRun, ago, board, event_lines, is_named, name_of
from tests.workbench.cli.conftest import Command

EVIL = "\x1b]0;pwned\x07\x1b[2J\u202enew\nline[red]x[/red]"


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A SQLite file with one long run."""
    path = tmp_path / "runs.db"
    harness = LoopHarness()
    with ReasonBlocks(sinks=[SQLiteMonitorSink(path)], pattern_store=None, profile=None) as rb:
        harness.run(rb, long_script(), harness.modes[0])
    return str(path)


def told_step(text: str = "Read the file first.", **fields: JSON) -> StepEvent:
    return StepEvent(
        run_id="r", step_index=4, timestamp=2.0, action="run_tests", injection_sources=("MonitorSteeringInjection",),
        intervention_texts=(text,), monitors_fired=("semantic_loop",), metadata={"fsm_state": "SLOW", **fields},
    )  # fmt: skip


def test_what_is_there_is_shown_once(command: Command, recorded: str) -> None:
    done = command("watch", recorded, "--once")
    assert done.code == 0
    lines = done.out.splitlines()
    assert "starts: Fix the failing tests" in lines[0]
    assert sum(bool(re.search(r" before call \d+ +[A-Z]", line)) for line in lines) == 61
    assert "monitor (semantic_loop" in done.out
    assert lines[-1].split("  ")[-1].startswith(("success", "failure"))


def test_only_texts_are_shown_if_they_are_asked_for(command: Command, recorded: str) -> None:
    steps = [
        line for line in command("watch", recorded, "--once", "--told").out.splitlines() if " before call " in line
    ]
    assert 0 < len(steps) < 20


def test_events_are_printed_as_json(command: Command, recorded: str) -> None:
    found = command("watch", recorded, "--once", "--json").objects
    assert [found[0]["event"], found[-1]["event"]] == ["run_start", "run_finish"]
    assert sum(event["event"] == "step" for event in found) >= 60


@pytest.mark.parametrize(
    ("option", "value", "shows"),
    [
        ("--run", "long", True),
        ("--run", "..long", True),
        ("--run", "other", False),
        ("--agent", "fixer", True),
        ("--agent", "x", False),
    ],
)
def test_runs_are_chosen(command: Command, recorded: str, option: str, value: str, shows: bool) -> None:
    done = command("watch", recorded, "--once", option, value)
    assert (bool(done.out), done.code) == (shows, 0 if shows else 1)
    assert shows or f"no steps of {option.strip('-')} {value!r} among the newest" in done.err


@pytest.mark.parametrize(
    ("name", "named"),
    [("abcdef12", True), ("..ef12", True), ("abcd", True), ("ef12", True), ("f12", False), ("bcde", False)],
)
def test_a_part_of_an_id_names_its_run(name: str, named: bool) -> None:
    assert is_named("abcdef12", name) == named


def test_a_missing_file_is_a_problem_if_nothing_is_waited_for(command: Command, tmp_path: Path) -> None:
    done = command("watch", str(tmp_path / "none.db"), "--once")
    assert (done.code, done.out) == (1, "")
    assert "no such file" in done.err


@pytest.mark.parametrize("width", [40, 56, 64, 76, 90, 110, 120])
def test_the_board_fits_the_terminal(width: int) -> None:
    rich = pytest.importorskip("rich.console")
    watched = Watched()
    watched.add(RunStart(run=RunInfo(run_id="r", agent_name="fixer", task="Fix the tests."), timestamp=1.0))
    watched.add(told_step("word " * 100))
    console = rich.Console(width=width, record=True, file=io.StringIO())
    console.print(board(watched, Canvas(width=width), 30, 10.0))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert max(map(cells, lines)) <= width
    assert sum("word" in line for line in lines) == 2
    assert any("live" in line and "fixer" in line for line in lines)


def test_a_file_of_another_kind_is_a_problem(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    done = command("watch", str(tmp_path / "a.txt"), "--once")
    assert done.code == 1
    assert "is not the file of a SQLiteMonitorSink or a JsonlSink" in done.err


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan", "1e9"])
def test_a_wrong_interval_is_a_usage_error(command: Command, value: str) -> None:
    assert command("watch", "x.db", "--interval", value).code == 2


def test_hostile_texts_are_harmless() -> None:
    watched = Watched()
    events: list[Event] = [
        RunStart(run=RunInfo(run_id=f"r{EVIL}", agent_name=EVIL, task=EVIL), timestamp=float("1e300")),
        StepEvent(run_id=f"r{EVIL}", step_index=1, timestamp=-1e300, action=EVIL, injection_sources=(EVIL,),
                  intervention_texts=(EVIL,), monitors_fired=(EVIL,),
                  metadata={"fsm_state": EVIL, "error": EVIL, "difficulty": "high", "withheld_texts": 5}),
        RunFinish(run_id=f"r{EVIL}", outcome=f"failure: {EVIL}", timestamp=3.0),
    ]  # fmt: skip
    for event in events:
        lines = [plain(line) for line in event_lines(event, watched.add(event), Canvas(), full=True, only_told=False)]
        assert all(part.isprintable() for line in lines for part in line.splitlines())


def test_lines_fit_the_width() -> None:
    watched, canvas = Watched(), Canvas(width=72)
    event = told_step("word " * 500)
    for line in event_lines(event, watched.add(event), canvas, full=False, only_told=False):
        assert cells(plain(line)) <= 96  # the head of a step may be longer than a narrow terminal
    texts = list(event_lines(event, watched.add(event), canvas, full=False, only_told=False))[1:]
    assert all(cells(plain(line)) <= canvas.width for line in texts)


def test_a_withheld_text_is_marked() -> None:
    watched = Watched()
    event = StepEvent(
        run_id="r", step_index=1, timestamp=1.0,
        metadata={"withheld_sources": ["E2Injection"], "withheld_texts": ["Read the assertion."]},
    )  # fmt: skip
    lines = event_lines(event, watched.add(event), Canvas(), full=True, only_told=True)
    text = "\n".join(map(plain, lines))
    assert "lesson, withheld" in text
    assert "Read the assertion." in text


def test_a_success_in_doubt_is_not_shown_as_a_success() -> None:
    watched = Watched()
    watched.add(told_step(final=True, doubts=[{"monitor": "claim_contradiction", "text": "It failed."}]))
    event = RunFinish(run_id="r", outcome="success", timestamp=3.0)
    (line,) = event_lines(event, watched.add(event), Canvas(), full=False, only_told=True)
    assert plain(line).endswith("success (in doubt)")


@pytest.mark.parametrize("difficulty", [float("nan"), float("inf"), True, "high", 10**400])
def test_a_difficulty_that_is_no_number_is_not_drawn(difficulty: JSON) -> None:
    watched = Watched()
    event = told_step(difficulty=difficulty)
    run = watched.add(event)
    assert run.difficulties[-1] is None
    assert len(list(event_lines(event, run, Canvas(), full=False, only_told=False))) > 1


def test_the_newest_runs_are_kept() -> None:
    watched = Watched()
    for at in range(RUNS_KEPT + 10):
        watched.add(RunStart(run=RunInfo(run_id=str(at)), timestamp=float(at)))
    assert (len(watched.runs), next(iter(watched.runs))) == (RUNS_KEPT, "10")
    assert watched.live == RUNS_KEPT


def test_a_run_that_continues_after_its_end_is_live_again() -> None:
    watched = Watched()
    watched.add(RunFinish(run_id="r", outcome="failure: abandoned", timestamp=1.0))
    assert watched.add(told_step()).outcome is None


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (WatchedRun(run_id="0123456789abcdef0123456789abcdef", agent_name="fixer"), "fixer ..89abcdef"),
        (WatchedRun(run_id="run-1", agent_name="fixer"), "fixer run-1"),
        (WatchedRun(run_id="run-1"), "run-1"),
    ],
)
def test_a_run_has_a_short_name(run: WatchedRun, name: str) -> None:
    assert name_of(run) == name


@pytest.mark.parametrize(("seconds", "text"), [(-1, ""), (5, "5 s"), (600, "10 min"), (7200, "2 h"), (1e300, "")])
def test_a_time_since_is_short(seconds: float, text: str) -> None:
    assert ago(seconds) == text


def test_the_board_shows_runs_and_texts() -> None:
    rich = pytest.importorskip("rich.console")
    watched = Watched()
    watched.add(RunStart(run=RunInfo(run_id="r", agent_name="f\x1b[2J", task="[bold]Fix[/bold]"), timestamp=1.0))
    watched.add(told_step())
    console = rich.Console(width=120, record=True, file=io.StringIO())
    console.print(board(watched, Canvas(), 30, 10.0))
    text = console.export_text()
    assert "1 live, 0 finished" in text
    assert "[bold]Fix[/bold]" in text
    assert "Read the file first." in text
    assert "\x1b]0" not in text


# ------------------------------------------------------------ in a process of its own


@contextmanager
def process(path: str, *options: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Run the command. Ctrl-C reaches it even if these tests run in the background, where a shell ignores it."""
    argv = [sys.executable, "-m", "reasonblocks", "watch", path, "--interval", "0.05", *options]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(argv, stdout=stdout, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with child:
        try:
            yield child
        finally:
            child.kill()


def test_new_steps_appear_and_ctrl_c_ends_it_well(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with process(str(path)) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "waiting for" in watching.stderr.readline()
        sink = JsonlSink(path)
        sink.emit(RunStart(run=RunInfo(run_id="r", task="Fix it."), timestamp=time.time()))
        assert "starts: Fix it." in watching.stdout.readline()
        sink.emit(told_step())
        assert "run_tests" in watching.stdout.readline()
        assert "monitor (semantic_loop)" in watching.stdout.readline()
        sink.close()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0
        assert watching.stderr.read() == ""


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_the_board(recorded: str) -> None:
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    with process(recorded, stdout=theirs) as watching:
        os.close(theirs)
        seen, ends = b"", time.monotonic() + 30
        while b"finished" not in seen and time.monotonic() < ends:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65_536)
        watching.send_signal(signal.SIGINT)
        while select.select([ours], [], [], 5)[0]:
            try:
                if not os.read(ours, 65_536):
                    break
            except OSError:
                break
        assert watching.wait(20) == 0
    os.close(ours)
    assert b"0 live, 1 finished" in seen


def test_an_event_is_printed_as_the_sink_wrote_it(command: Command, tmp_path: Path) -> None:
    event = told_step(f"Read {EVIL}")
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(event.as_dict()) + "\n", encoding="utf-8")
    assert command("watch", str(path), "--once", "--json").objects == [event.as_dict()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello: 5\n", "is not the file of a SQLiteMonitorSink or a JsonlSink"),
        ('{"a": 1}\n', "its newest line is not an event"),
        ('{\n  "a": 1\n}\n', "its newest line is not JSON"),
        ('{"a": 1}', "its first line is not complete"),
        ("", "no such file, or an empty one"),
    ],
)
def test_why_nothing_was_read_is_said(command: Command, tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8")
    done = command("watch", str(path), "--once")
    assert (done.code, done.out) == (1, "")
    assert f"{path}: {reason}" in done.err


def test_a_database_without_steps_says_so(command: Command, tmp_path: Path) -> None:
    sink = SQLiteMonitorSink(tmp_path / "a.db")
    sink.emit(RunStart(run=RunInfo(run_id="r"), timestamp=1.0))
    sink.close()
    assert "a.db: it has no steps\n" in command("watch", str(tmp_path / "a.db"), "--once").err


def test_a_file_that_may_never_be_a_log_is_waited_for_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"a": 1}\n', encoding="utf-8")
    with process(str(path)) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert select.select([watching.stderr], [], [], 60)[0]
        said = watching.stderr.readline()
        assert f"{path}: its newest line is not an event" in said
        assert said.endswith("; waiting for the events of a SQLiteMonitorSink or a JsonlSink\n")
        with path.open("a", encoding="utf-8") as file:
            file.write('{"b": 1}\n')
        sink = JsonlSink(path)
        sink.emit(RunStart(run=RunInfo(run_id="r", task="Fix it."), timestamp=time.time()))
        sink.close()
        assert "starts: Fix it." in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0
        assert watching.stderr.read() == ""
