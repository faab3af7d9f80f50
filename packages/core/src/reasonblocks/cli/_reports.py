"""Reports replayed runs: as a summary of each file, as JSON, as a list of interventions, or as the view of one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from .._replay import ReplayedRun
from ..types import JSON
from ._layout import fitted
from ._output import Bar, printable, say, show
from ._paint import Canvas, Line, canvas, paint
from ._run_view import run_lines, title_lines
from ._said import Said, interventions, said
from ._step_view import INDENT
from ._summary import Summary, total


class Report(Protocol):
    """Receives every run, file by file. `add` returns False for a run that does not count for --limit.

    `replayed` has the run once for each set of settings.
    """

    def add(self, replayed: Sequence[ReplayedRun]) -> bool: ...
    def end_file(self, path: str, malformed: int) -> None: ...
    def end(self) -> None: ...


class SummaryReport:
    """Shows a summary of each file, and one of all files at the end."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.summaries: list[Summary] = []
        self.current = Summary("")

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        self.current.add(replayed[0])
        return True

    def end_file(self, path: str, malformed: int) -> None:
        summary, self.current = replace(self.current, name=path, malformed=malformed), Summary("")
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
    """Prints some rows for each run with an intervention as it is found, and a count at the end."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.canvas = canvas()
        self.runs = self.found = self.texts = 0

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        run = replayed[0]
        steps = interventions(run)
        self.runs += 1
        self.found += bool(steps)
        self.texts += len(steps)
        if steps:
            self.bar.clear()
            paint(injected_lines(run, self.canvas))
        return bool(steps)

    def end_file(self, path: str, malformed: int) -> None: ...

    def end(self) -> None:
        self.bar.clear()
        if self.runs:
            paint([((_counted(self.found, self.runs, self.texts), "bold"),)])


def _counted(found: int, runs: int, texts: int) -> str:
    read = f"{runs:,} {'run' if runs == 1 else 'runs'} read"
    if not found:
        return f"no intervention in {read}"
    return f"{texts:,} {'intervention' if texts == 1 else 'interventions'} in {found:,} of {read}"


def injected_lines(replayed: ReplayedRun, canvas: Canvas) -> Iterator[Line]:
    """Yield the run and its interventions, then the start of the first text."""
    run, steps = replayed.run, interventions(replayed)
    first = first_said(replayed, steps[0])
    times = "once" if len(steps) == 1 else f"{len(steps):,} times, first"
    about = f"{times} after step {steps[0]} of {len(run.steps):,}: {first.why or first.who}"
    yield from title_lines(replayed, canvas, printable(about))
    text = next(filter(None, map(str.strip, first.text.splitlines())), "")
    yield ((INDENT, ""), (f"{canvas.glyphs.said} ", "magenta"), (fitted(text, canvas.width - 4), "dim"))


def first_said(replayed: ReplayedRun, step: int) -> Said:
    """Return the first text after that step that is no standing rule."""
    return next(text for text in said(replayed.decisions[step]) if not text.standing)
