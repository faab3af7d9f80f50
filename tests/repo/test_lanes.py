"""`./dev tests` runs two stages at a time, shows their whole output, and stops them on Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nox_support
import pytest

TOOLS = Path(__file__).parents[2] / "tools"
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in which the stages run and leave their output."""
    monkeypatch.chdir(tmp_path)


def run(**scripts: str) -> list[str]:
    """Run scripts as stages, and return the names of those that failed."""
    stages = nox_support.in_lanes({name: ["sh", "-c", script] for name, script in scripts.items()}, Path())
    return [stage.name for stage in stages if stage.code]


def test_a_failure_in_either_lane_is_returned_and_the_others_run() -> None:
    failed = run(first="exit 3", second="exit 0", third="touch ran", fourth="kill -9 $$")
    assert failed == ["first", "fourth"]
    assert Path("ran").exists()


def test_a_stage_s_whole_output_is_in_one_block(capsys: pytest.CaptureFixture[str]) -> None:
    run(one="echo a; echo b >&2; exit 1", other="echo c; echo d")
    said = capsys.readouterr().out
    assert "--- one\na\nb\n--- one: failed (1) in " in said
    assert "--- other\nc\nd\n--- other: succeeded in " in said


def test_two_stages_run_at_the_same_time() -> None:
    """Each waits for the other."""
    waits = "touch {0}; n=0; until [ -e {1} ]; do n=$((n+1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done"
    assert run(one=waits.format("a", "b"), other=waits.format("b", "a")) == []


def test_no_process_of_a_stage_outlives_it() -> None:
    assert run(one="sleep 600 & echo $! > pid") == []
    wait_for(lambda: not is_running(int(Path("pid").read_text())))


PROGRAM = f"""
import sys
from pathlib import Path
sys.path.append({str(TOOLS)!r})
import nox_support
waits = "sleep 600 & echo $! > $0.pid; wait"
nox_support.in_lanes({{name: ["sh", "-c", waits, name] for name in ("one", "other", "never")}}, Path("."))
"""


def as_in_a_terminal() -> None:
    """Undo what a background shell starts us with: SIGINT ignored, which the stages would outlive until the kill."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_stops_both_lanes_with_their_children(number: signal.Signals, tmp_path: Path) -> None:
    files = [tmp_path / "one.pid", tmp_path / "other.pid"]
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=as_in_a_terminal,
    )  # fmt: skip
    with program:
        try:
            wait_for(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
            program.send_signal(number)
            _, errors = program.communicate(timeout=LIMIT_S)
        finally:
            program.kill()
    assert program.returncode != 0
    assert errors.endswith("KeyboardInterrupt\n")
    assert not (tmp_path / "never.pid").exists()
    wait_for(lambda: not any(is_running(int(file.read_text())) for file in files))


def wait_for(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Return whether the process exists. A zombie counts as ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in ("", "Z")
