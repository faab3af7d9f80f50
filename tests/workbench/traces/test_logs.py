"""Logs of our sinks are read as runs, whatever the order of their events."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import stat
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks import JsonlSink, ReasonBlocks, SQLiteMonitorSink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import RecordError
from reasonblocks.types import RunInfo, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, RunLog, read_logs, read_runs
from reasonblocks_workbench.traces._groups import ENDED_KEPT, OPEN_GROUPS
from tests.workbench.traces.conftest import Write, only


def events(run_id: str = "a", calls: int = 3, *, at: float = 0.0, outcome: str | None = "success") -> list[Event]:
    """The events of a run: call n has the completed step n-1, the final event the last."""
    found: list[Event] = [RunStart(run=RunInfo(run_id=run_id, agent_name="fixer", task="Fix it."), timestamp=at)]
    found += [step(run_id, number, at) for number in range(calls)]
    final = step(run_id, calls, at)
    found.append(replace(final, metadata={"final": True}, output_tokens=None))
    return [*found, *([RunFinish(run_id=run_id, outcome=outcome, timestamp=at + 99)] if outcome else [])]


def step(run_id: str, number: int, at: float = 0.0) -> StepEvent:
    done: dict[str, Any] = (
        {"thought": f"step {number - 1}", "action": "ls", "action_input": "{}", "observation": "x"} if number else {}
    )
    return StepEvent(run_id=run_id, step_index=number, timestamp=at + number + 1, output_tokens=number, **done)


def jsonl(write: Write, *found: Event) -> str:
    return write("log.jsonl", *(event.as_dict() for event in found))


def sqlite(path: Path, *found: Event) -> str:
    sink = SQLiteMonitorSink(path)
    for event in found:
        sink.emit(event)
    sink.close()
    return str(path)


def logs(path: str) -> list[RunLog]:
    found = list(read_logs(path))
    assert [item for item in found if isinstance(item, RecordError)] == []
    return [item for item in found if isinstance(item, RunLog)]


def log_of(path: str) -> RunLog:
    (log,) = logs(path)
    return log


def test_a_call_replaces_the_final_step_of_a_run_that_continues_after_its_end(write: Write, tmp_path: Path) -> None:
    final: dict[str, Any] = {"final": True, "gate_decision": "final"}
    found = [*events(calls=2)[:-2], replace(step("a", 2), metadata=final, output_tokens=None)]
    found += [step("a", 2), replace(step("a", 2), metadata=final), replace(step("a", 3), metadata=final)]
    read = [log_of(path).steps for path in (jsonl(write, *found), sqlite(tmp_path / "runs.db", *found))]
    assert read[0] == read[1] == (step("a", 0), step("a", 1), step("a", 2), replace(step("a", 3), metadata=final))


def whole(run_id: str, found: Iterable[Event], file: str, line: int = 1) -> RunLog:
    held = [event for event in found if event.run_id == run_id]
    return RunLog(
        run_id=run_id,
        start=next((event for event in held if isinstance(event, RunStart)), None),
        steps=tuple(event for event in held if isinstance(event, StepEvent)),
        finish=next((event for event in held if isinstance(event, RunFinish)), None),
        file=file,
        line=line,
    )


def test_a_log_has_every_event_of_its_run(write: Write, tmp_path: Path) -> None:
    for path in (jsonl(write, *events()), sqlite(tmp_path / "log.db", *events())):
        assert log_of(path) == whole("a", events(), path)


def test_a_packed_log_is_read(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(Path(jsonl(write, *events())).read_bytes()))
    assert log_of(str(path)) == whole("a", events(), str(path))


def test_event_n_is_step_n_less_one_and_the_final_event_the_last(write: Write) -> None:
    run = only(jsonl(write, *events(calls=3)))
    assert [step.thought for step in run.steps] == ["step 0", "step 1", "step 2"]
    assert run.usages == (Usage(output=0), Usage(output=1), Usage(output=2))
    assert (run.run_id, run.source, run.task, run.task_profile, run.outcome) == (
        "a", "fixer", "Fix it.", "coding", "success",
    )  # fmt: skip


def test_a_run_without_an_end_has_an_unknown_outcome_and_no_last_step(write: Write) -> None:
    run = only(jsonl(write, *events(calls=3)[:-2]))
    assert (run.outcome, len(run.steps)) == (None, 2)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(), repeats=st.integers(0, 9))
def test_order_and_repeats_change_nothing(write: Write, seed: int, repeats: int) -> None:
    runs = {name: events(name, calls) for name, calls in (("a", 3), ("b", 1), ("c", 5))}
    held = [event for found in runs.values() for event in found]
    chance = random.Random(seed)
    held += chance.choices(held, k=repeats)
    chance.shuffle(held)
    path = jsonl(write, *held)
    found = {log.run_id: log for log in logs(path)}
    assert {name: replace(log, line=1) for name, log in found.items()} == {
        name: whole(name, runs[name], path) for name in runs
    }


def test_interleaved_runs_are_in_the_order_of_their_first_lines(write: Write) -> None:
    mixed = [event for pair in zip(events("b"), events("a"), strict=True) for event in pair]
    assert [(log.run_id, log.line) for log in logs(jsonl(write, *mixed))] == [("b", 1), ("a", 2)]


def test_a_run_that_starts_again_under_its_id_is_a_new_run(write: Write) -> None:
    found = logs(jsonl(write, *events(calls=2), *events(calls=4, at=500.0)))
    assert [(len(log.steps), log.line) for log in found] == [(3, 1), (5, 6)]


def test_a_start_after_the_end_of_a_run_without_one_is_a_new_run(write: Write) -> None:
    found = logs(jsonl(write, *events(calls=2)[1:], *events(calls=4, at=500.0)))
    assert [(log.start is None, len(log.steps)) for log in found] == [(True, 3), (False, 5)]


def test_a_failure_replaces_a_success_and_not_the_other_way_round(write: Write, tmp_path: Path) -> None:
    failed = RunFinish(run_id="a", outcome="failure: marked", timestamp=200.0)
    succeeded = replace(failed, outcome="success", timestamp=300.0)
    for found in ([*events(), failed, succeeded], [*events(outcome=None), failed, succeeded]):
        assert only(jsonl(write, *found)).outcome == "failure: marked"
    assert only(sqlite(tmp_path / "log.db", *events(), failed, succeeded)).outcome == "failure: marked"


def test_a_run_that_went_on_after_its_end_keeps_the_call_that_followed(write: Write) -> None:
    held = [*events(calls=2), step("a", 2), step("a", 3), replace(step("a", 4), metadata={"final": True})]
    run = only(jsonl(write, *held))
    assert [step.thought for step in run.steps] == ["step 0", "step 1", "step 2", "step 3"]
    assert run.usages == tuple(Usage(output=number) for number in range(4))


def test_a_torn_line_costs_only_itself(write: Write) -> None:
    lines = [json.dumps(event.as_dict()) for event in events(calls=4)]
    lines[2] = lines[2][:40]
    error, run = read_runs(write("log.jsonl", *lines))
    assert isinstance(error, RecordError)
    assert error.line == 3
    assert isinstance(run, RecordedRun)
    assert [step.thought for step in run.steps] == ["step 1", "step 2", "step 3"]
    assert run.usages == (Usage(), Usage(output=2), Usage(output=3))


def test_a_torn_first_line_hides_nothing(write: Write) -> None:
    lines = [json.dumps(event.as_dict()) for event in events()]
    error, log = read_logs(write("log.jsonl", lines[0][:40], *lines[1:]))
    assert isinstance(error, RecordError)
    assert isinstance(log, RunLog)
    assert (log.start, len(log.steps)) == (None, 4)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"event": "step", "run_id": "a"}, "step_index"),
        ({"event": "step", "run_id": 7, "step_index": 0, "timestamp": 1}, "run_id"),
        ({"event": "coffee", "run_id": "a"}, "event"),
        ([1], "a list"),
    ],
)
def test_a_line_that_is_no_event_costs_only_itself(write: Write, line: object, words: str) -> None:
    found = [event.as_dict() for event in events()]
    error, log = read_logs(write("log.jsonl", *found[:2], line, *found[2:]))
    assert isinstance(error, RecordError)
    assert (error.line, words in error.reason) == (3, True)
    assert isinstance(log, RunLog)
    assert len(log.steps) == 4


def test_the_oldest_of_too_many_open_runs_is_yielded(write: Write) -> None:
    path = write("log.jsonl", *(step(f"run-{number}", 0).as_dict() for number in range(OPEN_GROUPS + 10)))
    found = read_logs(path)
    assert [log.run_id for log in found if isinstance(log, RunLog)] == [f"run-{n}" for n in range(OPEN_GROUPS + 10)]


def test_a_finished_run_waits_for_a_few_others_and_no_longer(write: Write) -> None:
    late = RunFinish(run_id="run-0", outcome="failure: late", timestamp=999.0)

    def first(others: int) -> list[str | None]:
        held = [event for number in range(others + 1) for event in events(f"run-{number}", 1)]
        found = logs(jsonl(write, *held, late))
        return [log.finish.outcome if log.finish else None for log in found if log.run_id == "run-0"]

    assert first(ENDED_KEPT - 1) == ["failure: late"]
    assert first(ENDED_KEPT) == ["success", "failure: late"]


def test_memory_holds_a_few_finished_runs_not_the_file(write: Write) -> None:
    big = [replace(event, observation="x" * 100_000) if isinstance(event, StepEvent) else event for event in events()]
    named = (replace(event, run_id=f"run-{n}") for n in range(200) for event in big if not isinstance(event, RunStart))
    path = jsonl(write, *named)
    tracemalloc.start()
    try:
        assert sum(len(log.steps) for log in read_logs(path) if isinstance(log, RunLog)) == 800
        assert tracemalloc.get_traced_memory()[1] < 25_000_000  # the file has 80 MB
    finally:
        tracemalloc.stop()


def test_a_file_without_events_has_one_reason(write: Write, tmp_path: Path) -> None:
    for path in (write("a.jsonl", {"steps": []}), str(tmp_path / "none")):
        (error,) = read_logs(path)
        assert isinstance(error, RecordError)


def test_parallel_calls_keep_their_results(write: Write, tmp_path: Path) -> None:
    calls = (ToolCall(id="1", name="a", arguments={"x": 1}), ToolCall(id="2", name="b", arguments={}))
    results = (ToolResult(call_id="2", output="two", name="b"), ToolResult(call_id="1", output="one", is_error=True))
    done = Step(thought="t", reasoning="r", tool_calls=calls, tool_results=results)
    path = tmp_path / "log.jsonl"
    with ReasonBlocks(sinks=[JsonlSink(path)], strict=True) as rb, rb.session(run_id="a") as session:
        session.end_step(session.begin_step(StepInput()), StepOutcome())
        session.finish(completed=done)
    assert only(str(path)).steps == (done,)


def test_redacted_texts_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rb = ReasonBlocks(sinks=[JsonlSink(path)], strict=True, redact=lambda text: text.replace("s3cret", "[...]"))
    with rb, rb.session(run_id="a", task="use s3cret") as session:
        session.end_step(session.begin_step(StepInput()), StepOutcome())
        session.finish(completed=Step(thought="the key is s3cret"))
    run = only(str(path))
    assert (run.task, run.steps[0].thought) == ("use [...]", "the key is [...]")


# --- SQLite


def test_a_live_writer_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    sink = SQLiteMonitorSink(path)
    held = events(calls=5)
    for event in held[:3]:
        sink.emit(event)
    assert len(log_of(str(path)).steps) == 2
    reading = read_logs(str(path))
    for event in held[3:]:
        sink.emit(event)
    log = next(reading)
    assert isinstance(log, RunLog)
    assert len(log.steps) == 6
    sink.emit(RunFinish(run_id="a", outcome="failure: late", timestamp=300.0))
    assert list(reading) == []
    sink.close()
    assert only(str(path)).outcome == "failure: late"


def test_reading_changes_no_file(tmp_path: Path) -> None:
    path = Path(sqlite(tmp_path / "log.db", *events()))
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir()}
    assert log_of(str(path)).run_id == "a"
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == before


def test_a_file_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "frozen"
    folder.mkdir()
    path = Path(sqlite(folder / "log ?#%20.db", *events()))
    path.chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert log_of(str(path)).run_id == "a"
    finally:
        folder.chmod(stat.S_IRWXU)


def test_steps_without_a_run_are_a_run(tmp_path: Path) -> None:
    held = events("a", 2)
    log = log_of(sqlite(tmp_path / "log.db", *(event for event in held if isinstance(event, StepEvent))))
    assert (log.run_id, log.start, log.finish, len(log.steps)) == ("a", None, None, 3)


def test_runs_are_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "log.db", *events("z"), *events("b"), *events("a"))
    assert [(log.run_id, log.line) for log in logs(path)] == [("z", 1), ("b", 2), ("a", 3)]


def test_an_older_file_without_the_starts_body_is_read(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "log.db", *events())
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE runs DROP COLUMN body")
        db.execute("ALTER TABLE runs DROP COLUMN project_id")
        db.execute("PRAGMA user_version=0")
    db.close()
    assert log_of(path) == whole("a", events(), path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DROP TABLE steps", "table 'steps'"),
        ("ALTER TABLE steps DROP COLUMN body", "column 'body'"),
        ("DROP TABLE runs", "table 'runs'"),
    ],
)
def test_another_programs_file_is_said(tmp_path: Path, change: str, words: str) -> None:
    path = sqlite(tmp_path / "log.db", *events())
    with sqlite3.connect(path) as db:
        db.execute(change)
    db.close()
    (error,) = read_runs(path)
    assert isinstance(error, RecordError)
    assert words in error.reason


@pytest.mark.parametrize("body", [None, 7, b"\xff", "{nonsense", "[]", '{"event": "step"}', "9" * 9_999])
def test_a_row_without_an_event_costs_only_itself(tmp_path: Path, body: object) -> None:
    path = sqlite(tmp_path / "log.db", *events(calls=3), *events("b", at=500.0))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE steps SET body=? WHERE run_id='a' AND step_index=2", (body,))
    db.close()
    error, log, other = read_logs(path)
    assert isinstance(error, RecordError)
    assert isinstance(log, RunLog)
    assert [event.step_index for event in log.steps] == [0, 1, 3]
    assert isinstance(other, RunLog)
    assert len(other.steps) == 4


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    path = Path(sqlite(tmp_path / "log.db", *events(calls=200)))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    found = list(read_runs(str(path)))
    assert found
    assert all(isinstance(item, (RecordedRun, RecordError)) for item in found)
    assert any(isinstance(item, RecordError) for item in found)
