"""Reports replayed runs: as a summary of each file, as JSON, as a list of interventions, or as the view of one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from reasonblocks.types import JSON

from ..replay import ReplayedRun
from ._layout import fitted
from ._paint import Canvas, Line, canvas, paint
from ._run_view import decided_lines, place_of, run_lines, stop_lines, title_lines
from ._said import Said, interventions, said, second_look_at
from ._step_view import INDENT
from ._stops import stopped
from ._summary import Summary, total
from .output import Bar, printable, say, show


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
        steps, found = interventions(run), stopped(run)
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
    return bool(interventions(replayed)) or stopped(replayed) is not None or second_look_at(replayed) is not None


def _counted(found: int, runs: int, texts: int) -> str:
    read = f"{_runs(runs)} read"
    if not found:
        return f"no intervention in {read}"
    return f"{texts:,} {'intervention' if texts == 1 else 'interventions'} in {found:,} of {read}"


def _runs(count: int) -> str:
    return f"{count:,} {'run' if count == 1 else 'runs'}"


def injected_lines(replayed: ReplayedRun, canvas: Canvas, *, full: bool = False) -> Iterator[Line]:
    """Yield the run with its interventions and its stop, then the start of the first text, or with `full` all texts."""
    yield from title_lines(replayed, canvas, printable(_about(replayed)))
    steps, look = interventions(replayed), second_look_at(replayed)
    steps += [] if look is None else [look]
    if full:
        yield from _texts(replayed, steps, canvas)
    elif steps:
        text = next(filter(None, map(str.strip, first_said(replayed, steps[0]).text.splitlines())), "")
        yield ((INDENT, ""), (f"{canvas.glyphs.said} ", "magenta"), (fitted(text, canvas.width - 4), "dim"))


def _about(replayed: ReplayedRun) -> str:
    """Return the number of interventions with the first one's place and reason, the stop, and the second look."""
    steps, found, look = interventions(replayed), stopped(replayed), second_look_at(replayed)
    of, parts = f" of {len(replayed.run.steps):,}", []
    if steps:
        first = first_said(replayed, steps[0])
        times = "once" if len(steps) == 1 else f"{len(steps):,} times, first"
        parts.append(f"{times} after step {steps[0]}{of}: {first.why or first.who}")
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
    found = stopped(replayed)
    if found is not None:
        yield ()
        yield from stop_lines(replayed, found, canvas)
    yield ()


def first_said(replayed: ReplayedRun, step: int) -> Said:
    """Return the first text after that step that is no standing rule."""
    return next(text for text in said(replayed.decisions[step]) if not text.standing)
