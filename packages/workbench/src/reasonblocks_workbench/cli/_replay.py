"""Implements `reasonblocks replay`: replays recorded runs and reports the decisions.

The report is a summary of each file, JSON, a list of interventions, the view of one run, or a comparison.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Protocol

from typer import Argument, Option

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON
from reasonblocks.types.outcomes import UNKNOWN
from reasonblocks.util.text import count_noun

from ..replay import ReplayedRun
from ..report import Tally, Told, page_of_replayed
from ..report.sources import texts_of
from ..report.tally import join_names, median_of, percent, ranked
from ._decisions import first_stop, interventions, replayed_json, second_look_at, why
from ._diff import DiffReport, diff_json
from ._lines import Canvas, Line, canvas, fit_width, paint
from ._replayer import Replayer, replayer
from ._report import WithPages
from ._run_view import INDENT, decided_lines, place_of, run_lines, stop_lines, title_lines
from .files import read_recorded, size
from .options import FlagError, Format, Json, Settings, count, exclusive, expand_options
from .output import OK, PROBLEM, Bar, Table, printable, say, show, warn, warnings_once

if TYPE_CHECKING:
    from ..traces import RecordedRun

KEPT_IDS = 10_000
"""Run ids that are kept, to suggest the nearest one if `--run` finds none."""
STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")


@expand_options
def replay(
    files: Annotated[list[str], Argument(metavar="FILE")],
    settings: Settings,
    report: Annotated[str | None, Option(metavar="OUT.html", help="also write the runs as an HTML page")] = None,
    format: Format = None,
    as_json: Json = False,
    run: Annotated[
        str | None,
        Option(metavar="ID", help="show only this run, step by step, with the texts that steering injects"),
    ] = None,
    full: Annotated[bool, Option("--full", help="with --run or --only-injected: show all texts whole")] = False,
    only_injected: Annotated[
        bool,
        Option(
            "--only-injected",
            help="list the runs in which steering intervenes or that it stops; with --run: only those steps",
        ),
    ] = False,
    diff: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="A.toml B.toml",
            help="compare two files of settings on the same runs; the other settings apply to both",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        Option(parser=count, metavar="N", help="at most N runs of each file; with --only-injected: N runs listed"),
    ] = None,
) -> int:
    """Replay recorded runs through the engine and change nothing.

    FILE is a JSON (also .gz) or SQLite file in any format that docs/replay.md lists; the format is detected from its
    content.
    """
    exclusive({"--only-injected": only_injected, "--diff": diff})
    if full and not (run or only_injected):
        raise FlagError("--full", "add --run ID or --only-injected, whose texts it shows whole")
    if report is not None and (diff or as_json):
        raise FlagError("--report", "cannot be combined with --diff or --json")
    bar = Bar(total=sum(map(size, files)))
    with ExitStack() as stack:
        replayers = [stack.enter_context(replayer(settings, side)) for side in diff or (None,)]
        if replayers[0].rb.disabled:
            print("reasonblocks: REASONBLOCKS_DISABLED=1: nothing is judged below", file=sys.stderr)
        shown: Report
        if as_json:
            shown = JsonReport(
                bar, diff_json if diff else _injected_json if only_injected else _json, every=not only_injected
            )
        elif diff:
            shown = DiffReport(bar, diff, run=run, full=full)
        elif run:
            shown = RunReport(bar, full=full, only_said=only_injected)
        elif only_injected:
            shown = InjectedReport(bar, full=full)
        else:
            shown = SummaryReport(bar, stops=replayers[0].stops)
        if report is not None:
            shown = WithPages(shown, report, settings, files)
        work = _Work(files, format, replayers, shown, bar, run_id=run, limit=limit)
        with warnings_once(bar):
            work.all()
    return work.verdict()


def _json(replayed: Sequence[ReplayedRun]) -> dict[str, JSON]:
    return replayed_json(replayed[0])


def _injected_json(replayed: Sequence[ReplayedRun]) -> dict[str, JSON] | None:
    return replayed_json(replayed[0]) if is_listed(replayed[0]) else None


class _Work:
    """One invocation: replays the files one after another and hands each run to the report."""

    def __init__(
        self,
        files: Sequence[str],
        format: str | None,
        replayers: Sequence[Replayer],
        report: Report,
        bar: Bar,
        *,
        run_id: str | None,
        limit: int | None,
    ) -> None:
        self.files, self.format, self.run_id, self.limit = files, format, run_id, limit
        self.replayers, self.report, self.bar = replayers, report, bar
        self.seen: list[str] = []
        self.done, self.steps, self.malformed = 0, 0, 0

    def all(self) -> None:
        self._gather([one for one in self.replayers if one.gathers])
        before = accumulate(map(size, self.files), initial=0)
        for path, offset in zip(self.files, before, strict=False):
            self._file(path, offset)
            if self.run_id and self.done:
                break
        self.bar.clear()
        self.report.end()

    def _gather(self, replayers: Sequence[Replayer]) -> None:
        """Replay all runs once, so that each can be judged by the others."""
        for path in self.files if replayers else ():
            for run in read_recorded(path, lambda at: None, self.format):
                if not isinstance(run, RecordError):
                    for gathering in replayers:
                        gathering(run)
        for gathering in replayers:
            gathering.gathered()

    def verdict(self) -> int:
        if not self.seen:
            warn("reasonblocks replay: no run could be read")
        elif self.run_id and not self.done:
            near = difflib.get_close_matches(self.run_id, self.seen, n=1, cutoff=0)
            warn(f"reasonblocks replay: no run is called {self.run_id!r}; the nearest is {near[0]!r}")
        return OK if self.done else PROBLEM

    def _file(self, path: str, offset: int) -> None:
        self.malformed, counted = 0, 0
        for run in self._wanted(path, offset):
            counted += self._replay(run)
            if self.run_id or counted == self.limit:
                break
        self.report.end_file(path, self.malformed)

    def _wanted(self, path: str, offset: int) -> Iterator[RecordedRun]:
        """Yield the runs to replay; report and count malformed ones."""
        for run in read_recorded(path, lambda at: self._progress(offset + at), self.format):
            if isinstance(run, RecordError):
                self.malformed += 1
                self.bar.clear()
                warn(str(run))
                continue
            if len(self.seen) < KEPT_IDS:
                self.seen.append(run.run_id)
            if self.run_id in (None, run.run_id):
                yield run

    def _replay(self, run: RecordedRun) -> bool:
        replayed = [replayer(run) for replayer in self.replayers]
        self.done, self.steps = self.done + 1, self.steps + len(run.steps)
        return self.report.add(replayed)

    def _progress(self, at: int) -> None:
        self.bar.at(at, f"{_runs(self.done)}, {count_noun(self.steps, 'step')}")


class Report(Protocol):
    """Receives every run, file by file. `add` returns False for a run that does not count for --limit.

    `replayed` has the run once for each set of settings.
    """

    def add(self, replayed: Sequence[ReplayedRun]) -> bool: ...
    def end_file(self, path: str, malformed: int) -> None: ...
    def end(self) -> None: ...


class SummaryReport:
    """Shows a summary of each file, and one of all files at the end. `stops` is True if runs may be stopped."""

    def __init__(self, bar: Bar, *, stops: bool) -> None:
        self.bar, self.stops = bar, stops
        self.summaries: list[Summary] = []
        self.current = Summary("", stops=stops)

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        self.current.add(replayed[0])
        return True

    def end_file(self, path: str, malformed: int) -> None:
        summary = replace(self.current, name=path, malformed=malformed)
        self.current = Summary("", stops=self.stops)
        self.summaries.append(summary)
        if summary.every.runs:
            self._show(summary)

    def end(self) -> None:
        if len(self.summaries) > 1 and any(summary.every.runs for summary in self.summaries):
            self._show(total(self.summaries))

    def _show(self, summary: Summary) -> None:
        self.bar.clear()
        for table in summary.tables():
            show(table)


class JsonReport:
    """Prints the object that `make` returns for a run, if any. `every`: runs without one count for --limit, too."""

    def __init__(
        self, bar: Bar, make: Callable[[Sequence[ReplayedRun]], dict[str, JSON] | None], *, every: bool = True
    ) -> None:
        self.bar, self.make, self.every = bar, make, every

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        made = self.make(replayed)
        if made is not None:
            self.bar.clear()
            say(json.dumps(made, separators=(",", ":")))
        return self.every or made is not None

    def end_file(self, path: str, malformed: int) -> None: ...
    def end(self) -> None: ...


class RunReport:
    """Shows the run that is asked for, step by step."""

    def __init__(self, bar: Bar, *, full: bool, only_said: bool) -> None:
        self.bar, self.full, self.only_said = bar, full, only_said

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        self.bar.clear()
        paint(run_lines(replayed[0], canvas(), full=self.full, only_said=self.only_said))
        return True

    def end_file(self, path: str, malformed: int) -> None: ...
    def end(self) -> None: ...


class InjectedReport:
    """Prints some rows for each run that steering intervenes in or ends, as it is found, and a count at the end."""

    def __init__(self, bar: Bar, *, full: bool) -> None:
        self.bar, self.full = bar, full
        self.canvas = canvas()
        self.runs = self.found = self.texts = self.looks = 0
        self.stops = Counter[str]()

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        run = replayed[0]
        steps, found = interventions(run), first_stop(run)
        self.runs += 1
        self.found += bool(steps)
        self.texts += len(steps)
        self.looks += second_look_at(run) is not None
        self.stops.update([found.stop.word] if found is not None else [])
        if is_listed(run):
            self.bar.clear()
            paint(injected_lines(run, self.canvas, full=self.full))
        return is_listed(run)

    def end_file(self, path: str, malformed: int) -> None: ...

    def end(self) -> None:
        self.bar.clear()
        if self.runs:
            parts = [_counted(self.found, self.runs, self.texts)]
            parts += [f"{_runs(count)} {word}" for word, count in self.stops.items()]
            parts += [f"a second look in {_runs(self.looks)}"] if self.looks else []
            paint([(("; ".join(parts), "bold"),)])


def is_listed(replayed: ReplayedRun) -> bool:
    """Return True for a run with an intervention, a stop or a second look."""
    return bool(interventions(replayed)) or first_stop(replayed) is not None or second_look_at(replayed) is not None


def _counted(found: int, runs: int, texts: int) -> str:
    read = f"{_runs(runs)} read"
    if not found:
        return f"no intervention in {read}"
    return f"{count_noun(texts, 'intervention')} in {found:,} of {read}"


def injected_lines(replayed: ReplayedRun, canvas: Canvas, *, full: bool = False) -> Iterator[Line]:
    """Yield the run with its interventions and its stop, then the start of the first text, or with `full` all texts."""
    yield from title_lines(replayed, canvas, printable(_about(replayed)))
    steps, look = interventions(replayed), second_look_at(replayed)
    steps += [] if look is None else [look]
    if full:
        yield from _texts(replayed, steps, canvas)
    elif steps:
        text = next(filter(None, map(str.strip, first_said(replayed, steps[0]).text.splitlines())), "")
        yield ((INDENT, ""), (f"{canvas.glyphs.said} ", "magenta"), (fit_width(text, canvas.width - 4), "dim"))


def _about(replayed: ReplayedRun) -> str:
    """Return the number of interventions with the first one's place and reason, the stop, and the second look."""
    steps, found, look = interventions(replayed), first_stop(replayed), second_look_at(replayed)
    of, parts = f" of {len(replayed.run.steps):,}", []
    if steps:
        first = first_said(replayed, steps[0])
        times = "once" if len(steps) == 1 else f"{len(steps):,} times, first"
        parts.append(f"{times} after step {steps[0]}{of}: {why(first, replayed.decisions[steps[0]]) or first.who}")
    if found is not None:
        parts.append(f"{found.place}{'' if steps else of}: {found.stop.reason}")
    if look is not None:
        parts.append(f"a second look after step {look}{'' if steps else of}")
    return "; ".join(parts)


def _texts(replayed: ReplayedRun, steps: Iterable[int], canvas: Canvas) -> Iterator[Line]:
    """Yield the texts after these steps whole, each with its place and finding; then the stop, and a blank line."""
    for index in steps:
        decision = replayed.decisions[index]
        yield ()
        yield from decided_lines(decision, canvas, place_of(decision, index), standing=False)
    found = first_stop(replayed)
    if found is not None:
        yield ()
        yield from stop_lines(replayed, found, canvas)
    yield ()


def first_said(replayed: ReplayedRun, step: int) -> Told:
    """Return the first text after that step that is no standing rule."""
    return next(text for text in texts_of(replayed.decisions[step]) if not text.standing)


@dataclass(slots=True)
class Summary:
    """The counts of one file, by outcome. `stops` is True if its runs may be stopped."""

    name: str
    malformed: int = 0
    stops: bool = False
    every: Tally = field(default_factory=Tally)
    failing: Tally = field(default_factory=Tally)
    succeeding: Tally = field(default_factory=Tally)

    def add(self, replayed: ReplayedRun) -> None:
        page = page_of_replayed(replayed)
        for tally in (self.every, {"success": self.succeeding, "failure": self.failing}.get(replayed.run.outcome_kind)):
            if tally:
                tally.add(page)

    def tables(self) -> list[Table]:
        return [self._overview(), *([self._by_outcome()] if self._sides() else [])]

    def _overview(self) -> Table:
        every = self.every
        rows = [
            ("runs", f"{every.runs:,}, {count_noun(every.recorded, 'step')}, {self.malformed:,} malformed"),
            *([("unknown outcome", _runs(unknown))] if (unknown := every.outcomes[UNKNOWN]) else []),
            (
                "states",
                join_names(f"{name} {percent(every.states[name], every.steps)}" for name in _seen(every.states)),
            ),
            (
                "reached by",
                join_names(f"{name} {count_noun(every.reached[name], 'run')}" for name in _seen(every.states)),
            ),
            ("interventions", _interventions(every)),
            *([(self._stopped_word(), self._stopped())] if self.stops or every.stopped else []),
            (
                "monitors fired",
                join_names(f"{name} in {count_noun(count, 'run')}" for name, count in ranked(every.monitors)),
            ),
            ("ends in doubt", self._doubts()),
        ]
        if every.escalated:
            rows.append(("escalated", f"{count_noun(every.escalated_calls, 'call')} in {_runs(every.escalated)}"))
        if every.looks:
            rows.append(("second looks", self._with_outcomes("looks")))
        if every.faults:
            rows.append(("faults", f"{count_noun(every.faults, 'step')} went unsteered; --strict raises the first"))
        return Table(title=self.name, head=("", ""), rows=rows)

    def _doubts(self) -> str:
        """List the doubts by monitor, with the number of doubted runs that were recorded as a success."""
        named = join_names(f"{name} in {_runs(count)}" for name, count in ranked(self.every.doubts))
        succeeding = self.succeeding.doubted
        return f"{named}; {succeeding:,} of them reported success" if succeeding else named

    def _stopped_word(self) -> str:
        return "would be stopped" if self.every.observed else "stopped"

    def _stopped(self) -> str:
        if not self.every.stopped:
            return "none"
        not_made = "would not be made" if self.every.observed else "not made"
        saved = f"{self.every.saved:,} of {count_noun(self.every.recorded, 'step')}"
        return f"{self._with_outcomes('stopped')}; {saved} {not_made}"

    def _with_outcomes(self, count: str) -> str:
        """Return a count of runs, with its parts by outcome where outcomes are known."""
        every = getattr(self.every, count)
        counts = {name: getattr(tally, count) for name, tally in self._sides()}
        if not counts:
            return _runs(every)
        counts["unknown"] = every - sum(counts.values())
        return f"{_runs(every)} ({', '.join(f'{number:,} {name}' for name, number in counts.items() if number)})"

    def _sides(self) -> list[tuple[str, Tally]]:
        """Return the outcomes that there are, with their counts."""
        both = (("failing", self.failing), ("succeeding", self.succeeding))
        return [(name, tally) for name, tally in both if tally.runs]

    def _by_outcome(self) -> Table:
        """Return the table that compares failing and succeeding runs."""
        names, sides = zip(*self._sides(), strict=True)
        rows = [
            ("runs", *(f"{side.runs:,}" for side in sides)),
            ("with an intervention", *(percent(side.flagged, side.runs) for side in sides)),
            ("first after step", *(median_of(side.firsts) for side in sides)),
            *([(self._stopped_word(), *(percent(side.stopped, side.runs) for side in sides))]
              if self.every.stopped else []),
            *((f"steps in {name}", *(percent(side.states[name], side.steps) for side in sides))
              for name in ("FAST", "SLOW", "SKIP")),
            *((f"{name} fired", *(percent(side.monitors[name], side.runs) for side in sides))
              for name, _ in ranked(self.every.monitors)),
        ]  # fmt: skip
        return Table(title="by outcome", head=("", *names), rows=rows)


def total(summaries: Sequence[Summary]) -> Summary:
    """Return the sum of all files."""
    return Summary(
        name=f"all {len(summaries)} files",
        stops=any(summary.stops for summary in summaries),
        malformed=sum(summary.malformed for summary in summaries),
        every=sum((summary.every for summary in summaries), Tally()),
        failing=sum((summary.failing for summary in summaries), Tally()),
        succeeding=sum((summary.succeeding for summary in summaries), Tally()),
    )


def _interventions(tally: Tally) -> str:
    if not tally.interventions:
        return "none"
    runs = f"{count_noun(tally.flagged, 'run')} ({percent(tally.flagged, tally.runs)})"
    return f"{tally.interventions:,} in {runs}, the first after step {median_of(tally.firsts)} (median)"


def _seen(states: Counter[str]) -> list[str]:
    return [name for name in STATES if states[name]]


def _runs(count: int) -> str:
    return count_noun(count, "run")
