"""Draws the comparison of two sets of settings: an overview with one entry per differing run, or one run in detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from reasonblocks.types import StepDecision

from ..replay import ReplayedRun
from ._diff import Comparison, differing, start_differs
from ._layout import clipped, fitted
from ._paint import Canvas, Line, canvas, paint
from ._run_view import decided_lines, place_of, quiet_lines, run_head, state_parts, stop_lines, title_lines
from ._said import monitor_speaks, said, silence
from ._step_view import INDENT, StepView
from ._stops import stop_reason, stopped
from .output import Bar, show

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
    for side, one in zip(NAMES, replayed, strict=True):
        name = side
        for row in clipped(_short(one, steps[0]), canvas.width - 5, 2, 2):
            yield ((INDENT, ""), (name.ljust(len(MARGIN)), "bold"), (row, ""))
            name = " "


def _short(replayed: ReplayedRun, index: int) -> str:
    """Return in a sentence what the decision after that step does."""
    if index >= len(replayed.decisions):
        return "not decided: the run would have been stopped before"
    decision, found = replayed.decisions[index], stopped(replayed)
    state = decision.fsm_state.value
    if found is not None and found.step == index:
        return f"{state}, {'stops' if found.stop.real else 'would stop'} the run: {stop_reason(replayed, found)}"
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
        yield from _start(canvas, replayed)
    view, last = StepView(canvas, full=full), _LastSaid(replayed)
    for index in steps:
        yield ()
        yield ((f"step {index}", "bold"),)
        step = replayed[0].run.steps[index]
        yield from view.lines(step) if full else [((INDENT, ""), (view.line(step), "dim"))]
        yield from _both(canvas, replayed, index, last.before(index))
    yield ()
    total = len(replayed[0].run.steps)
    yield ((f"{len(steps):,} of {total:,} steps are decided differently", "bold"),)


def _start(canvas: Canvas, replayed: Sequence[ReplayedRun]) -> Iterator[Line]:
    for name, run in zip(NAMES, replayed, strict=True):
        yield _side(name, run.start, canvas)
        yield from _inner(decided_lines(run.start, _inside(canvas), "before the first call"))


def _both(canvas: Canvas, replayed: Sequence[ReplayedRun], index: int, since: Sequence[int | None]) -> Iterator[Line]:
    inside = _inside(canvas)
    for name, run, decision, steps in zip(NAMES, replayed, _decisions(replayed, index), since, strict=True):
        if decision is None:
            yield ((name.ljust(len(MARGIN)), "bold"), ("not decided: the run would have been stopped before", "red"))
            continue
        yield _side(name, decision, canvas)
        yield from _inner(decided_lines(decision, inside, place_of(decision, index)))
        found = stopped(run)
        if found is not None and found.step == index:
            yield from _inner(stop_lines(run, found, inside))
        yield from _inner(quiet_lines(decision, inside, steps, ""))


def _side(name: str, decision: StepDecision, canvas: Canvas) -> Line:
    return ((name.ljust(len(MARGIN)), "bold"), *state_parts(decision, canvas))


def _inside(canvas: Canvas) -> Canvas:
    return replace(canvas, width=canvas.width - len(MARGIN))


def _inner(lines: Iterator[Line]) -> Iterator[Line]:
    return (((MARGIN, ""), *line) for line in lines)


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
