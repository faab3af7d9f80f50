"""The reader of a file: the only one that recognises it, the one that is named, or one of an installed package."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.types import JSON, Step, Usage
from reasonblocks_workbench.traces import READERS, Record, RecordedRun, installed_readers, read_runs
from tests.workbench.traces.conftest import Write

RUN = {"run_id": "a", "steps": [{"thought": "look"}]}


class Notes:
    """A reader of another package's format: `{"note": ...}` is a run of one step."""

    name = "notes"

    def sniff(self, value: JSON) -> bool:
        return isinstance(value, dict) and "note" in value

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Iterator[RecordedRun | RecordError]:
        for record in records:
            if isinstance(record, RecordError) or not isinstance(record.value, dict):
                continue
            step = Step(thought=str(record.value.get("note")))
            yield RecordedRun(run_id="n", steps=(step,), usages=(Usage(),), file=file, line=record.line)


class Greedy(Notes):
    name = "greedy"


def only(path: str, **options: object) -> RecordedRun | RecordError:
    (item,) = read_runs(path, **options)  # type: ignore[arg-type]
    return item


def reason(path: str, **options: object) -> str:
    item = only(path, **options)
    assert isinstance(item, RecordError)
    return item.reason


def test_two_claims_on_one_record_are_an_error_that_names_the_option(write: Write) -> None:
    said = reason(write("a.jsonl", {"note": "x"}), readers=[Notes(), Greedy()])
    assert ("notes, greedy" in said, "--format notes" in said) == (True, True)


def test_a_named_format_decides_without_a_look_at_the_file(write: Write) -> None:
    path = write("a.jsonl", {"note": "x"})
    assert isinstance(only(path, readers=[Notes(), Greedy()], format="greedy"), RecordedRun)
    assert "messages" in reason(write("b.jsonl", RUN), format="langchain")
    assert isinstance(only(write("c.jsonl", RUN), format="reasonblocks"), RecordedRun)


def test_a_named_format_of_another_kind_of_file_is_an_error_of_the_file(write: Write, tmp_path: Path) -> None:
    assert "SQLite" in reason(write("a.jsonl", RUN), format="sqlite-sink")
    assert "no such file" in reason(str(tmp_path / "none"), format="sqlite-sink")
    assert "no such file" in reason(str(tmp_path / "none"), format="otlp")


def test_an_unknown_format_is_refused_with_all_names(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'otlp'\?") as refused:
        read_runs(write("a.jsonl", RUN), format="otpl")
    assert [reader.name for reader in READERS if reader.name not in str(refused.value)] == []


def test_an_unknown_file_is_told_what_was_tried_and_what_came_close(write: Write) -> None:
    said = reason(write("a.jsonl", {"run_id": "a", "task": "t"}))
    assert "nearly reasonblocks: no 'steps'" in said
    assert "LangChain messages" in said
    assert "nearly" not in reason(write("b.jsonl", {"colour": "red"}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"event": "lunch", "run_id": "a"}, "jsonl-sink: no "),
        ([{"type": "human", "content": "x"}], "langchain: no "),
        ({"schema_version": "ATIF-v1.4", "agent": {}}, "atif: no 'steps'"),
        ({"run_type": "llm", "id": "1"}, "langsmith: no 'trace_id'"),
        ({"type": "GENERATION", "id": "a"}, "langfuse: no "),
        ({"resourceLogs": []}, "otlp: no 'resourceSpans'"),
    ],
)
def test_each_reader_says_what_a_near_miss_lacks(write: Write, value: JSON, said: str) -> None:
    assert said in reason(write("a.jsonl", value))


@pytest.mark.parametrize("key", ["messages", "input"])
def test_a_header_may_stand_beside_messages(write: Write, key: str) -> None:
    messages = [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": {"content": "Done."}}]
    header = {"run_id": "r", "outcome": "failure", "task": "t", "model": "m", "parent_run_id": "p", "source": "s"}
    run = only(write("a.jsonl", {key: messages, **header}))
    assert isinstance(run, RecordedRun)
    assert (run.run_id, run.outcome, run.task, run.model, run.parent_run_id, run.source) == (
        "r", "failure", "t", "m", "p", "s",
    )  # fmt: skip


# --- readers of installed packages


MODULE = '''
"""Readers of another package."""


class Diary:
    name = "diary"
    title = "a diary"

    def sniff(self, value):
        return isinstance(value, dict) and "dear" in value

    def read(self, file, records):
        from reasonblocks_workbench.traces import RecordedRun

        for record in records:
            run = RecordedRun(run_id=record.value["dear"], steps=(), usages=(), file=file, line=record.line)
            yield run


class Tape:
    name = "tape"

    def opens(self, head):
        return head.startswith(b"TAPE")

    def read_file(self, path, progress):
        from reasonblocks_workbench.traces import RecordedRun

        yield RecordedRun(run_id="tape", steps=(), usages=(), file=path, line=1)


class Moody(Diary):
    name = "moody"

    def sniff(self, value):
        raise RuntimeError("not today")

    def read(self, file, records):
        raise RuntimeError("never")


class Thief(Diary):
    name = "otlp"


tape = Tape()
not_a_reader = object()
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """`installed("diary = stationery:Diary", ...)` puts a package with these entry points on the path."""

    def install(*points: str) -> None:
        site = tmp_path / "site"
        folder = site / "stationery-1.0.dist-info"
        folder.mkdir(parents=True)
        (site / "stationery.py").write_text(MODULE, encoding="utf-8")
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: stationery\nVersion: 1.0\n", encoding="utf-8")
        (folder / "entry_points.txt").write_text("\n".join(["[reasonblocks.readers]", *points]), encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))

    yield install
    sys.modules.pop("stationery", None)


def test_an_installed_reader_recognises_its_files_and_its_name_is_a_format(
    write: Write, installed: Callable[..., None]
) -> None:
    installed("diary = stationery:Diary", "tape = stationery:tape")
    assert {reader.name for reader in installed_readers()} == {*(reader.name for reader in READERS), "diary", "tape"}
    path = write("a.jsonl", {"dear": "me"})
    for found in (only(path), only(path, format="diary")):
        assert isinstance(found, RecordedRun)
        assert found.run_id == "me"
    assert "a diary" in reason(write("b.jsonl", {"colour": "red"}))


def test_an_installed_reader_may_open_its_files_itself(write: Write, installed: Callable[..., None]) -> None:
    installed("tape = stationery:Tape")
    path = write("a.tape", b"TAPE\0\1\2")
    for found in (only(path), only(path, format="tape")):
        assert isinstance(found, RecordedRun)
        assert found.run_id == "tape"


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ("gone = nowhere:Reader", "ModuleNotFoundError"),
        ("gone = stationery:Missing", "AttributeError"),
        ("other = stationery:not_a_reader", "a reader has name"),
        ("thief = stationery:Thief", "'otlp' is not a string, or is in use"),
    ],
)
def test_a_broken_reader_is_reported_and_skipped(
    write: Write, installed: Callable[..., None], point: str, words: str
) -> None:
    installed(point, "diary = stationery:Diary")
    with pytest.warns(RuntimeWarning, match="is skipped") as said:
        found = only(write("a.jsonl", RUN))
    assert isinstance(found, RecordedRun)
    assert words in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(only(write("b.jsonl", {"dear": "me"})), RecordedRun)


def test_the_faults_of_an_installed_reader_are_contained(write: Write, installed: Callable[..., None]) -> None:
    installed("moody = stationery:Moody")
    with pytest.warns(RuntimeWarning, match="'moody' failed on a record: RuntimeError: not today"):
        assert isinstance(only(write("a.jsonl", RUN)), RecordedRun)
    assert "the reader 'moody' failed: RuntimeError: never" in reason(write("b.jsonl", RUN), format="moody")


def test_readers_that_are_given_replace_the_installed_ones(write: Write, installed: Callable[..., None]) -> None:
    installed("diary = stationery:Diary")
    assert "contains no recorded run" in reason(write("a.jsonl", {"dear": "me"}), readers=READERS)
