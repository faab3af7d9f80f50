"""What sinks are told, and that none of them ever delays or breaks a run."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.session import Telemetry
from reasonblocks.types import RunInfo, Step, StepInput, StepOutcome, ToolCall
from tests.core.test_guests import raiser, says
from tests.core.world import Hang, RecordingSink, begin, called, client, hanging, run, speaks, step, through_json

START = RunStart(run=RunInfo(run_id="run", task="a task"), timestamp=1.0)
FINISH = RunFinish(run_id="run", outcome="success", timestamp=9.0)
SCORES = {"semantic_loop": 0.9, "late_sprawl": 0.1}


def told(number: int, **more: Any) -> StepEvent:
    return StepEvent(run_id="run", step_index=number, timestamp=float(number), **more)


def whole_run(calls: int = 3, *, store_text: str = "Text one. Look.", **options: Any) -> list[Event]:
    sink = RecordingSink()
    rb = client(speaks(store_text, failure_type="loop", scores=SCORES), sinks=[sink], **options)
    session = rb.session(run_id="run", task="a task", agent_name="coder", metadata={"ticket": 7})
    run(session, calls)
    session.finish(completed=step(calls - 1))
    session.close()
    return sink.events


# ------------------------------------------------------------ order and content


def test_a_run_is_told_as_start_steps_final_finish() -> None:
    kinds = [(type(event).__name__, getattr(event, "step_index", None)) for event in whole_run(3)]
    steps = [("StepEvent", number) for number in range(4)]
    assert kinds == [("RunStart", None), *steps, ("RunFinish", None)]


def test_run_start_says_what_the_run_is() -> None:
    start = whole_run(1)[0]
    assert isinstance(start, RunStart)
    run = start.run
    assert (run.run_id, run.task, run.agent_name, run.framework, run.model, run.metadata) == (
        "run", "a task", "coder", "custom", "agent-model", {"ticket": 7},
    )  # fmt: skip


def step_events(**options: Any) -> list[StepEvent]:
    return [event for event in whole_run(3, **options) if isinstance(event, StepEvent)]


def test_step_event_n_carries_the_completed_step_before_it_and_model_and_tokens_of_call_n() -> None:
    events = step_events()[:3]
    assert [(event.thought, event.action, event.action_input, event.observation) for event in events] == [
        ("", "", "", ""),
        ("thought-0-", "read_file", '{"path":"f0"}', "fine"),
        ("thought-1-", "read_file", '{"path":"f1"}', "fine"),
    ]
    told = [(one.step_model, one.tokens, one.input_tokens, one.output_tokens) for one in events]
    assert told == [("agent-model", 12, 10, 2)] * 3


def test_a_step_event_carries_every_monitors_score_and_what_was_injected() -> None:
    event = step_events()[1]
    assert event.scores == SCORES
    assert (event.injection_sources, event.intervention_texts, event.monitors_fired, event.failure_type) == (
        ("MonitorSteeringInjection",), ("Text one. Look.",), ("semantic_loop",), "loop",
    )  # fmt: skip


def test_the_final_step_is_one_last_event_that_says_so_and_carries_the_last_completed_step() -> None:
    *others, final = step_events()
    assert (final.step_index, final.metadata["final"], final.step_model, final.tokens) == (3, True, None, None)
    assert (final.thought, final.action, final.observation) == ("thought-2-", "read_file", "fine")
    assert ["final" in event.metadata for event in others] == [False] * 3


def test_the_step_that_a_run_was_left_at_is_told_whole_by_whoever_goes_on() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    left = rb.session()
    run(left, 1)
    begin(left, 1, key="k1")
    left.pause()
    session = rb.session(snapshot=through_json(left.trace.snapshot()))
    session.end_step(begin(session, 1, key="k1"), called(1))
    session.close()
    assert [event.thought for event in sink.events if isinstance(event, StepEvent)][:2] == ["", "thought-0-"]


def test_the_events_of_the_built_in_monitors_are_json() -> None:
    from reasonblocks import ReasonBlocks

    sink = RecordingSink()
    session = ReasonBlocks(sinks=[sink], strict=True).session()
    run(session, 3)
    session.close()
    kinds = [json.loads(json.dumps(event.as_dict()))["event"] for event in sink.events]
    assert kinds[:3] == ["run_start", "step", "step"]


def test_a_step_event_is_told_when_nothing_can_change_it_any_more() -> None:
    sink = RecordingSink()
    session = client(sinks=[sink]).session()
    decision = begin(session, 0)
    session.end_step(decision, StepOutcome(model="first"))
    session.end_step(decision, StepOutcome(model="second"))
    begin(session, 1)
    session.close()
    steps = [event for event in sink.events if isinstance(event, StepEvent)]
    assert [event.step_model for event in steps][:1] == ["second"]


def test_every_sink_gets_every_event() -> None:
    one, other = RecordingSink(), RecordingSink()
    session = client(sinks=[one, other]).session()
    run(session, 2)
    session.close()
    assert (len(one.events) > 0, one.events) == (True, other.events)


# ------------------------------------------------------------ redact

SECRET = "hunter2"


def hidden(text: str) -> str:
    return text.replace(SECRET, "***")


def secret_run(redact: Any) -> list[Event]:
    """The secret is in every text that a run has."""
    sink = RecordingSink()
    rb = client(speaks(f"Step 0 said {SECRET}. Look."), sinks=[sink], redact=redact, strict=False)
    session = rb.session(run_id="run", task=f"use {SECRET}", metadata={"note": SECRET})
    session.end_step(begin(session, 0), called(0))
    completed = replace(step(0, thought=f"it is {SECRET}", output=f"{SECRET} works"), user_text=f"no {SECRET}")
    session.end_step(session.begin_step(StepInput(completed=completed)), StepOutcome(error=f"Boom: {SECRET} is wrong"))
    session.finish(f"failure: {SECRET}", completed=completed)
    session.close()
    return sink.events


def test_redact_sees_every_text_of_a_run_before_a_sink_does() -> None:
    """Task, metadata and outcome, and all of its steps."""
    start, *others = secret_run(hidden)
    assert isinstance(start, RunStart)
    assert start.run.task == "use ***"
    shown = [json.dumps(event.as_dict()) for event in (start, *others)]
    assert [text for text in shown if SECRET in text] == []


@pytest.mark.parametrize("calls", [1, 2])
def test_redact_sees_the_names_of_arguments_and_values_of_any_type(calls: int) -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink], redact=hidden)
    session = rb.session(run_id="run")
    arguments: Any = {f"z {SECRET}": {SECRET: 1}, "path": PurePath(SECRET)}
    made = tuple(ToolCall(id=f"c{at}", name="run", arguments=arguments) for at in range(calls))
    session.end_step(begin(session, 0), called(0))
    session.end_step(session.begin_step(StepInput(completed=Step(thought="I look.", tool_calls=made))), called(1))
    session.close()
    shown = [json.dumps(event.as_dict()) for event in sink.events]
    assert any("z ***" in text for text in shown)
    assert [text for text in shown if SECRET in text] == []


def test_a_redacted_outcome_is_still_a_failure() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink], redact=lambda text: "#")
    session = rb.session()
    session.begin_step(StepInput())
    session.finish(f"the login {SECRET} fails")
    rb.close()
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["failure: #"]


@pytest.mark.parametrize("redact", [says(None), says(5), says(b"bytes"), raiser(RuntimeError("no"))])
def test_where_redact_answers_nonsense_or_raises_nothing_of_the_text_is_told(redact: Any) -> None:
    events = secret_run(redact)
    thoughts = [event.thought for event in events if isinstance(event, StepEvent)]
    assert set(thoughts) == {"[redaction failed]"}


def test_redact_changes_nothing_in_the_step_log() -> None:
    rb = client(redact=lambda text: "***", sinks=[RecordingSink()])
    session = rb.session()
    run(session, 2)
    assert session.step_log[1].thought_preview == "thought-0-"


# ------------------------------------------------------------ queue


class Gate:
    """A sink that takes nothing until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.entered.set()
        self.opened.wait(10)
        self.events.append(event)

    def close(self) -> None: ...


def overfilled(*events: Event, more: int = 1_500) -> tuple[Gate, Telemetry]:
    """The first event is with the sink; the rest waits, then as many steps as `more`."""
    gate = Gate()
    telemetry = Telemetry([gate])
    telemetry.emit(told(-1))
    assert gate.entered.wait(5)
    for event in events:
        telemetry.emit(event)
    for number in range(more):
        telemetry.emit(told(number))
    gate.opened.set()
    assert telemetry.flush(5)
    telemetry.stop()
    return gate, telemetry


def test_a_full_queue_drops_the_oldest_steps_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    gate, telemetry = overfilled(START, FINISH)
    kept = [event.step_index for event in gate.events[1:] if isinstance(event, StepEvent)]
    assert [event for event in gate.events if not isinstance(event, StepEvent)] == [START, FINISH]
    assert (kept, telemetry.dropped) == (list(range(502, 1_500)), 502)
    assert [("dropped" in record.getMessage()) for record in caplog.records] == [True]


# ------------------------------------------------------------ sinks that fail


class Broken:
    """A sink that raises at every event."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def emit(self, event: Event) -> None:
        raise self.error

    def close(self) -> None:
        raise self.error


def test_a_sink_that_raises_costs_the_others_nothing_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    good = RecordingSink()
    session = client(sinks=[Broken(RuntimeError("no")), good]).session()
    run(session, 5)
    session.close()
    assert [type(event).__name__ for event in good.events][:2] == ["RunStart", "StepEvent"]
    assert [record.getMessage().startswith("telemetry: sink Broken failed") for record in caplog.records] == [True]


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()], ids=["exit", "ctrl-c", "close"]
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sink_that_wants_to_exit_costs_the_others_nothing(error: BaseException) -> None:
    good = RecordingSink()
    telemetry = Telemetry([Broken(error), good])
    for event in (START, told(0), FINISH):
        telemetry.emit(event)
    telemetry.flush(0.5)
    assert good.events == [START, told(0), FINISH]


def test_a_sink_that_raises_at_close_never_reaches_the_caller() -> None:
    client(sinks=[Broken(RuntimeError("no"))]).close()


class Hung:
    """A sink that hangs at every event."""

    def __init__(self, hang: Hang) -> None:
        self._hang = hang

    def emit(self, event: Event) -> None:
        self._hang(event)

    def close(self) -> None: ...


def test_a_sink_that_hangs_delays_no_step() -> None:
    with hanging() as hang:
        started = time.perf_counter()
        run(client(sinks=[Hung(hang)]).session(), 5)
        assert time.perf_counter() - started < 1.0


def test_what_a_hanging_sink_did_not_take_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    with hanging() as hang:
        rb = client(sinks=[Hung(hang)])
        run(rb.session(), 2)
        rb.close(timeout=0.05)
    said = "telemetry: sink Hung did not take 5 events in the time it had; it is left behind"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_without_sinks_no_thread_is_started() -> None:
    before = {thread.name for thread in threading.enumerate()}
    telemetry = Telemetry()
    telemetry.emit(START)
    assert {thread.name for thread in threading.enumerate()} <= before


# ------------------------------------------------------------ JSON lines


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_jsonl_has_one_event_a_line_in_order_also_while_the_run_goes_on(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "run.jsonl")
    for event in (START, told(0, thought="数 \n"), told(1, thought="a \ud800 b"), FINISH):
        sink.emit(event)
    written = [(one["event"], one.get("thought")) for one in lines(tmp_path / "run.jsonl")]
    sink.close()
    assert written[:2] + written[3:] == [("run_start", None), ("step", "数 \n"), ("run_finish", None)]


def test_jsonl_appends_to_what_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        sink = JsonlSink(tmp_path / "run.jsonl")
        sink.emit(START)
        sink.close()
    assert len(lines(tmp_path / "run.jsonl")) == 2


@pytest.mark.parametrize("path", ["/dev/full", "/missing/runs", "/proc/runs"])
@pytest.mark.parametrize("kind", [JsonlSink, SQLiteMonitorSink])
def test_a_file_that_cannot_be_written_costs_the_run_nothing_and_is_said_once(
    kind: type[JsonlSink | SQLiteMonitorSink], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    session = client(sinks=[kind(path)]).session()
    run(session, 3)
    session.close()
    assert ([entry.step for entry in session.step_log], session.outcome) == ([0, 1, 2], "failure: abandoned")
    assert len(caplog.records) == 1


def test_jsonl_starts_a_new_line_after_a_torn_one(tmp_path: Path) -> None:
    full, path = Path("/dev/full"), tmp_path / "run.jsonl"
    sink = JsonlSink(full)
    with pytest.raises(OSError, match="No space"):
        sink.emit(told(0))
    sink.path = str(path)
    path.write_text('{"event": "st')
    sink.emit(told(1))
    sink.close()
    assert json.loads(path.read_text().splitlines()[-1])["step_index"] == 1


# ------------------------------------------------------------ SQLite


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def written(path: Path, *events: Event) -> None:
    sink = SQLiteMonitorSink(path)
    for event in events:
        sink.emit(event)
    sink.close()


def test_sqlite_has_the_run_its_steps_and_every_score(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    scored = told(1, scores=SCORES, monitors_fired=("semantic_loop",), tokens=12, metadata={"fsm_state": "NORMAL"})
    written(path, START, told(0, thought="a \ud800 b"), scored, FINISH)
    assert rows(path, "SELECT run_id, outcome, task FROM runs") == [("run", "success", "a task")]
    assert rows(path, "SELECT step_index, fsm_state, tokens FROM steps") == [(0, None, None), (1, "NORMAL", 12)]
    assert rows(path, "SELECT monitor, score, fired FROM scores ORDER BY monitor") == [
        ("late_sprawl", 0.1, 0), ("semantic_loop", 0.9, 1),
    ]  # fmt: skip


def test_sqlite_a_repeated_step_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    written(path, told(0, tokens=12), told(0, tokens=99))
    assert rows(path, "SELECT tokens FROM steps") == [(12,)]


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [(["success", "failure: X"], "failure: X"), (["failure: X", "success"], "failure: X"), (["success"], "success")],
)
def test_sqlite_a_failure_replaces_success_only(tmp_path: Path, outcomes: list[str], kept: str) -> None:
    path = tmp_path / "runs.db"
    written(path, START, *(RunFinish(run_id="run", outcome=one, timestamp=9.0) for one in outcomes))
    assert rows(path, "SELECT outcome FROM runs") == [(kept,)]


def test_sqlite_a_start_may_come_after_its_steps_and_its_finish(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    written(path, told(0), FINISH, START)
    assert rows(path, "SELECT task, outcome FROM runs") == [("a task", "success")]


AGAIN = RunStart(run=RunInfo(run_id="run", task="another task"), timestamp=10.0)


def test_sqlite_a_run_that_starts_again_has_no_outcome_yet_and_replaces_the_steps_of_the_one_before(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    written(path, START, told(0, tokens=1, scores=SCORES), told(1, tokens=1, scores=SCORES), FINISH)
    written(path, AGAIN, told(0, tokens=2, scores={"late_sprawl": 0.5}))
    assert rows(path, "SELECT task, started, finished, outcome FROM runs") == [("another task", 10.0, None, None)]
    assert rows(path, "SELECT step_index, tokens FROM steps") == [(0, 2)]
    assert rows(path, "SELECT step_index, monitor, score FROM scores") == [(0, "late_sprawl", 0.5)]


def test_sqlite_a_run_that_starts_again_leaves_other_runs_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    other = RunStart(run=RunInfo(run_id="other"), timestamp=1.0)
    written(path, other, StepEvent(run_id="other", step_index=0, timestamp=2.0, scores=SCORES), START, AGAIN)
    assert rows(path, "SELECT run_id FROM steps UNION ALL SELECT run_id FROM scores") == [("other",)] * 3


def test_sqlite_a_repeated_start_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    written(path, START, told(0, scores=SCORES), FINISH, START)
    assert rows(path, "SELECT count(*) FROM steps") + rows(path, "SELECT count(*) FROM scores") == [(1,), (2,)]
    assert rows(path, "SELECT outcome FROM runs") == [("success",)]


def test_sqlite_refuses_a_newer_schema_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(sqlite3.DatabaseError, match=rf"{re.escape(str(path))}: its form 99 is newer"):
        written(path, START)
    assert rows(path, "SELECT name FROM sqlite_master") == []


def test_sqlite_takes_the_runs_of_a_whole_client(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    rb = client(sinks=[SQLiteMonitorSink(path)])
    for _ in range(3):
        with rb.session() as session:
            run(session, 2)
            session.finish(completed=Step(thought="done"))
    rb.close()
    assert rows(path, "SELECT count(*) FROM steps") == [(9,)]


# ------------------------------------------------------------ fork

FORKED = """
import os, sys
from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.events import StepEvent

def tell(text):
    sink.emit(StepEvent(run_id=text, step_index=0, timestamp=0.0))

kind, path = sys.argv[1:]
sink = {"sqlite": SQLiteMonitorSink, "jsonl": JsonlSink}[kind](path)
tell("before")
told_by_child, child_tells = os.pipe()
told_by_parent, parent_tells = os.pipe()
child = os.fork()
if child == 0:
    tell("child")
    os.write(child_tells, b"x")
    os.read(told_by_parent, 1)
    tell("child, when the parent has closed")
    sink.close()
    sys.exit(0)
os.read(told_by_child, 1)
tell("parent")
sink.close()
os.write(parent_tells, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
TOLD = ["before", "child", "child, when the parent has closed", "parent"]


def forked(kind: str, path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, kind, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_sqlite_keeps_what_both_sides_of_a_fork_tell_in_a_sound_file(tmp_path: Path) -> None:
    forked("sqlite", tmp_path / "runs.db")
    assert rows(tmp_path / "runs.db", "SELECT run_id FROM steps ORDER BY run_id") == [(text,) for text in TOLD]
    assert rows(tmp_path / "runs.db", "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_jsonl_has_every_line_of_both_sides_of_a_fork_once(tmp_path: Path) -> None:
    forked("jsonl", tmp_path / "run.jsonl")
    assert sorted(one["run_id"] for one in lines(tmp_path / "run.jsonl")) == TOLD
