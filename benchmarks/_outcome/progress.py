"""A progress bar with the number of won runs; one line a minute where there is no terminal."""

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
        yield _lines(name, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bar:
        task, won = bar.add_task(name, total=total), 0

        def step(row: Row) -> None:
            nonlocal won
            won += row.won
            bar.update(task, advance=1, description=f"{name}, {won} won")

        yield step


def _lines(name: str, total: int) -> Callable[[Row], None]:
    done = won = 0
    last = time.monotonic()

    def step(row: Row) -> None:
        nonlocal done, won, last
        done, won = done + 1, won + row.won
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            print(f"{name}: {done} of {total}, {won} won", file=sys.stderr, flush=True)

    return step
