"""Draws the comparison of two sets of settings: an overview with one entry per differing run, or one run in detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from .._replay import ReplayedRun
from ..types import StepDecision
from ._diff import Comparison, differing, start_differs
from ._layout import clipped, fitted
from ._output import Bar, show
from ._paint import Canvas, Line, canvas, paint
from ._run_view import decided_lines, quiet_lines, run_head, state_parts, title_lines
from ._said import monitor_speaks, said, silence, stop_of
from ._step_view import INDENT, StepView

NAMES, MARGIN = ("A", "B"), "   "


class DiffReport:
    """Shows an overview and then every differing run; or the differing steps of the run that is asked for."""

    def __init__(self, bar: Bar, files: Sequence[str], *, run: str | None, full: bool) -> None:
        self.bar, self.files, self.run, self.full = bar, files, run, full
        self.canvas = canvas()
        self.comparison = Comparison()
        self.entries: list[tuple[Line, ...]] = []

    def add(self, replayed: Sequence[ReplayedRun]) -> bool:
        self.comparison.add(replayed)
        if self.run is not None:
            self.bar.clear()
            paint(differing_steps(replayed, self.files, self.canvas, full=self.full))
        elif differing(*replayed) or start_differs(*replayed):
            self.entries.append(tuple(entry_lines(replayed, self.canvas)))
        return True

    def end_file(self, path: str, malformed: int) -> None: ...

    def end(self) -> None:
        if self.run is not None or not self.comparison.every.runs:
            return
        paint(side_lines(self.files, self.canvas))
        show(self.comparison.table())
        paint(chain.from_iterable(self.entries))


def side_lines(files: Sequence[str], canvas: Canvas) -> Iterator[Line]:
    for name, file in zip(NAMES, files, strict=True):
        yield ((name.ljust(len(MARGIN)), "bold"), (fitted(file, canvas.width - len(MARGIN)), "dim"))


def entry_lines(replayed: Sequence[ReplayedRun], canvas: Canvas) -> Iterator[Line]:
    """Yield the run, its first differing step, and what each side does after it."""
    run, steps = replayed[0].run, differing(*replayed)
    if not steps:
        yield from title_lines(replayed[0], canvas, "only the first call differs")
        return
    count = f"{len(steps):,} of {len(run.steps):,} steps differ, the first is step {steps[0]}"
    yield from title_lines(replayed[0], canvas, count)
    for side, decision in zip(NAMES, _decisions(replayed, steps[0]), strict=True):
        name = side
        for row in clipped(_short(decision), canvas.width - 5, 2, 2):
            yield ((INDENT, ""), (name.ljust(len(MARGIN)), "bold"), (row, ""))
            name = " "


def _short(decision: StepDecision | None) -> str:
    """Return in a sentence what a decision does."""
    if decision is None:
        return "not decided: the run would have been stopped before"
    state, stop = decision.fsm_state.value, stop_of(decision)
    if stop is not None:
        return f"{state}, {'stops' if stop.real else 'would stop'} the run: {stop.reason}"
    texts = [text for text in said(decision) if not text.standing]
    if not texts:
        why = silence(decision, None)
        return f"{state}, says nothing{f' ({why})' if why else ''}"
    verb = "would say" if texts[0].withheld else "says"
    return f"{state}, {texts[0].who} {verb}: {texts[0].text}"


def _decisions(replayed: Sequence[ReplayedRun], index: int) -> list[StepDecision | None]:
    return [run.decisions[index] if index < len(run.decisions) else None for run in replayed]


def differing_steps(
    replayed: Sequence[ReplayedRun], files: Sequence[str], canvas: Canvas, *, full: bool
) -> Iterator[Line]:
    """Yield the run's head, and each differing step with what A and B decide after it."""
    steps = differing(*replayed)
    yield from run_head(replayed[0], canvas)
    yield from side_lines(files, canvas)
    if start_differs(*replayed):
        yield from _both(canvas, [run.start for run in replayed], "before the first call", [None, None])
    view, last = StepView(canvas, full=full), _LastSaid(replayed)
    for index in steps:
        yield ()
        yield ((f"step {index}", "bold"),)
        step = replayed[0].run.steps[index]
        yield from view.lines(step) if full else [((INDENT, ""), (view.line(step), "dim"))]
        yield from _both(canvas, _decisions(replayed, index), f"before step {index + 1}", last.before(index))
    yield ()
    total = len(replayed[0].run.steps)
    yield ((f"{len(steps):,} of {total:,} steps are decided differently", "bold"),)


def _both(
    canvas: Canvas, decisions: Sequence[StepDecision | None], place: str, since: Sequence[int | None]
) -> Iterator[Line]:
    for name, decision, steps in zip(NAMES, decisions, since, strict=True):
        if decision is None:
            yield ((name.ljust(len(MARGIN)), "bold"), ("not decided: the run would have been stopped before", "red"))
            continue
        yield ((name.ljust(len(MARGIN)), "bold"), *state_parts(decision, canvas))
        inner = replace(canvas, width=canvas.width - len(MARGIN))
        lines = (decided_lines(decision, inner, place), quiet_lines(decision, inner, steps, ""))
        yield from (((MARGIN, ""), *line) for line in chain(*lines))


class _LastSaid:
    """Finds how long ago a monitor of each side said its last text; asked for steps in ascending order."""

    def __init__(self, replayed: Sequence[ReplayedRun]) -> None:
        self.replayed = replayed
        self.at = 0
        self.last: list[int | None] = [None, None]

    def before(self, index: int) -> list[int | None]:
        for at in range(self.at, index):
            for side, decision in enumerate(_decisions(self.replayed, at)):
                if decision is not None and monitor_speaks(decision):
                    self.last[side] = at
        self.at = index
        return [None if last is None else index - last for last in self.last]
