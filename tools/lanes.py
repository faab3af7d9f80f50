"""Commands run two at a time: each prints its output in one block when it ends, and Ctrl-C stops all of them.

`./dev tests` and `./dev matrix` start their stages with this.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

__all__ = ["LANES", "Stage", "run"]

LANES = 2
POLL_S = 0.1
GRACE_S = 5.0
"""The time that interrupted stages have to end by themselves."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A command with a name. The results are set when it has ended."""

    name: str
    command: Sequence[str]
    code: int | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)


def run(stages: Iterable[Stage], logs: Path, *, cwd: Path, say: Callable[[str], object] = print) -> list[Stage]:
    """Run the stages in their order, two at a time, and return those that failed.

    A stage writes to `NAME.log` in the folder `logs` until it ends. The next stage starts in the lane that is free
    first, so the longest ones belong at the beginning. A failure does not stop the others.

    Raises:
        KeyboardInterrupt: on Ctrl-C and on the signals that end a process; every running stage was stopped.
    """
    waiting, running, failed = deque(stages), list[Stage](), list[Stage]()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, interrupt)
        while waiting or running:
            while waiting and len(running) < LANES:
                running.append(started(waiting.popleft(), logs, cwd))
                say(f"--- {running[-1].name}: started")
            time.sleep(POLL_S)
            for stage in [stage for stage in running if has_ended(stage)]:
                running.remove(stage)
                say(report(stage, logs))
                failed += [stage] if stage.code else []
    finally:
        stop(running)
        for number, handler in before.items():
            signal.signal(number, handler)
    return failed


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def started(stage: Stage, logs: Path, cwd: Path) -> Stage:
    """Start the stage in a process group of its own, so that it can be stopped with its children."""
    with log_of(stage, logs).open("wb") as log:
        stage.process = subprocess.Popen(
            stage.command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    stage.seconds = -time.monotonic()
    return stage


def log_of(stage: Stage, logs: Path) -> Path:
    return logs / f"{stage.name}.log"


def has_ended(stage: Stage) -> bool:
    """Return whether the stage has ended. If so, store its exit code, its time, and the CPU time with its children."""
    if stage.code is not None:
        return True
    assert stage.process is not None
    pid, status, usage = os.wait4(stage.process.pid, os.WNOHANG)
    if not pid:
        return False
    stage.code = stage.process.returncode = os.waitstatus_to_exitcode(status)
    stage.seconds += time.monotonic()
    stage.cpu_seconds = usage.ru_utime + usage.ru_stime
    return True


def report(stage: Stage, logs: Path) -> str:
    """Return the stage's whole output between two lines with its name."""
    output = log_of(stage, logs).read_text(encoding="utf-8", errors="replace").rstrip("\n")
    result = f"failed ({stage.code})" if stage.code else "succeeded"
    end = f"--- {stage.name}: {result} in {stage.seconds:.0f} s, CPU {stage.cpu_seconds:.0f} s"
    return "\n".join([f"--- {stage.name}", output, end, ""])


def stop(stages: Sequence[Stage]) -> None:
    """Interrupt the stages with all their processes, and kill what is left after `GRACE_S`."""
    send(signal.SIGINT, stages)
    until = time.monotonic() + GRACE_S
    try:
        while not all(has_ended(stage) for stage in stages) and time.monotonic() < until:
            time.sleep(POLL_S)
    finally:
        send(signal.SIGKILL, stages)  # children may ignore an interrupt, for instance background jobs of a shell
        for stage in stages:
            if stage.process is not None and stage.code is None:
                stage.code = stage.process.wait()


def send(number: signal.Signals, stages: Sequence[Stage]) -> None:
    for stage in stages:
        assert stage.process is not None
        with suppress(ProcessLookupError):
            os.killpg(stage.process.pid, number)
