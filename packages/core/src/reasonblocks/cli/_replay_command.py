"""`reasonblocks replay`: which runs are replayed, and where each report goes."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from ..exceptions import RecordError
from ..replay import replay as replayed_run
from ._files import recorded, size
from ._one_run import run_lines
from ._options import add_settings, read_settings
from ._output import OK, PROBLEM, Bar, say, show, warn, warnings_once
from ._parsers import Parsers
from ._replay import replayed_json
from ._summary import Summary, total

if TYPE_CHECKING:
    from ..client import ReasonBlocks
    from ..traces import RecordedRun

__all__ = ["add_to"]

KEPT_IDS = 10_000
"""Run ids kept to name the nearest one when `--run` finds none."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "replay",
        help="what steering would have done in recorded runs",
        description="Drives recorded runs through the engine. Reads only; FILE is our JSON lines (.gz too) or "
        "LangChain messages, found by content.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks replay [OPTIONS] FILE..."
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON object a run, nothing else on stdout")
    parser.add_argument("--run", metavar="ID", help="only this run, step by step")
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N runs of each file")
    add_settings(parser)
    parser.set_defaults(command=replay)


def _count(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def replay(arguments: argparse.Namespace) -> int:
    """Replay the files; 1 when not one run could be read, or when the run that was asked for is in none."""
    from ..client import ReasonBlocks

    with closing(ReasonBlocks(**read_settings(arguments))) as rb:
        if rb.disabled:
            print("reasonblocks: REASONBLOCKS_DISABLED=1: nothing is judged below", file=sys.stderr)
        work = _Work(rb, arguments)
        with warnings_once(work.bar):
            work.all()
    return work.verdict()


class _Work:
    """One invocation: the files one after another, and what was found so far."""

    def __init__(self, rb: ReasonBlocks, arguments: argparse.Namespace) -> None:
        self.rb, self.arguments = rb, arguments
        self.summaries: list[Summary] = []
        self.seen: list[str] = []
        self.done, self.steps = 0, 0
        self.found = False
        self.bar = Bar(total=sum(map(size, arguments.files)))

    def all(self) -> None:
        before = accumulate(map(size, self.arguments.files), initial=0)
        for path, offset in zip(self.arguments.files, before, strict=False):
            self._file(path, offset)
            if self.found and self.arguments.run:
                break
        self.bar.clear()
        if not self._quiet and len(self.summaries) > 1 and self.done:
            self._show(total(self.summaries))

    def verdict(self) -> int:
        if not self.seen:
            warn("reasonblocks replay: no run could be read")
        elif self.arguments.run and not self.found:
            near = difflib.get_close_matches(self.arguments.run, self.seen, n=1, cutoff=0)
            warn(f"reasonblocks replay: no run is called {self.arguments.run!r}; the nearest is {near[0]!r}")
        return OK if self.done else PROBLEM

    @property
    def _quiet(self) -> bool:
        return bool(self.arguments.json or self.arguments.run)

    def _file(self, path: str, offset: int) -> None:
        summary = Summary(path)
        runs = recorded(path, lambda at: self._progress(offset + at))
        for run in islice(self._wanted(runs, summary), self.arguments.limit):
            self._one(run, summary)
            if self.arguments.run:
                return
        self.summaries.append(summary)
        if not self._quiet and summary.every.runs:
            self._show(summary)

    def _wanted(self, runs: Iterator[RecordedRun | RecordError], summary: Summary) -> Iterator[RecordedRun]:
        """The runs to replay; what is malformed is said and counted."""
        for run in runs:
            if isinstance(run, RecordError):
                summary.malformed += 1
                self.bar.clear()
                warn(str(run))
                continue
            if len(self.seen) < KEPT_IDS:
                self.seen.append(run.run_id)
            if self.arguments.run in (None, run.run_id):
                yield run

    def _one(self, run: RecordedRun, summary: Summary) -> None:
        chosen = self.arguments.task_profile is not None
        replayed = replayed_run(self.rb, replace(run, task_profile=None) if chosen else run)
        self.found, self.done, self.steps = True, self.done + 1, self.steps + len(run.steps)
        summary.add(replayed)
        if self._quiet:
            self.bar.clear()
        if self.arguments.json:
            say(json.dumps(replayed_json(replayed), separators=(",", ":")))
        elif self.arguments.run:
            for line in run_lines(replayed):
                say(line)

    def _progress(self, at: int) -> None:
        self.bar.at(at, f"{self.done:,} runs, {self.steps:,} steps")

    def _show(self, summary: Summary) -> None:
        self.bar.clear()
        for table in summary.tables():
            show(table)
