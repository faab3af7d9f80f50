"""Implements `reasonblocks replay`: replays recorded runs and reports the decisions."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON

from ._diff import diff_json
from ._diff_view import DiffReport
from ._replay_json import replayed_json
from ._replayer import Replayer, replayer
from ._report_command import WithPages
from ._reports import InjectedReport, JsonReport, Report, RunReport, SummaryReport, is_listed
from .files import add_format, recorded, size
from .options import FlagError, add_settings, read_settings, settings_of_file
from .output import OK, PROBLEM, Bar, Parsers, warn, warnings_once

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RecordedRun

KEPT_IDS = 10_000
"""Run ids that are kept, to suggest the nearest one if `--run` finds none."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "replay",
        help="show what steering would have done in recorded runs",
        description="Replays recorded runs through the engine and changes nothing. FILE is a JSON (also .gz) or "
        "SQLite file in any format that docs/replay.md lists; the format is detected from its content.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks replay [OPTIONS] FILE..."
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--report", metavar="OUT.html", help="also write the runs as an HTML page")
    add_format(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per run, nothing else on stdout")
    parser.add_argument(
        "--run", metavar="ID", help="show only this run, step by step, with the texts that steering injects"
    )
    parser.add_argument("--full", action="store_true", help="with --run or --only-injected: show all texts whole")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--only-injected",
        action="store_true",
        help="list the runs in which steering intervenes or that it stops; with --run: only those steps",
    )
    which.add_argument(
        "--diff",
        nargs=2,
        metavar=("A.toml", "B.toml"),
        help="compare two files of settings on the same runs; the other settings apply to both",
    )
    parser.add_argument(
        "--limit", type=_count, metavar="N", help="at most N runs of each file; with --only-injected: N runs listed"
    )
    add_settings(parser)
    parser.set_defaults(command=replay)


def _count(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def replay(arguments: argparse.Namespace) -> int:
    """Replay the files; return 1 if no run could be read, or if none is the requested one."""
    if arguments.full and not (arguments.run or arguments.only_injected):
        raise FlagError("--full", "add --run ID or --only-injected, whose texts it shows whole")
    if arguments.report is not None and (arguments.diff or arguments.json):
        raise FlagError("--report", "cannot be combined with --diff or --json")
    bar = Bar(total=sum(map(size, arguments.files)))
    with ExitStack() as open_until_the_end:
        replayers = [open_until_the_end.enter_context(_replayer(arguments, side)) for side in arguments.diff or [None]]
        if replayers[0].rb.disabled:
            print("reasonblocks: REASONBLOCKS_DISABLED=1: nothing is judged below", file=sys.stderr)
        report = _report(arguments, bar, stops=replayers[0].stops)
        if arguments.report is not None:
            report = WithPages(report, arguments.report, read_settings(arguments), arguments.files)
        work = _Work(arguments, replayers, report, bar)
        with warnings_once(bar):
            work.all()
    return work.verdict()


def _replayer(arguments: argparse.Namespace, side: str | None) -> AbstractContextManager[Replayer]:
    """Return what replays under the settings of the command, or under those of one side of --diff."""
    settings = read_settings(arguments, side)
    in_side = side is not None and "task_profile" in settings_of_file(side)
    return replayer(settings, profiled=arguments.task_profile is not None or in_side, file=side)


def _report(arguments: argparse.Namespace, bar: Bar, *, stops: bool) -> Report:
    if arguments.json:
        return _json_report(arguments, bar)
    if arguments.diff:
        return DiffReport(bar, arguments.diff, run=arguments.run, full=arguments.full)
    if arguments.run:
        return RunReport(bar, full=arguments.full, only_said=arguments.only_injected)
    if arguments.only_injected:
        return InjectedReport(bar, full=arguments.full)
    return SummaryReport(bar, stops=stops)


def _json_report(arguments: argparse.Namespace, bar: Bar) -> JsonReport:
    if arguments.diff:
        return JsonReport(bar, diff_json)
    if arguments.only_injected:
        return JsonReport(bar, _injected_json, every=False)
    return JsonReport(bar, lambda replayed: replayed_json(replayed[0]))


def _injected_json(replayed: Sequence[ReplayedRun]) -> dict[str, JSON] | None:
    return replayed_json(replayed[0]) if is_listed(replayed[0]) else None


class _Work:
    """One invocation: replays the files one after another and hands each run to the report."""

    def __init__(self, arguments: argparse.Namespace, replayers: Sequence[Replayer], report: Report, bar: Bar) -> None:
        self.arguments, self.replayers, self.report, self.bar = arguments, replayers, report, bar
        self.seen: list[str] = []
        self.done, self.steps, self.malformed = 0, 0, 0

    def all(self) -> None:
        self._gather([one for one in self.replayers if one.gathers])
        before = accumulate(map(size, self.arguments.files), initial=0)
        for path, offset in zip(self.arguments.files, before, strict=False):
            self._file(path, offset)
            if self.arguments.run and self.done:
                break
        self.bar.clear()
        self.report.end()

    def _gather(self, replayers: Sequence[Replayer]) -> None:
        """Replay all runs once, so that each can be judged by the others."""
        for path in self.arguments.files if replayers else ():
            for run in recorded(path, lambda at: None, self.arguments.format):
                if not isinstance(run, RecordError):
                    for gathering in replayers:
                        gathering(run)
        for gathering in replayers:
            gathering.gathered()

    def verdict(self) -> int:
        if not self.seen:
            warn("reasonblocks replay: no run could be read")
        elif self.arguments.run and not self.done:
            near = difflib.get_close_matches(self.arguments.run, self.seen, n=1, cutoff=0)
            warn(f"reasonblocks replay: no run is called {self.arguments.run!r}; the nearest is {near[0]!r}")
        return OK if self.done else PROBLEM

    def _file(self, path: str, offset: int) -> None:
        self.malformed, counted = 0, 0
        for run in self._wanted(path, offset):
            counted += self._replay(run)
            if self.arguments.run or counted == self.arguments.limit:
                break
        self.report.end_file(path, self.malformed)

    def _wanted(self, path: str, offset: int) -> Iterator[RecordedRun]:
        """Yield the runs to replay; report and count malformed ones."""
        for run in recorded(path, lambda at: self._progress(offset + at), self.arguments.format):
            if isinstance(run, RecordError):
                self.malformed += 1
                self.bar.clear()
                warn(str(run))
                continue
            if len(self.seen) < KEPT_IDS:
                self.seen.append(run.run_id)
            if self.arguments.run in (None, run.run_id):
                yield run

    def _replay(self, run: RecordedRun) -> bool:
        replayed = [replayer(run) for replayer in self.replayers]
        self.done, self.steps = self.done + 1, self.steps + len(run.steps)
        return self.report.add(replayed)

    def _progress(self, at: int) -> None:
        self.bar.at(at, f"{self.done:,} runs, {self.steps:,} steps")
