"""Rows survive an interruption, and rows of different experiments are never mixed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from _outcome.rows import Made, Row, Told
from _outcome.store import DamagedFile, FileInUse, OtherSettings, Store, build, digest, read

SETTINGS = {"model": "small", "split": "tune", "temperature": 0.6, "arms": ("off", "shipped@tail")}
ROW = Row(
    model="small", through="loop", phase="branch", family="house", seed=3, arm="shipped@tail", sample=0,
    won=True, ended=False, steps=2, point=1, kind="loop", monitor="alternation", winnable=True, prompt=10,
    told=(Told(step=1, text="Try the \ud83d attic.", monitor="alternation", kind="loop", sources=("a", "b")),),
    calls=(Made(name="go", arguments={"room": "attic"}, output="Doors: cellar.\n", thought="…"),),
)  # fmt: skip


def silent(text: str) -> None:
    raise AssertionError(text)


def filled(path: Path, *rows: Row) -> None:
    with Store(path, SETTINGS, say=silent) as store:
        for row in rows:
            store.append(row)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "rows.jsonl"


def test_rows_are_read_back_as_they_were_written(path: Path) -> None:
    other = replace(ROW, arm="off", won=False, told=(), evaluated=7)
    filled(path, ROW, other)
    assert read(path).rows == (ROW, other)
    assert read(path).settings == {**SETTINGS, "arms": ["off", "shipped@tail"]}


def test_a_row_is_in_the_file_as_soon_as_it_is_appended(path: Path) -> None:
    with Store(path, SETTINGS) as store:
        store.append(ROW)
        assert read(path).rows == (ROW,)


def test_an_experiment_goes_on_behind_the_rows_that_are_there(path: Path) -> None:
    filled(path, ROW)
    again = replace(ROW, sample=1)
    with Store(path, SETTINGS, say=silent) as store:
        assert store.done == {ROW.key}
        store.append(again)
        assert store.done == {ROW.key, again.key}
    assert read(path).rows == (ROW, again)


def test_a_run_with_an_error_is_made_again_and_only_its_last_row_counts(path: Path) -> None:
    filled(path, replace(ROW, error="BackendError: 503"))
    with Store(path, SETTINGS) as store:
        assert store.done == set()
        store.append(ROW)
        assert store.rows == (ROW,)
    assert read(path).rows == (ROW,)


@pytest.mark.parametrize("rest", [b'{"model": "sm', b'{"model": "small"}', b"\xff\xfe", b"["])
def test_a_damaged_last_line_is_cut_off_and_said_once(path: Path, rest: bytes) -> None:
    filled(path, ROW)
    whole = path.read_bytes()
    path.write_bytes(whole + rest)
    said: list[str] = []
    again = replace(ROW, sample=1)
    assert read(path).damaged
    with Store(path, SETTINGS, say=said.append) as store:
        store.append(again)
    assert len(said) == 1
    assert "damaged" in said[0]
    assert path.read_bytes() == whole + json.dumps(again.as_dict()).encode() + b"\n"


def test_a_last_line_that_lacks_only_its_end_is_kept(path: Path) -> None:
    filled(path, ROW)
    path.write_bytes(path.read_bytes()[:-1])
    again = replace(ROW, sample=1)
    filled(path, again)
    assert read(path).rows == (ROW, again)


def test_a_header_cut_in_the_middle_is_written_again(path: Path) -> None:
    filled(path)
    header = path.read_bytes()
    path.write_bytes(header[:9])
    said: list[str] = []
    Store(path, SETTINGS, say=said.append).close()
    assert path.read_bytes() == header
    assert len(said) == 1


def test_a_damaged_line_between_others_is_an_error_that_changes_nothing(path: Path) -> None:
    filled(path, ROW)
    header, row = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"{}\n" + row)
    with pytest.raises(DamagedFile, match="line 2 of"):
        Store(path, SETTINGS)
    assert path.read_bytes() == header + b"{}\n" + row


@pytest.mark.parametrize("content", ["# notes\n\nmore\n", "a note", '{"a": 1}', '{"a": 1}\n', "[]\n"])
def test_a_file_of_something_else_is_an_error_that_changes_nothing(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(DamagedFile, match="line 1 of"):
        Store(path, SETTINGS)
    assert path.read_text() == content


def test_a_whole_last_line_that_is_no_row_is_an_error_that_changes_nothing(path: Path) -> None:
    filled(path, ROW)
    path.write_bytes(before := path.read_bytes() + b'{"model": "small"}\n')
    with pytest.raises(DamagedFile, match="line 3 of"):
        Store(path, SETTINGS)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "there", "here"),
    [
        ({"temperature": 0.3}, "temperature 0.6", "0.3"),
        ({"arms": ("off",)}, "arms ['off', 'shipped@tail']", "['off']"),
        ({"build": "abc"}, "build None", "'abc'"),
    ],
)
def test_rows_of_other_settings_are_refused_by_name(
    path: Path, changed: dict[str, object], there: str, here: str
) -> None:
    filled(path, ROW)
    before = path.read_bytes()
    with pytest.raises(OtherSettings) as caught:
        Store(path, {**SETTINGS, **changed})
    assert there in str(caught.value)
    assert f"this run has {here}" in str(caught.value)
    assert caught.value.name == next(iter(changed))
    assert path.read_bytes() == before


def test_a_setting_that_is_missing_now_differs(path: Path) -> None:
    filled(path)
    with pytest.raises(OtherSettings, match="split 'tune', and this run has None"):
        Store(path, {name: value for name, value in SETTINGS.items() if name != "split"})


OPENS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from _outcome.store import FileInUse, Store
try:
    Store(Path(sys.argv[2]), {})
except FileInUse as error:
    print(error)
"""


def test_another_process_cannot_append_meanwhile(path: Path) -> None:
    with Store(path, SETTINGS) as store:
        with pytest.raises(FileInUse):
            Store(path, SETTINGS)
        benchmarks = str(Path(__file__).parents[2] / "benchmarks")
        done = subprocess.run(
            [sys.executable, "-c", OPENS, benchmarks, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(f"another process appends to '{path}'")
        store.append(ROW)
    filled(path, replace(ROW, sample=1))


def test_the_digest_is_that_of_the_texts_and_not_of_their_order() -> None:
    texts = {"a": "one", "b": "two"}
    assert digest(texts) == digest({"b": "two", "a": "one"})
    assert digest(texts) != digest({**texts, "b": "three"})


def test_the_build_is_a_commit_in_a_clone() -> None:
    commit = build().removesuffix("+changes")
    assert len(commit) == 40
    assert set(commit) <= set("0123456789abcdef")
