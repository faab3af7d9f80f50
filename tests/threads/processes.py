"""Starts other processes on a file of threads, tells them what to do at the same time, and ends them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


class Other:
    """A started process of `other_process.py`."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "tests.threads.other_process", str(file)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def tell(self, *words: str) -> None:
        pipe = self._pipe(self.process.stdin)
        pipe.write(" ".join(words) + "\n")
        pipe.flush()

    def hear(self) -> str:
        """Return the next result; "" if the process died."""
        return self._pipe(self.process.stdout).readline().strip()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def end(self) -> str:
        """End the process. Return what it wrote to standard error."""
        return self.process.communicate(timeout=60)[1]


@contextmanager
def others(file: Path, number: int) -> Iterator[list[Other]]:
    """Start so many processes on a file, and end them; they must have written no error."""
    with ExitStack() as stack:
        started = [Other(file) for _ in range(number)]
        for one in started:
            stack.enter_context(one.process)
            stack.callback(one.process.kill)
        for one in started:
            assert one.hear() == "ready", one.end()
        yield started
        for one in started:
            errors = one.end()
            assert one.process.returncode == -9 or errors == "", errors
