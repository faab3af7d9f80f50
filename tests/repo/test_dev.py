"""`./dev`: one run of a session waits for another one and says so; `bench` names the benchmarks that there are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import turns

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
PYTHON = f"""#!/bin/sh
case "$*" in "-m nox"*) echo started; read line; exit;; esac
exec "{sys.executable}" "$@"
"""
"""Python as `./dev` finds it, with a nox that prints one line, and ends after its input's next one."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose sessions do nothing."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/ready").touch()
    python = tmp_path / ".venv/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/turns.py", tmp_path / "tools")
    shutil.copy(ROOT / "dev", tmp_path)
    return tmp_path


class Runs:
    """Runs of `./dev`, all ended at last."""

    def __init__(self, checkout: Path, stack: ExitStack) -> None:
        self.checkout, self.stack = checkout, stack

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        run = self.stack.enter_context(
            subprocess.Popen(
                [self.checkout / "dev", *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True,
                env={**os.environ, "PYTHONWARNINGS": ""},
            )
        )  # fmt: skip
        self.stack.callback(run.kill)
        timer = threading.Timer(LIMIT_S, run.kill)  # so that a line that never comes ends the reading
        self.stack.callback(timer.cancel)
        timer.start()
        return run


@pytest.fixture
def runs(checkout: Path) -> Iterator[Runs]:
    with ExitStack() as stack:
        yield Runs(checkout, stack)


def read(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return run.stdout.readline()


def test_a_run_that_waits_names_the_session_and_the_process_it_waits_for(runs: Runs) -> None:
    first = runs.start("core")
    assert read(first) == "started\n"
    second = runs.start("core")
    assert second.stderr is not None
    assert second.stderr.readline() == f"dev: core waits for core (process {first.pid})\n"
    first.communicate("\n")
    assert read(second) == "started\n"


def test_another_session_does_not_wait(runs: Runs) -> None:
    both = [runs.start("core"), runs.start("server")]
    assert [read(run) for run in both] == ["started\n", "started\n"]
    assert [run.poll() for run in both] == [None, None]


def test_two_servers_run_at_the_same_time(runs: Runs) -> None:
    both = [runs.start("serve", "--port", port) for port in ("1", "2")]
    assert [read(run) for run in both] == ["started\n", "started\n"]
    assert [run.poll() for run in both] == [None, None]


def test_a_process_that_has_ended_is_not_named(runs: Runs) -> None:
    locks = runs.checkout / ".nox"
    ended = subprocess.Popen(["true"])
    ended.wait()
    first = runs.start("core")
    assert read(first) == "started\n"
    lock = locks / "core.lock"
    lock.write_text(f"{ended.pid} core\n" + lock.read_text())
    second = runs.start("core")
    assert second.stderr is not None
    assert second.stderr.readline() == f"dev: core waits for core (process {first.pid})\n"


def test_an_unknown_benchmark_is_an_error_that_names_those_that_there_are(tmp_path: Path) -> None:
    nox = (sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), "--envdir", str(tmp_path))
    done = subprocess.run(
        [*nox, "--session", "bench", "--", "nosuch", "--json"], capture_output=True, text=True, check=False,
        timeout=LIMIT_S, env={**os.environ, "PYTHONWARNINGS": ""},
    )  # fmt: skip
    assert done.returncode != 0
    names = ", ".join(sorted(path.stem for path in ROOT.glob("benchmarks/[!_]*.py")))
    assert f"there is no benchmark 'nosuch'; there are {names}" in done.stdout + done.stderr


def test_those_that_share_a_lock_are_all_listed(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a+") as one, (tmp_path / "lock").open("a+") as other:
        turns.take(one.fileno(), "core", os.getppid(), shared=True)
        turns.take(other.fileno(), "types", os.getpid(), shared=True)
        assert turns.running(one.fileno()) == {os.getppid(): "core", os.getpid(): "types"}
