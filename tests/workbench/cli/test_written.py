"""A file that a user has already is replaced as a whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reasonblocks.util.files import write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes, links and limits")

OLD = "kept\n"
FULL_DISK = """
import resource, sys
from reasonblocks_workbench.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""
"""A file that grows beyond the limit cannot be written on, as on a full disk."""
STEPS = [
    {"thought": "I look.", "action": "ls", "action_input": ".", "observation": "Error: denied", "is_error": True}
] * 9


def on_full_disk(limit: int, *argv: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-B", "-c", FULL_DISK, str(limit), *argv]  # -B: no cut files in __pycache__
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)


def runs(folder: Path) -> str:
    """Enough texts of many tasks for `patterns calibrate`, and enough trouble for `learn`."""
    path = folder / "runs.jsonl"
    lines = [
        {
            "run_id": f"r{at}",
            "task": f"task {at % 20} of word{at}",
            "outcome": "failure" if at % 2 else "success",
            "steps": [
                {**step, "thought": f"Look at {at} and word{at * 7 + index}."} for index, step in enumerate(STEPS)
            ],
        }
        for at in range(80)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def commands(folder: Path, out: str) -> dict[str, list[str]]:
    return {
        "export": ["patterns", "export", "--starter", "--store", str(folder / "none.db"), "--out", out],
        "export toml": ["patterns", "export", "--starter", "--toml", "--store", str(folder / "none.db"), "--out", out],
        "patterns calibrate": ["patterns", "calibrate", runs(folder), "--embedder", "hash", "--out", out],
        "calibrate": ["calibrate", runs(folder), "--out", out],
        "learn": ["learn", runs(folder), "--store", str(folder / "none.db"), "--out", out],
    }


@pytest.mark.parametrize("name", ["export", "export toml", "patterns calibrate", "calibrate", "learn"])
def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path, name: str) -> None:
    if name == "calibrate":
        pytest.importorskip("sklearn")
    out = tmp_path / "out" / "mine"
    out.parent.mkdir()
    out.write_text("" if name == "learn" else OLD, encoding="utf-8")
    before = out.read_bytes()
    done = on_full_disk(40, *commands(tmp_path, str(out))[name])
    assert (done.returncode, done.stderr.count("unchanged")) == (1, 1), done.stderr
    assert str(out) in done.stderr
    assert out.read_bytes() == before
    assert os.listdir(out.parent) == ["mine"]


def test_the_same_command_replaces_the_file_where_there_is_room(tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    out.write_text(OLD, encoding="utf-8")
    done = on_full_disk(10_000_000, *commands(tmp_path, str(out))["export"])
    assert (done.returncode, OLD in out.read_text(encoding="utf-8")) == (0, False)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_the_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "mine"
    path.write_text(OLD, encoding="utf-8")
    path.chmod(mode)
    write_whole(path, "new\n")
    assert (path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("new\n", mode)


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("", encoding="utf-8")
    write_whole(tmp_path / "mine", "new\n")
    assert (tmp_path / "mine").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_of_a_link_the_target_is_replaced(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    if there:
        target.write_text(OLD, encoding="utf-8")
    link.symlink_to("far/target")
    write_whole(link, "new\n")
    assert (link.is_symlink(), target.is_symlink(), target.read_text(encoding="utf-8")) == (True, False, "new\n")
    assert sorted(os.listdir(tmp_path)) == ["far", "link"]


def test_a_link_to_itself_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        write_whole(tmp_path / "loop", "new\n")
    assert os.listdir(tmp_path) == ["loop"]


def test_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"cannot write .*/folder: is a directory$"):
        write_whole(tmp_path / "folder", "new\n")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("path", ["none/mine", "file/mine"])
def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    with pytest.raises(OSError, match="mine") as raised:
        write_whole(tmp_path / path, "new\n")
    assert isinstance(raised.value, (FileNotFoundError, NotADirectoryError))
    assert str(raised.value) == f"cannot write {tmp_path / path}: no such folder"
    assert raised.value.errno in {errno.ENOENT, errno.ENOTDIR}


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_may_not_be_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text(OLD, encoding="utf-8")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="mine"):
        write_whole(path, "new\n")
    assert (path.read_text(encoding="utf-8"), os.listdir(tmp_path)) == (OLD, ["mine"])


def test_a_fifo_is_written_to_and_stays_one(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text(encoding="utf-8")))
    reader.start()
    write_whole(fifo, "new\n")
    reader.join(timeout=30)
    assert (got, stat.S_ISFIFO(fifo.stat().st_mode)) == (["new\n"], True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_device_is_an_error_and_stays() -> None:
    with pytest.raises(OSError, match="cannot write /dev/full: no space"):
        write_whole("/dev/full", "new\n")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("redirected", [True, False])
def test_dev_stdout_is_the_commands_own_stdout(tmp_path: Path, redirected: bool) -> None:
    argv = [sys.executable, "-m", "reasonblocks", *commands(tmp_path, "/dev/stdout")["export"]]
    held = tmp_path / "held"
    with open(held, "w", encoding="utf-8") as file:
        to = file if redirected else subprocess.PIPE
        done = subprocess.run(argv, stdout=to, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    said = held.read_text(encoding="utf-8") if redirected else done.stdout
    assert (done.returncode, '"tier":"e3"' in said.replace(" ", "")) == (0, True)


def test_text_that_is_no_utf8_leaves_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(OLD, encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "mine", "\ud800")
    assert (tmp_path / "mine").read_text(encoding="utf-8") == OLD
    assert os.listdir(tmp_path) == ["mine"]
