"""Lists the runs in which steering intervenes, with the first text of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._replay import ReplayedRun
from ._layout import fitted
from ._output import Bar, printable
from ._paint import Canvas, Line, canvas, paint
from ._run_view import title_lines
from ._said import Said, interventions, said
from ._step_view import INDENT


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
    if not found:
        return f"no intervention in {runs:,} {'run' if runs == 1 else 'runs'} read"
    return f"{texts:,} {'intervention' if texts == 1 else 'interventions'} in {found:,} of {runs:,} runs read"


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
