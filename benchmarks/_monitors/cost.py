"""Compares what a step costs in this build and in another: both replay the same runs, one run of each in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import IO, TypeAlias

from .build import package_folder, write_numbered
from .sources import Source
from .table import Cell, Table

__all__ = ["cost_table"]

Times: TypeAlias = "dict[str, list[float]]"
RUNS_OF_A_SOURCE = 25
WORKER = Path(__file__).with_name("cost_worker.py")
HERE = Path(__file__).parents[2]


def cost_table(sources: Sequence[Source], checkout: str) -> Table:
    """Return the medians over all steps of both builds, and the median ratio of their times for a run."""
    runs = [run for source in sources for run in source.runs[:: max(1, len(source.runs) // RUNS_OF_A_SOURCE)]]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        write_numbered(file, runs)
        with _worker(str(HERE), file.name) as this, _worker(checkout, file.name) as other:
            pairs = [_pair(number, this, other) for number in range(-1, len(runs))][1:]
    return Table(
        name="cost, in pairs",
        about=f"Microseconds a step, medians over all steps of {len(runs)} runs that both builds replayed in turn: the "
        "features that the monitors share, all monitors with them, and the whole of `begin_step` and `end_step`. "
        "`ratio` is the median over the runs of this build's time divided by the other's.",
        rows=list(_rows(pairs, checkout)),
    )


def _pair(number: int, this: _Asked, other: _Asked) -> tuple[Times, Times]:
    """Return both builds' times; the one that goes first is another one each time. -1 is to warm up."""
    asked = max(0, number)
    if number % 2:
        theirs = other(asked)
        return this(asked), theirs
    return this(asked), other(asked)


def _rows(pairs: Sequence[tuple[Times, Times]], checkout: str) -> Iterator[dict[str, Cell]]:
    names = list(pairs[0][0])
    for build, place in (("this", 0), (checkout, 1)):
        every: dict[str, list[float]] = defaultdict(list)
        for pair in pairs:
            for name in names:
                every[name] += pair[place][name]
        yield {"build": build, "steps": len(every[names[0]]), **{name: median(every[name]) for name in names}}
    ratios: dict[str, Cell] = {
        name: median(sum(this[name]) / sum(other[name]) for this, other in pairs if sum(other[name])) for name in names
    }
    yield {"build": "ratio", "steps": None, **ratios}


class _Asked:
    """A worker that times one run after another."""

    def __init__(self, given: IO[str], printed: IO[str]) -> None:
        self._given, self._printed = given, printed
        printed.readline()  # it has read the runs

    def __call__(self, number: int) -> Times:
        self._given.write(f"{number}\n")
        self._given.flush()
        found: Times = json.loads(self._printed.readline())
        return found


@contextmanager
def _worker(checkout: str, file: str) -> Iterator[_Asked]:
    env = {**os.environ, "PYTHONPATH": package_folder(checkout)}
    command = [sys.executable, str(WORKER), file]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield _Asked(process.stdin, process.stdout)
        process.stdin.close()
