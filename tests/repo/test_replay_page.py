"""The examples of docs/replay.md run, and its table has every format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import JsonlSink, ReasonBlocks
from reasonblocks.types import StepInput, StepOutcome
from reasonblocks_workbench.traces import READERS, RecordedRun, read_runs

PAGE = (Path(__file__).parents[2] / "docs/replay.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_table_has_a_row_for_each_reader_and_for_nothing_else() -> None:
    table = PAGE.partition("| `--format` |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == sorted(reader.name for reader in READERS)


def test_a_line_of_each_printed_json_is_read(tmp_path: Path) -> None:
    for number, line in enumerate(re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)):
        path = tmp_path / f"{number}.jsonl"
        value: dict[str, Any] = json.loads(line)
        if value.get("messages") == []:
            value["messages"] = [{"type": "human", "data": {"content": "hi"}}]
        path.write_text(json.dumps(value), encoding="utf-8")
        (run,) = read_runs(str(path))
        assert isinstance(run, RecordedRun)
        assert run.outcome == "failure"


def test_the_log_of_the_example_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with ReasonBlocks(sinks=[JsonlSink("log.jsonl")]) as rb, rb.session(run_id="run-1") as session:
        session.end_step(session.begin_step(StepInput()), StepOutcome(text="Done."))
    exec(compile(EXAMPLES[0], "example", "exec"), {})
    assert capsys.readouterr().out == "run-1 2 success\n"


def test_the_reader_of_the_example_reads(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[1], "example", "exec"), names)
    path = tmp_path / "diary.jsonl"
    path.write_text('{"entries": ["I looked.", "It rained."]}\n{"entries": []}\n', encoding="utf-8")
    found = list(read_runs(str(path), readers=[names["Diary"]()]))
    assert [(run.run_id, len(run.steps)) for run in found if isinstance(run, RecordedRun)] == [
        ("day 1", 2),
        ("day 2", 0),
    ]
