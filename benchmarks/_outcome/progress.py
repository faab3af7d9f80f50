"""A progress bar with the number of won runs; one line a minute, and one at the end, without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .rows import Row

LINE_SECONDS = 60.0


@contextmanager
def progress(name: str, total: int) -> Iterator[Callable[[Row], None]]:
    """Show the progress of `total` runs; the function that it gives is called with each finished one."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(name, total)
        yield lines.step
        if total:
            lines.show()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bar:
        task, won = bar.add_task(name, total=total), 0

        def step(row: Row) -> None:
            nonlocal won
            won += row.won
            bar.update(task, advance=1, description=f"{name}, {won} won")

        yield step


class _Lines:
    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._done = self._won = 0
        self._last = time.monotonic()

    def step(self, row: Row) -> None:
        self._done += 1
        self._won += row.won
        if time.monotonic() - self._last >= LINE_SECONDS:
            self.show()

    def show(self) -> None:
        self._last = time.monotonic()
        print(f"{self._name}: {self._done} of {self._total}, {self._won} won", file=sys.stderr, flush=True)
