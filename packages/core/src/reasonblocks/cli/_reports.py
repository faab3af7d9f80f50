"""Reports replayed runs: as a summary of each file, as JSON, or as the view of one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from .._replay import ReplayedRun
from ..types import JSON
from ._output import Bar, say, show
from ._paint import canvas, paint
from ._run_view import run_lines
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
