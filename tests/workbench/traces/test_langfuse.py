"""Observations of Langfuse in each form in which they are exported. The values are those that its client recorded."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import Write

Json = dict[str, Any]
FILE = Path(__file__).with_name("fixtures") / "langfuse_openai.json"
OBSERVATIONS: list[Json] = json.loads(FILE.read_text())
SHAPES: dict[str, Callable[[list[Json]], list[object]]] = {
    "a list": lambda found: [found],
    "lines": lambda found: [*found],
    "an answer of the API": lambda found: [{"data": found, "meta": {"cursor": None}}],
    "a trace's page": lambda found: [{"trace": {"id": "t"}, "observations": found, "scores": []}],
    "lines of a store": lambda found: [
        {re.sub("([A-Z])", lambda big: f"_{big[1].lower()}", name): value for name, value in one.items()}
        for one in found
    ],
}


def runs(path: object) -> list[RecordedRun]:
    found = list(read_runs(str(path)))
    assert [item for item in found if isinstance(item, RecordError)] == []
    return sorted((item for item in found if isinstance(item, RecordedRun)), key=lambda run: len(run.steps))


def same(one: list[RecordedRun], other: list[RecordedRun]) -> bool:
    return [(run.run_id, run.task, run.steps, run.usages) for run in one] == [
        (run.run_id, run.task, run.steps, run.usages) for run in other
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_form_of_an_export_has_the_same_runs_in_any_order(write: Write, shape: str) -> None:
    mixed = random.Random(1).sample(OBSERVATIONS, len(OBSERVATIONS))
    assert same(runs(write("a.jsonl", *SHAPES[shape](mixed))), runs(FILE))


def test_csv_has_the_same_runs(write: Write) -> None:
    text = StringIO()
    rows = csv.DictWriter(text, sorted({name for one in OBSERVATIONS for name in one}))
    rows.writeheader()
    for one in OBSERVATIONS:
        cells = {name: value if isinstance(value, str) else json.dumps(value) for name, value in one.items()}
        rows.writerow({name: cell for name, cell in cells.items() if cell != "null"})
    assert same(runs(write("a.csv", text.getvalue())), runs(FILE))


def test_a_cell_longer_than_pythons_limit_is_read(write: Write) -> None:
    path = write("a.csv", "id,traceId,type,input,output", f"1,t,GENERATION,hi,{'x' * 200_000}")
    (run,) = runs(path)
    assert len(run.steps[0].thought) == 200_000


def test_a_first_line_of_many_columns_is_recognised(write: Write) -> None:
    scores = [f"score_{number}" for number in range(100)]
    header = ",".join(["id", "type", *scores, "input", "output", "traceId"])
    path = write("a.csv", header, ",".join(["1", "GENERATION", *("" for _ in scores), "hi", "yes", "t"]))
    assert [step.thought for run in runs(path) for step in run.steps] == ["yes"]


def test_a_csv_file_of_something_else_is_not_read(write: Write) -> None:
    found = list(read_runs(write("a.csv", "id,type,input,output", "1,GENERATION,hi,yes")))
    assert {type(item) for item in found} == {RecordError}


def test_the_error_of_the_root_is_the_failure(write: Write) -> None:
    found = [
        {"id": "a", "traceId": "t", "type": "AGENT", "name": "fixer", "level": "ERROR", "statusMessage": "too slow"},
        {"id": "b", "traceId": "t", "type": "GENERATION", "parentObservationId": "a", "input": "hi", "output": "yes"},
    ]
    (run,) = runs(write("a.json", found))
    assert (run.outcome, run.source, [step.thought for step in run.steps]) == ("failure: too slow", "fixer", ["yes"])


HEADER = "id,type,input,output,traceId"


def test_a_row_with_more_cells_than_columns_is_read(write: Write) -> None:
    (run,) = runs(write("a.csv", HEADER, "1,GENERATION,hi,yes,t,more,and more"))
    assert [step.thought for step in run.steps] == ["yes"]


@pytest.mark.parametrize("row", ['2,GENERATION,"hi,yes,t', '2,GENERATION,"hi" there,yes,t'])
def test_a_quote_without_its_end_costs_no_row_before_it_and_is_said(write: Write, row: str) -> None:
    error, run = read_runs(write("a.csv", HEADER, "1,GENERATION,hi,yes,t", row))
    assert isinstance(run, RecordedRun)
    assert [step.thought for step in run.steps] == ["yes"]
    assert isinstance(error, RecordError)
    assert (error.line, "is not CSV" in error.reason) == (3, True)


def test_the_progress_of_a_table_ends_at_its_size(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("id,type,input,output,trace_id\n" + "o,SPAN,hello,,t\n" * 999, encoding="utf-8")
    seen: list[int] = []
    list(read_runs(str(path), progress=seen.append))
    assert seen[-1] == path.stat().st_size


@pytest.mark.parametrize("rows", [[], ["", ""]])
def test_a_table_without_rows_is_said(write: Write, rows: list[str]) -> None:
    (error,) = read_runs(write("a.csv", HEADER, *rows))
    assert isinstance(error, RecordError)
    assert error.reason == "has no observation"
