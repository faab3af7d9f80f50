"""A file becomes records or reasons, never an exception."""

from __future__ import annotations

import gzip
import json
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.traces import RecordedRun, read_runs
from reasonblocks_workbench.traces._files import Record, read_records
from tests.workbench.traces.conftest import Write

RUN = {"run_id": "a", "steps": [{"thought": "look", "action": "ls", "action_input": ".", "observation": "x"}]}


def runs(path: str) -> list[RecordedRun]:
    return [item for item in read_runs(path) if isinstance(item, RecordedRun)]


def errors(path: str) -> list[RecordError]:
    return [item for item in read_runs(path) if isinstance(item, RecordError)]


def only_reason(path: str) -> str:
    (item,) = read_runs(path)
    assert isinstance(item, RecordError)
    assert item.file == path
    assert "\n" not in str(item)
    return item.reason


def test_gzip_is_found_by_its_bytes_not_by_the_name(write: Write) -> None:
    assert [run.run_id for run in runs(write("a.jsonl", RUN, packed=True))] == ["a"]


def test_plain_text_is_read_whatever_the_name_says(write: Write) -> None:
    assert [run.run_id for run in runs(write("a.jsonl.gz", RUN))] == ["a"]


def test_a_byte_order_mark_is_no_part_of_the_first_record(write: Write) -> None:
    assert len(runs(write("a.jsonl", b"\xef\xbb\xbf", RUN))) == 1


def test_blank_lines_are_skipped_and_still_counted(write: Write) -> None:
    assert [run.line for run in runs(write("a.jsonl", RUN, "", "  ", RUN))] == [1, 4]


def test_an_indented_document_is_one_record(write: Write) -> None:
    assert len(runs(write("a.json", json.dumps(RUN, indent=2)))) == 1


def test_a_bad_line_is_reported_with_its_number_and_the_rest_goes_on(write: Write) -> None:
    path = write("a.jsonl", RUN, "{nonsense", RUN)
    assert [error.line for error in errors(path)] == [2]
    assert len(runs(path)) == 2


def test_a_bad_first_line_does_not_hide_the_runs_after_it(write: Write) -> None:
    path = write("a.jsonl", '{"run_id": "cut', RUN)
    assert [error.line for error in errors(path)] == [1]
    assert len(runs(path)) == 1


def test_a_first_line_that_ends_inside_a_value_does_not_hide_the_runs_after_it(write: Write) -> None:
    path = write("a.jsonl", '{"run_id": ', RUN)
    assert [error.line for error in errors(path)] == [1]
    assert len(runs(path)) == 1


def test_a_line_that_is_no_utf8_is_one_malformed_record(write: Write) -> None:
    path = write("a.jsonl", RUN, b'{"task": "\xff"}\n', RUN)
    assert "UTF-8" in errors(path)[0].reason
    assert len(runs(path)) == 2


def test_half_an_emoji_becomes_the_replacement_character(write: Write) -> None:
    (run,) = runs(write("a.jsonl", r'{"steps": [{"thought": "cut \ud83d"}]}'))
    assert run.steps[0].thought == "cut \ufffd"


def test_half_an_emoji_too_deep_to_mend_is_one_malformed_record(write: Write) -> None:
    depth = 900 if sys.version_info < (3, 11) else 1_200  # parsed still, but too deep to walk through
    deep = '{"steps": ' + '{"a":' * depth + r'"\ud83d"' + "}" * (depth + 1)
    path = write("a.jsonl", RUN, deep, RUN)
    assert [error.line for error in errors(path)] == [2]
    assert len(runs(path)) == 2


def test_a_whole_emoji_stays(write: Write) -> None:
    (run,) = runs(write("a.jsonl", r'{"steps": [{"thought": "\ud83d\ude00"}]}'))
    assert run.steps[0].thought == "\U0001f600"


def test_runs_before_the_cut_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    lines = "".join(json.dumps({**RUN, "task": str(n) * 999}) + "\n" for n in range(9_999))
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode())[:-20])
    assert len(runs(str(path))) > 9_000
    assert "cut short" in errors(str(path))[0].reason


def test_gzip_that_is_damaged_is_said(tmp_path: Path) -> None:
    path = tmp_path / "damaged.gz"
    path.write_bytes(gzip.compress(b"{}")[:10] + b"\xff" * 40)
    assert "damaged" in only_reason(str(path))


def test_an_indented_document_in_cut_gzip_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(RUN, indent=1).encode())[:-9])
    assert "cut short" in only_reason(str(path))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"\x7fELF\x02\x00\x00", "binary"),
        ("hello".encode("utf-16"), "UTF-16"),
        (b"# A title\nand text\n" * 20, "first 8 lines"),
        (b"{'steps': []}\n", "not JSON"),
        (b"42\n", "JSON int"),
        (b'{"a": 1, "b": [2]}\n', "'a', 'b'"),
        (b"{}\n", "empty object"),
        (b"[]\n", "list of 0"),
        (b"[\n1,\n2\n", "not JSON"),
        (b"[" * 100_000, "limits"),
        (b"[" + b"9" * 9_999 + b"]\n", "limits"),
    ],
)
def test_a_file_without_a_run_has_one_reason(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert word in only_reason(str(path))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    assert only_reason(str(tmp_path / "none")) == "no such file"


def test_progress_ends_at_the_size_of_the_file(write: Write) -> None:
    path = write("a.jsonl", *[RUN] * 99)
    seen: list[int] = []
    list(read_runs(path, progress=seen.append))
    assert seen[-1] == Path(path).stat().st_size


def test_memory_holds_a_run_not_the_file(write: Write) -> None:
    big = {"steps": [{"thought": "x" * 200_000}]}
    path = write("a.jsonl", *[big] * 100)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_runs(path)) == 100
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def bounded(path: str) -> list[int | str]:
    """Lines of at most 20 bytes: the number of each record, the text of each error."""
    found = read_records(path, longest=20)
    return [item.line if isinstance(item, Record) else str(item).removeprefix(path) for item in found]


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long_is_one_malformed_record(write: Write, packed: bool) -> None:
    path = write("a.jsonl", "{}", {"task": "x" * 99}, "{}", packed=packed)
    assert bounded(path) == [1, ":2: line longer than 20 bytes", 3]


def test_a_first_line_that_is_too_long_does_not_hide_the_runs_after_it(write: Write) -> None:
    assert bounded(write("a.jsonl", {"task": "x" * 99}, "{}")) == [":1: line longer than 20 bytes", 2]


def test_a_torn_first_line_and_one_that_is_too_long_do_not_hide_the_runs(write: Write) -> None:
    path = write("a.jsonl", '{"run_id":', {"task": "x" * 99}, "{}")
    assert [item for item in bounded(path) if isinstance(item, int)] == [3]


def test_a_line_of_just_the_longest_length_is_read(write: Write) -> None:
    assert bounded(write("a.jsonl", '{"task":   "' + "x" * 5 + '"}', "{}")) == [1, 2]


def test_a_last_line_that_is_too_long_needs_no_end(write: Write) -> None:
    assert bounded(write("a.jsonl", "{}", b"[" * 21)) == [1, ":2: line longer than 20 bytes"]


def test_binary_data_without_a_line_is_not_read_to_its_end(write: Write) -> None:
    seen: list[int] = []
    (item,) = read_records(write("a.bin", b"\0" * 1_000_000), seen.append, longest=20)
    assert "binary" in str(item)
    assert len(seen) == 1


def test_memory_holds_no_more_of_a_line_than_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b'"' + b"a" * 50_000_000))
    tracemalloc.start()
    try:
        assert [str(item) for item in read_records(str(path), longest=1_000)] == [
            f"{path}:1: line longer than 1,000 bytes"
        ]
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_packed_file_is_read_up_to_a_limit_that_is_said(tmp_path: Path) -> None:
    line = json.dumps(RUN) + "\n"
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(line.encode() * 9_000))
    *found, last = read_records(str(path), unpacked=len(line) * 5_000)
    assert 0 < len(found) <= 5_000
    assert isinstance(last, RecordError)
    assert (last.line, "REASONBLOCKS_UNPACKED_MB" in last.reason) == (len(found) + 1, True)


def test_a_packed_file_of_just_the_limit_and_a_plain_one_of_any_size_are_read_whole(write: Write) -> None:
    size = len(json.dumps(RUN)) + 1
    assert len(list(read_records(write("a.gz", *[RUN] * 9, packed=True), unpacked=9 * size))) == 9
    assert len(list(read_records(write("a.jsonl", *[RUN] * 9), unpacked=1))) == 9


def test_a_bomb_of_blank_lines_is_passed_over_at_once_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"\n" * 1_000_000)
        file.write(json.dumps(RUN).encode())
    started = time.perf_counter()
    (run,) = read_runs(str(path))
    assert run.line == 40_000_001
    assert time.perf_counter() - started < 5  # a line at a time they took 20 s


@pytest.mark.parametrize("blank", ["", "   ", "\t", "\r", " \n \n\n"])
def test_blank_lines_of_any_kind_between_blocks_are_counted(tmp_path: Path, blank: str) -> None:
    one, count = json.dumps(RUN) + "\n", 200_000
    path = tmp_path / "a.jsonl"
    path.write_bytes((one + (blank + "\n") * count + one).encode())
    assert [run.line for run in runs(str(path))] == [1, 2 + (blank.count("\n") + 1) * count]


def test_a_value_over_more_lines_than_are_held_does_not_hide_the_records_after_it(write: Write) -> None:
    path = write("a.jsonl", '{"task": ', *['"x",'] * 4, "{}")
    assert [item for item in bounded(path) if isinstance(item, int)] == [6]


def test_a_value_of_too_many_lines_is_one_reason(write: Write) -> None:
    assert bounded(write("a.json", "[", *["1,"] * 99)) == [":1: begins a value of more than 20 bytes"]


def test_the_fault_of_a_document_is_on_the_line_where_it_stands(write: Write) -> None:
    assert [error.line for error in errors(write("a.json", "{", "", "", '"a": 1,', "", "b", "}"))] == [6]


DEEP = [100, 900, 3_000, 20_000, 200_000]


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize("where", ["action_input", "tool_calls", "observation", "tokens"])
def test_a_value_of_any_depth_is_a_run_or_an_error_of_its_line(write: Write, depth: int, where: str) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inner = opening * depth + "1" + closing * depth
        deep = f'{{"run_id": "deep", "steps": [{{"action": "ls", "{where}": {inner}}}]}}'
        one, other, last = read_runs(write("a.jsonl", RUN, deep, RUN))
        assert isinstance(other, (RecordedRun, RecordError))
        assert (one.line, other.line, last.line) == (1, 2, 3)
        assert isinstance(last, RecordedRun)


def test_a_number_of_thousands_of_digits_is_one_malformed_record(write: Write) -> None:
    path = write("a.jsonl", RUN, f'{{"steps": [], "tokens": {"9" * 9_999}}}', RUN)
    assert [error.line for error in errors(path)] == [2]
    assert len(runs(path)) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
steps = st.lists(
    st.dictionaries(
        st.sampled_from(["thought", "action", "action_input", "observation", "is_error", "tokens", "tool_calls"]),
        json_values,
    )
)
messages = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["human", "ai", "tool", "system", "other"]),
            "data": st.dictionaries(st.sampled_from(["content", "tool_calls", "status", "tool_call_id"]), json_values),
        }
    )
)
records = st.one_of(
    json_values,
    st.fixed_dictionaries({"steps": steps}, optional={"run_id": json_values, "task": json_values}),
    messages,
    st.fixed_dictionaries({"messages": messages | json_values}),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=records)
def test_any_json_line_gives_a_run_or_an_error_of_that_line(tmp_path: Path, record: object) -> None:
    path = tmp_path / "any.jsonl"
    path.write_text(json.dumps(RUN) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    _, item = read_runs(str(path))
    assert isinstance(item, (RecordedRun, RecordError))
    assert item.line == 2


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=records)
def test_any_json_document_gives_a_run_or_an_error(tmp_path: Path, record: object) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")
    (item,) = read_runs(str(path))
    assert isinstance(item, (RecordedRun, RecordError))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary())
def test_any_bytes_give_runs_or_errors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(content)
    assert all(isinstance(item, (RecordedRun, RecordError)) for item in read_runs(str(path)))
