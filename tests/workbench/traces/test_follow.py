"""A log is followed while it is written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import RecordError
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import RunInfo
from reasonblocks_workbench.traces.follow import SHOWN_AT_FIRST, Following

Make = Callable[[Path], TelemetrySink]
SINKS: list[Make] = [SQLiteMonitorSink, JsonlSink]


def start(run_id: str = "r", at: float = 1.0) -> RunStart:
    return RunStart(run=RunInfo(run_id=run_id, agent_name="fixer"), timestamp=at)


def step(index: int, run_id: str = "r", at: float = 2.0) -> StepEvent:
    return StepEvent(run_id=run_id, step_index=index, timestamp=at, thought=f"I look {index}.")


def finish(outcome: str = "success", run_id: str = "r") -> RunFinish:
    return RunFinish(run_id=run_id, outcome=outcome, timestamp=9.0)


def shown(events: list[Event]) -> list[object]:
    return [event.step_index if isinstance(event, StepEvent) else type(event).__name__ for event in events]


@pytest.mark.parametrize("make", SINKS)
def test_each_poll_returns_what_is_new(make: Make, tmp_path: Path) -> None:
    sink, following = make(tmp_path / "runs"), Following(str(tmp_path / "runs"))
    assert (following.poll(), following.exists) == ([], False)
    sink.emit(start())
    sink.emit(step(0))
    assert shown(following.poll()) == ["RunStart", 0]
    assert following.poll() == []
    sink.emit(step(1))
    sink.emit(finish())
    assert shown(following.poll()) == [1, "RunFinish"]
    assert following.poll() == []
    sink.close()


@pytest.mark.parametrize("make", SINKS)
def test_an_event_is_the_one_that_was_emitted(make: Make, tmp_path: Path) -> None:
    sink = make(tmp_path / "runs")
    sink.emit(start())
    sink.emit(step(0))
    sink.close()
    assert Following(str(tmp_path / "runs")).poll() == [start(), step(0)]


def test_the_first_poll_returns_the_newest_steps_of_a_long_file(tmp_path: Path) -> None:
    sink = SQLiteMonitorSink(tmp_path / "runs")
    sink.emit(start())
    for index in range(SHOWN_AT_FIRST + 10):
        sink.emit(step(index))
    sink.close()
    found = [event.step_index for event in Following(str(tmp_path / "runs")).poll() if isinstance(event, StepEvent)]
    assert found == list(range(10, SHOWN_AT_FIRST + 10))


def test_a_run_that_starts_anew_under_its_id_is_seen_again(tmp_path: Path) -> None:
    sink, following = SQLiteMonitorSink(tmp_path / "runs"), Following(str(tmp_path / "runs"))
    for event in (start(at=1.0), step(0), step(1), step(2), finish()):
        sink.emit(event)
    following.poll()
    for event in (start(at=5.0), step(0, at=6.0)):
        sink.emit(event)
    assert following.poll() == [start(at=5.0), step(0, at=6.0)]
    sink.close()


def test_a_file_that_nobody_writes_is_read_without_making_files_beside_it(tmp_path: Path) -> None:
    sink = SQLiteMonitorSink(tmp_path / "runs")
    sink.emit(step(0))
    sink.close()
    assert shown(Following(str(tmp_path / "runs")).poll()) == [0]
    assert [file.name for file in tmp_path.iterdir()] == ["runs"]


def test_a_file_that_cannot_be_opened_twice_running_is_an_error(tmp_path: Path) -> None:
    sink = SQLiteMonitorSink(tmp_path / "runs")
    sink.emit(step(0))
    sink.close()
    (tmp_path / "runs-wal").mkdir()  # SQLite's own log cannot be opened
    following = Following(str(tmp_path / "runs"))
    assert following.poll() == []
    with pytest.raises(RecordError, match="unable to open"):
        following.poll()


def test_rows_with_odd_values_are_left_out_or_made_whole(tmp_path: Path) -> None:
    sink = SQLiteMonitorSink(tmp_path / "runs")
    for event in (start(), step(0), step(1), finish()):
        sink.emit(event)
    sink.close()
    with sqlite3.connect(tmp_path / "runs") as db:
        db.execute("UPDATE runs SET finished='yesterday'")
        db.execute("UPDATE steps SET body=CAST(x'7bff' AS TEXT) WHERE step_index=0")
    db.close()
    assert Following(str(tmp_path / "runs")).poll() == [start(), step(1), replace(finish(), timestamp=0.0)]


def test_many_runs_are_followed_at_once(tmp_path: Path) -> None:
    sink, following = SQLiteMonitorSink(tmp_path / "runs"), Following(str(tmp_path / "runs"))
    for name in "abc":
        sink.emit(start(name))
        sink.emit(step(0, name))
    following.poll()
    sink.emit(finish("failure: ValueError", "b"))
    assert following.poll() == [finish("failure: ValueError", "b")]
    sink.close()


def test_a_line_counts_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    line = json.dumps(step(0).as_dict())
    path.write_text(line[:30], encoding="utf-8")
    following = Following(str(path))
    assert following.poll() == []
    path.write_text(f"{line}\n", encoding="utf-8")
    assert following.poll() == [step(0)]


@pytest.mark.parametrize("make", SINKS)
def test_line_separators_in_a_text_end_no_line(make: Make, tmp_path: Path) -> None:
    odd = replace(step(0), thought="a\u2028b\u2029c\x85d\x0be")
    sink = make(tmp_path / "runs")
    sink.emit(odd)
    sink.close()
    assert Following(str(tmp_path / "runs")).poll() == [odd]


@pytest.mark.parametrize("after", SINKS)
@pytest.mark.parametrize("before", SINKS)
def test_a_file_that_takes_the_place_of_another_is_followed_from_its_beginning(
    before: Make, after: Make, tmp_path: Path
) -> None:
    path, following = tmp_path / "runs", Following(str(tmp_path / "runs"))
    first = before(path)
    first.emit(step(0))
    first.close()
    assert shown(following.poll()) == [0]
    second = after(tmp_path / "next")
    for index in range(5, 9):
        second.emit(step(index))
    second.close()
    path.rename(tmp_path / "rotated")
    (tmp_path / "next").rename(path)
    assert shown(following.poll()) == [5, 6, 7, 8]


def test_a_file_that_was_cut_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [json.dumps(step(index).as_dict()) for index in range(3)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    following = Following(str(path))
    assert len(following.poll()) == 3
    path.write_text(lines[2] + "\n", encoding="utf-8")
    assert following.poll() == [step(2)]


def test_a_line_that_is_no_event_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"event": "step"}\n{torn\n{"a": 1}\n[]\n' + json.dumps(step(0).as_dict()) + "\n", encoding="utf-8")
    assert Following(str(path)).poll() == [step(0)]


def test_a_file_that_vanishes_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(step(0).as_dict()) + "\n", encoding="utf-8")
    following = Following(str(path))
    following.poll()
    path.unlink()
    assert following.poll() == []
    path.write_text(json.dumps(step(1).as_dict()) + "\n", encoding="utf-8")
    assert following.poll() == [step(1)]


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is a directory"):
        Following(str(tmp_path)).poll()


def test_a_database_of_others_is_an_error(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE cities (name)")
    db.close()
    with pytest.raises(RecordError, match="is not the file of a SQLiteMonitorSink"):
        Following(str(tmp_path / "other.db")).poll()


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "hi"}\n' * 20, encoding="utf-8")
    with pytest.raises(RecordError, match="`reasonblocks replay` reads other formats"):
        Following(str(path)).poll()
