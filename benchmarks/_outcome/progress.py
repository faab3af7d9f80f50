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
    errors: list[str] = []
    with (_bar if console.is_terminal else _lines)(name, total, console) as shown:

        def step(row: Row) -> None:
            shown(row)
            errors.extend(filter(None, [row.error]))

        yield step
    if errors:
        print(f"{len(errors)} ended with an error; the same command repeats them: {errors[-1]}", file=sys.stderr)


@contextmanager
def _bar(name: str, total: int, console: Console) -> Iterator[Callable[[Row], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bar:
        task, won = bar.add_task(name, total=total), 0

        def step(row: Row) -> None:
            nonlocal won
            won += row.won
            bar.update(task, advance=1, description=f"{name}, {won} won")

        yield step


@contextmanager
def _lines(name: str, total: int, console: Console) -> Iterator[Callable[[Row], None]]:
    done = won = 0
    last = time.monotonic()

    def show() -> None:
        nonlocal last
        last = time.monotonic()
        print(f"{name}: {done} of {total}, {won} won", file=sys.stderr, flush=True)

    def step(row: Row) -> None:
        nonlocal done, won
        done, won = done + 1, won + row.won
        if time.monotonic() - last >= LINE_SECONDS:
            show()

    yield step
    if total:
        show()
