"""Reads the recorded runs to be measured, and groups them by source."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.calibration._columns import MIN_STEPS
from reasonblocks_workbench.traces import RecordedRun, read_runs

__all__ = ["CLOSED", "MIN_OF_EACH", "MIN_RUNS", "Source", "failed", "read_sources"]

CLOSED = frozenset({"vorflux", "moatless", "tbench_claude", "tau_airline", "miniswe_deepseek"})
"""Sources that no number, rule or wording is chosen on, and that are measured once, after all of that is fixed.

The rule, written down before any work on the monitors that intervene in lasting trouble: of the five sources that had
no part in earlier versions the three, and of the eight that had, the two, whose names have the smallest SHA-256.
"""
MIN_RUNS = 20
MIN_OF_EACH = 5
"""Failing and successful runs that a source needs at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The runs of one agent with a known outcome; `failing` and `tasks` have an entry a run."""

    name: str
    runs: tuple[RecordedRun, ...]

    @property
    def failing(self) -> tuple[bool, ...]:
        return tuple(failed(run) for run in self.runs)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(run.task_key for run in self.runs)

    @property
    def counted(self) -> tuple[int, ...]:
        """The places of the runs that are long enough for the columns."""
        return tuple(place for place, run in enumerate(self.runs) if len(run.steps) >= MIN_STEPS)

    @property
    def oracle_stop(self) -> bool:
        """Runs end at the first success, so length is the label: nothing that sees the whole run means anything."""
        return any(run.oracle_stop for run in self.runs)

    @property
    def measurable(self) -> bool:
        """Are there enough runs of both outcomes?"""
        runs = [self.runs[place] for place in self.counted]
        failures = sum(map(failed, runs))
        return len(runs) >= MIN_RUNS and min(failures, len(runs) - failures) >= MIN_OF_EACH

    @property
    def core(self) -> bool:
        """Does it count in the means over sources?"""
        return self.measurable and not self.oracle_stop


def failed(run: RecordedRun) -> bool:
    return run.outcome_kind == "failure"


def read_sources(
    paths: Iterable[str], *, only: Collection[str] = (), without: Collection[str] = (), most: int | None = None
) -> tuple[Source, ...]:
    """The runs with an outcome, grouped by what they name as their source, else by their file, in order of the names.

    `most` is the number of runs that is read of each source. What cannot be read is said on stderr and left out. A file
    that bears the name of a source `without` which we are to do is not opened.
    """
    grouped: dict[str, list[RecordedRun]] = {}
    for path in paths:
        if PurePath(path).name.split(".")[0] in without:
            continue
        for item in read_runs(path):
            if isinstance(item, RecordError):
                print(f"left out: {item}", file=sys.stderr)
            elif item.steps and item.has_outcome:
                grouped.setdefault(item.source or PurePath(item.file).name, []).append(item)
    return tuple(_sources({name: grouped[name] for name in grouped if name not in without}, only, most))


def _sources(grouped: Mapping[str, list[RecordedRun]], only: Collection[str], most: int | None) -> Iterable[Source]:
    for name in sorted(grouped):
        if not only or name in only:
            yield Source(name=name, runs=tuple(islice(grouped[name], most)))
