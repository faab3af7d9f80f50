"""Implements `reasonblocks report`, and the option `--report` of `replay`: writes runs as HTML pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.util.files import write_whole
from reasonblocks.util.text import count_noun

from ._replayer import Replayer, replayer
from .files import most_unpacked, read_recorded, size
from .options import FlagError, Format, Settings, count, exclusive, expand_options, settings_of_file
from .output import OK, PROBLEM, Bar, say, warn, warnings_once

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..report import Listing, OnePage, RunPage
    from ._replay import Report

LOGS = ("jsonl-sink", "sqlite-sink")
"""The formats of our own sinks, whose runs are shown as they were recorded."""
HEAD_RECORDS = 8
"""Records at the start of a file that are read to detect a log."""
HEAD_BYTES = 64
INDEX = "index.html"
THRESHOLDS = "fsm_thresholds"
PAGE = re.compile(r"run-\d{5,}(?:-[A-Za-z0-9-]+)?\.html")
MARK = b'<meta name="generator" content="ReasonBlocks report">'
"""The element at the start of each of our pages."""
MARK_WITHIN = 1_000
"""Bytes of a page in which its mark is."""


@expand_options
def report(
    files: Annotated[list[str], Argument(metavar="FILE")],
    settings: Settings,
    out: Annotated[
        str | None, Option(metavar="OUT.html", help="write all runs into one file, which opens a run by a script")
    ] = None,
    pages: Annotated[
        str | None,
        Option(metavar="DIR", help="write a page for each run and an index, which work without scripts"),
    ] = None,
    title: Annotated[str, Option(metavar="TEXT", help="the title of the list")] = "Runs",
    limit: Annotated[int | None, Option(parser=count, metavar="N", help="read at most N runs of each file")] = None,
    format: Format = None,
) -> int:
    """Write runs as HTML that needs no network.

    FILE is a log of JsonlSink or SQLiteMonitorSink, whose runs are shown as they were recorded, or contains runs in any
    other format that docs/replay.md lists, which are replayed. Either --out or --pages is required.
    """
    exclusive({"--out": out is not None, "--pages": pages is not None}, required=True)
    book = book_of(out, pages, title, files)
    bar = Bar(total=sum(map(size, files)))
    with ExitStack() as stack, warnings_once(bar):
        work = _Work(files, format, settings, stack, bar)
        for path in files:
            for page in islice(work.pages(path), limit):
                book.add(page)
        bar.clear()
    if not book.runs:
        warn("reasonblocks report: no run could be read")
        return PROBLEM
    book.write()
    return OK


class _Work:
    """Reads the runs of each file: those of a log as recorded, others replayed with the settings of the command."""

    def __init__(
        self, files: Sequence[str], format: str | None, settings: Settings, stack: ExitStack, bar: Bar
    ) -> None:
        self.format, self.bar = format, bar
        self.done = self.read = 0
        self.logs = {path: is_log(path, format) for path in files}
        self.replayer: Replayer | None = None
        if not all(self.logs.values()):
            self.replayer = stack.enter_context(replayer(settings))
            if self.replayer.rb.disabled:
                warn("reasonblocks: REASONBLOCKS_DISABLED=1: replayed runs are not judged")
            self._gather(self.replayer)
        elif idle := _without_effect(settings):
            raise FlagError(
                ", ".join(idle), f"no effect on {files[0]}, a log: its runs are shown as they were recorded"
            )
        self.thresholds = thresholds_of(settings)

    def _gather(self, replaying: Replayer) -> None:
        """Replay all recordings once, to gather the profiles of their agents."""
        for path in (path for path, is_own in self.logs.items() if replaying.gathers and not is_own):
            for run in read_recorded(path, lambda at: None, self.format):
                if not isinstance(run, RecordError):
                    replaying(run)
        replaying.gathered()

    def pages(self, path: str) -> Iterator[RunPage]:
        """Yield the pages of a file's runs; errors go to stderr."""
        found = self._logged(path) if self.logs[path] or self.replayer is None else self._replayed(path, self.replayer)
        for page in found:
            if isinstance(page, RecordError):
                self.bar.clear()
                warn(str(page))
                continue
            self.done += 1
            yield page
        self.read += size(path)

    def _logged(self, path: str) -> Iterator[RunPage | RecordError]:
        from ..report import page_of_log
        from ..traces import read_logs

        for log in read_logs(path, progress=self._progress, unpacked=most_unpacked()):
            yield log if isinstance(log, RecordError) else page_of_log(log, thresholds=self.thresholds)

    def _replayed(self, path: str, replaying: Replayer) -> Iterator[RunPage | RecordError]:
        from ..report import page_of_replayed

        for run in read_recorded(path, self._progress, self.format):
            yield run if isinstance(run, RecordError) else page_of_replayed(replaying(run), thresholds=self.thresholds)

    def _progress(self, at: int) -> None:
        self.bar.at(self.read + at, count_noun(self.done, "run"))


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds of the difficulty in a command's settings. Raises `ConfigError`."""
    try:
        return Thresholds.of(settings.read().get(THRESHOLDS) or {})
    except ConfigError as error:
        raise settings.named(error) from error


def _without_effect(settings: Settings) -> list[str]:
    """Return the options that change nothing in the page of a log, where only the thresholds are drawn."""
    config = settings.config is not None and THRESHOLDS not in settings_of_file(settings.config)
    typed = [option.flag for option, _ in settings.typed if option.setting not in (THRESHOLDS, "config")]
    return list(dict.fromkeys(["--config"] * config + typed))


def is_log(path: str, format: str | None) -> bool:
    """Return True for a log of one of our sinks, and False for an unreadable file."""
    from ..traces import READERS, FileReader, Record, read_records

    readers = [reader for reader in READERS if reader.name in LOGS]
    if format is not None:
        return format in LOGS
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if any(isinstance(reader, FileReader) and reader.opens(head) for reader in readers):
        return True
    records = [one.value for one in islice(read_records(path), HEAD_RECORDS) if isinstance(one, Record)]
    return any(not isinstance(reader, FileReader) and reader.sniff(value) for reader in readers for value in records)


# --- output


class Book:
    """Collects the pages of runs in one file, and writes it at the end."""

    def __init__(self, path: str, title: str) -> None:
        from ..report import OnePage

        self.path, self.runs, self.steps = path, 0, 0
        self.page: OnePage = OnePage(title)

    def add(self, page: RunPage) -> None:
        self.page.add(page)
        self.runs, self.steps = self.runs + 1, self.steps + page.steps

    def write(self) -> None:
        text = "".join(self.page.parts())
        write_whole(self.path, text)
        counted = f"{count_noun(self.runs, 'run')}, {count_noun(self.steps, 'step')}"
        say(f"{self.path}: {counted}, {len(text.encode()) / 1e6:.1f} MB")


class Folder:
    """Writes a page for each run into a folder, and an index of them at the end, which replaces an older report.

    Raises `FlagError` for a folder with files that are not of a report, except for hidden ones.
    """

    def __init__(self, path: str, title: str) -> None:
        from ..report import Tally

        self.path, self.title, self.runs = Path(path), title, 0
        self.old = pages_in(self.path)
        self.tally = Tally()
        self.lines: list[Any] = []

    def add(self, page: RunPage) -> None:
        from ..report import NavLink, run_line, run_page

        self.runs += 1
        name = f"run-{self.runs:05}{_slug(page.run_id)}.html"
        text = run_page(page, nav=[NavLink(name="All runs", href=INDEX)])
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / name, text)
        self.old.discard(name)
        self.tally.add(page)
        self.lines.append(run_line(page, name))

    def write(self) -> None:
        from ..report import runs_page

        write_whole(self.path / INDEX, runs_page(self._listing()))
        for name in self.old - {INDEX}:
            (self.path / name).unlink(missing_ok=True)
        counted = f"{count_noun(self.runs, 'run')}, {count_noun(self.tally.recorded, 'step')}"
        say(f"{self.path / INDEX}: {counted}, a page for each")

    def _listing(self) -> Listing:
        from ..report import Listing

        return Listing(lines=self.lines, tally=self.tally, title=self.title)


def pages_in(folder: Path) -> set[str]:
    """Return the names of a report's pages in a folder. Raises `FlagError` if it has other files than those."""
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise FlagError("--pages", f"{folder} is not a folder")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    foreign = sorted(name for name in names if not _is_page(folder / name))
    if foreign:
        raise FlagError("--pages", f"{folder} has files that are not of a report, such as {foreign[0]}; "
                        "choose a new folder")  # fmt: skip
    return names


def _is_page(path: Path) -> bool:
    """Return True for a page that this command has written."""
    if path.is_symlink() or not path.is_file() or not (path.name == INDEX or PAGE.fullmatch(path.name)):
        return False
    with open(path, "rb") as file:
        return MARK in file.read(MARK_WITHIN)


def book_of(out: str | None, pages: str | None, title: str, files: Sequence[str]) -> Book | Folder:
    """Return the collector of the pages. Raises `FlagError` for a file that is also read."""
    flag, path = ("--out", out) if out is not None else ("--pages", pages)
    if path is None or not path:
        raise FlagError(flag, "is empty")
    if out is not None and Path(out).resolve() in {Path(file).resolve() for file in files}:
        raise FlagError(flag, f"{out} is also an input file")
    return Book(path, title) if out is not None else Folder(path, title)


class WithPages:
    """A report of `replay` that also collects the runs' pages."""

    def __init__(self, report: Report, path: str, settings: Settings, files: Sequence[str]) -> None:
        self.report, self.thresholds = report, thresholds_of(settings)
        self.book = book_of(path, None, "Replayed runs", files)

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        from ..report import page_of_replayed

        self.book.add(page_of_replayed(replayed[0], thresholds=self.thresholds))
        return self.report.add(replayed)

    def end_file(self, path: str, malformed: int) -> None:
        self.report.end_file(path, malformed)

    def end(self) -> None:
        self.report.end()
        if self.book.runs:
            self.book.write()


def _slug(run_id: str) -> str:
    """Return the part of a file's name that helps to find a run."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", run_id)[:40].strip("-")
    return f"-{name}" if name else ""
