"""A folder in the place of a file: all files in it are read, and those without runs are named."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.traces import RecordedRun, read_runs

RUN = {"steps": [{"thought": "look"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Like `~/.claude/projects`: a folder for each project, with other files beside the recordings."""
    files = {
        "b/session.jsonl": json.dumps({"run_id": "b", **RUN}),
        "a/session.jsonl": json.dumps({"run_id": "a", **RUN}),
        "a/session/subagents/one.jsonl": json.dumps({"run_id": "in a", **RUN}),
        "a/memory/NOTES.md": "# Notes",
        ".hidden/session.jsonl": json.dumps({"run_id": "hidden", **RUN}),
    }
    for name, text in files.items():
        path = tmp_path / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return tmp_path / "projects"


def test_every_file_of_a_folder_is_read_in_the_order_of_their_names(folder: Path) -> None:
    runs = [run for run in read_runs(folder) if isinstance(run, RecordedRun)]
    assert [run.run_id for run in runs] == ["in a", "a", "b"]
    assert [Path(run.file) for run in runs] == [
        folder / "a/session/subagents/one.jsonl", folder / "a/session.jsonl", folder / "b/session.jsonl",
    ]  # fmt: skip


def test_a_file_without_runs_is_named(folder: Path) -> None:
    (error,) = [item for item in read_runs(folder) if isinstance(item, RecordError)]
    assert (Path(error.file), "not JSON" in error.reason) == (folder / "a/memory/NOTES.md", True)


def test_a_folder_without_files_is_said(tmp_path: Path) -> None:
    (error,) = read_runs(tmp_path)
    assert isinstance(error, RecordError)
    assert error.reason == "is a folder without files"


def test_a_link_that_leads_back_is_not_followed(folder: Path) -> None:
    (folder / "a/loop").symlink_to(folder)
    assert len(list(read_runs(folder))) == 4


def test_the_progress_of_a_folder_grows_to_the_size_of_its_files(folder: Path) -> None:
    seen: list[int] = []
    list(read_runs(folder, progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == sum(path.stat().st_size for path in folder.rglob("[!.]*") if path.is_file()) - len(
        (folder / ".hidden/session.jsonl").read_bytes()
    )


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "a/pipe.jsonl")
    assert len(list(read_runs(folder))) == 4


def test_a_file_that_is_deleted_meanwhile_costs_no_other(folder: Path) -> None:
    found = read_runs(folder, progress=lambda _: None)
    next(found)
    (folder / "a/session.jsonl").unlink()
    (folder / "a/session/subagents/one.jsonl").unlink()
    assert [run.run_id for run in found if isinstance(run, RecordedRun)] == ["b"]


def test_a_link_to_itself_is_named_and_costs_no_other(folder: Path) -> None:
    (folder / "a/a.jsonl").symlink_to("a.jsonl")
    found = list(read_runs(folder))
    assert [run.run_id for run in found if isinstance(run, RecordedRun)] == ["in a", "a", "b"]
    assert folder / "a/a.jsonl" in [Path(item.file) for item in found if isinstance(item, RecordError)]


def test_folders_of_any_depth_are_read(folder: Path) -> None:
    with deep_folder(folder, 2_500):  # deeper than Python's stack, and than the longest path
        found = list(read_runs(folder))
    assert [item.run_id for item in found if isinstance(item, RecordedRun)] == ["in a", "a", "b"]
    assert "File name too long" in str(found[-1])


@contextmanager
def deep_folder(folder: Path, depth: int) -> Iterator[None]:
    """Folders in folders that are removed again: pytest's own removal calls itself for each."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep", dir_fd=at)
        at = opened("deep", at)
    try:
        yield
    finally:
        for _ in range(depth):
            at = opened("..", at)
            os.rmdir("deep", dir_fd=at)
        os.close(at)


def opened(name: str, at: int) -> int:
    found = os.open(name, os.O_RDONLY, dir_fd=at)
    os.close(at)
    return found
