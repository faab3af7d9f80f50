"""`./dev` says what it waits for, and which benchmarks there are."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `./dev`, whose environment is there already."""
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/ready").touch()
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec "{sys.executable}" "$@"\necho "ran: $*"\n', encoding="utf-8")
    python.chmod(0o755)
    (tmp_path / ".nox").mkdir()
    return tmp_path


@contextmanager
def locked(path: Path, process: str) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(process)
        lock.flush()
        yield


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["./dev", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_session_that_waits_for_another_says_for_which(folder: Path) -> None:
    with locked(folder / ".nox/lint.lock", "4321"):
        waiting = start(folder, "lint", "one")
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
    out, _ = waiting.communicate(timeout=60)
    assert said == "dev: waiting for another ./dev lint (process 4321) in this folder to end\n"
    assert out == "ran: -m nox --session lint -- one\n"


def test_a_session_leaves_its_process_for_the_next_to_name(folder: Path) -> None:
    alone = start(folder, "lint")
    out, said = alone.communicate(timeout=60)
    assert (out, said) == ("ran: -m nox --session lint --\n", "")
    assert (folder / ".nox/lint.lock").read_text(encoding="utf-8") == str(alone.pid)


def test_two_servers_run_at_the_same_time(folder: Path) -> None:
    with locked(folder / ".nox/serve.lock", "4321"):
        out, said = start(folder, "serve", "--port", "8001").communicate(timeout=60)
    assert (out, said) == ("ran: -m nox --session serve -- --port 8001\n", "")


def test_a_benchmark_that_does_not_exist_is_refused_with_those_that_do() -> None:
    nox = Path(sys.executable).with_name("nox")
    if not nox.exists():
        nox = ROOT / ".venv/bin/nox"
    done = subprocess.run(
        [nox, "--session", "bench", "--", "nosuch"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "there is no benchmark 'nosuch'; there are: " in done.stderr
    assert all(path.stem in done.stderr for path in ROOT.glob("benchmarks/[!_]*.py"))
