"""Nothing that differs, is missing or is old goes unnoticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_testing import LoopHarness, ParityRun, Turn, write_parity
from tests.parity.compare import differences, entry_differences
from tests.parity.exchange import Line, ParityFile, digest, files_of, module_of, read
from tests.parity.reference import core
from tests.parity.runs import ROOT, parity_runs

RUN = "golden order"
ADAPTER = "langchain"


@pytest.fixture(scope="module")
def run() -> ParityRun:
    return parity_runs()[RUN]


def wrote(folder: Path, run: ParityRun, code: str = "") -> ParityFile:
    path = folder / f"{ADAPTER}.jsonl"
    code = code or digest(ADAPTER, ROOT / "packages" / ADAPTER / "src" / module_of(ADAPTER))
    write_parity(LoopHarness(), [run], path, framework="loop 1.0", code=code)
    return read(path)


@pytest.fixture
def file(tmp_path: Path, run: ParityRun) -> ParityFile:
    return wrote(tmp_path, run)


Change = Callable[..., list[str]]


@pytest.fixture
def found(file: ParityFile) -> Change:
    """The differences after one entry of the async loop was changed."""

    def change(at: int, **fields: Any) -> list[str]:
        lines = list(file.entries[RUN, "async"])
        lines[at] = {**lines[at], **fields}
        return differences(replace(file, entries={(RUN, "async"): lines}), RUN, "async", core(RUN))

    return change


def test_equal_entries_do_not_differ(file: ParityFile) -> None:
    assert [differences(file, RUN, mode, core(RUN)) for mode in file.modes] == [[], []]


def test_numbers_come_through_a_file_unrounded(file: ParityFile) -> None:
    assert [line["difficulty"] for line in file.entries[RUN, "sync"]] == [line["difficulty"] for line in core(RUN)]


def test_a_difference_names_framework_mode_run_entry_field_and_both_values(found: Change) -> None:
    wanted = core(RUN)[3]["composite"]
    changed = wanted + 1e-16 if wanted + 1e-16 != wanted else wanted * (1 + 2**-52)
    assert found(3, composite=changed) == [
        f"loop 1.0, async, golden order, entry 3: composite is {changed!r}, the core's is {wanted!r}"
    ]


@pytest.mark.parametrize("field", ["gate_decision", "intervention_texts", "guidance", "scores", "cache_read_tokens"])
def test_whatever_was_decided_is_compared(found: Change, field: str) -> None:
    assert len(found(5, **{field: "another"})) >= 1


def test_a_field_that_an_entry_lacks_is_a_difference(file: ParityFile) -> None:
    (line, *_) = file.entries[RUN, "sync"]
    without = {name: value for name, value in line.items() if name != "placement"}
    assert entry_differences(without, line) == ["placement is 'missing', the core's is 'tail'"]


def test_clocks_are_not_compared(found: Change) -> None:
    assert found(2, timestamp=0.0, latency_ms=1.0, overhead_ms=2.0) == []


def test_a_lost_entry_is_noticed(file: ParityFile) -> None:
    lines = file.entries[RUN, "async"][:-1]
    (first, *_) = differences(replace(file, entries={(RUN, "async"): lines}), RUN, "async", core(RUN))
    assert first == f"loop 1.0, async, golden order: {len(lines)} entries, the core has {len(lines) + 1}"


def test_a_mode_without_the_run_is_noticed(file: ParityFile) -> None:
    only = {(RUN, "sync"): file.entries[RUN, "sync"]}
    assert differences(replace(file, entries=only), RUN, "async", core(RUN)) == [
        "loop 1.0, async, golden order: is missing from the file"
    ]


def test_an_adapter_without_a_file_fails_and_is_told_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"langchain has left no file in .* run `./dev parity`"):
        files_of(ADAPTER, tmp_path)


def test_a_file_of_other_code_fails(tmp_path: Path, run: ParityRun) -> None:
    wrote(tmp_path, run, code="of last week")
    with pytest.raises(pytest.fail.Exception, match="was written by other code than this"):
        files_of(ADAPTER, tmp_path)


def test_every_cell_of_the_matrix_is_read(tmp_path: Path, run: ParityRun) -> None:
    for cell in ("oldest", "newest"):
        wrote(tmp_path / cell, run)
    assert len(files_of(ADAPTER, tmp_path)) == 2


def test_a_run_that_does_not_complete_is_told_by_mode(tmp_path: Path, run: ParityRun) -> None:
    failing = Turn(error=ConnectionError("the model is gone"))
    broken = replace(run, script=replace(run.script, turns=(*run.script.turns[:2], failing)))
    faults = write_parity(LoopHarness(), [broken], tmp_path / "file.jsonl", framework="loop 1.0", code="")
    assert f"async: it raised {failing.error!r}" in faults[RUN]


def test_every_line_is_an_object_that_says_what_it_is_of(tmp_path: Path, run: ParityRun) -> None:
    wrote(tmp_path, run)
    lines: list[Line] = [json.loads(line) for line in (tmp_path / f"{ADAPTER}.jsonl").read_text().splitlines()[1:]]
    of = {(line["framework"], line["mode"], line["run"]) for line in lines}
    assert of == {("loop 1.0", "sync", RUN), ("loop 1.0", "async", RUN)}
