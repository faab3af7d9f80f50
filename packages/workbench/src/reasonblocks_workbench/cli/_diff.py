"""Compares what two sets of settings decide on the same runs: an overview, each differing run, or one in detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from reasonblocks.types import JSON, StepDecision
from reasonblocks.util.text import count_noun

from ..replay import ReplayedRun
from ..report.sources import texts_of
from ._decisions import (
    Stopped,
    first_stop,
    interventions,
    monitor_speaks,
    run_json,
    second_look_at,
    silence,
    step_json,
    stop_reason,
)  # fmt: skip
from ._lines import Canvas, Line, canvas, clip_rows, fit_width, paint
from ._run_view import (
    INDENT,
    StepView,
    decided_lines,
    place_of,
    quiet_lines,
    run_head,
    speaker_of,
    state_parts,
    stop_lines,
    title_lines,
)  # fmt: skip
from .output import Bar, Table, show

SIDES = ("a", "b")
NAMES, MARGIN = ("A", "B"), "   "


def differing(one: ReplayedRun, other: ReplayedRun) -> list[int]:
    """Return the steps after which the two decide differently: state, route, texts, or the end of the run.

    Scores alone are no difference: the agent sees nothing of them.
    """
    pairs = enumerate(zip_longest(_effects(one), _effects(other)))
    return [index for index, (left, right) in pairs if left != right]


def _effects(run: ReplayedRun) -> list[object]:
    """Return what each decision does; an observed run goes on after its stop, which counts only once."""
    effects: list[object] = [_effect(decision) for decision in run.decisions]
    found = first_stop(run)
    if found is not None:
        effects[found.step] = effects[found.step], found.stop
    return effects


def _effect(decision: StepDecision) -> object:
    """Return what a decision does to the next call."""
    texts = [(text.source, text.text, text.withheld) for text in texts_of(decision)]
    route = decision.route or decision.withheld_route
    return decision.fsm_state, route, texts, decision.placement if texts else None


def start_differs(one: ReplayedRun, other: ReplayedRun) -> bool:
    """Return True if the first call is decided differently: other standing rules, or another place for them."""
    return _effect(one.start) != _effect(other.start)


def diff_json(replayed: Sequence[ReplayedRun]) -> dict[str, JSON] | None:
    """Return the object of a run that the two sides decide differently, with its differing steps; else None."""
    steps, start = differing(*replayed), start_differs(*replayed)
    if not steps and not start:
        return None
    return {
        **run_json(replayed[0]),
        "start_differs": start,
        "interventions": {side: list(interventions(run)) for side, run in zip(SIDES, replayed, strict=True)},
        "steps": [
            {"step": index, **{side: _decided(run, index) for side, run in zip(SIDES, replayed, strict=True)}}
            for index in steps
        ],
    }


def _decided(run: ReplayedRun, index: int) -> JSON:
    """Return the decision after a step without the step's numbers; None if the run would have been stopped before."""
    if index >= len(run.decisions):
        return None
    return {key: value for key, value in step_json(run, index).items() if key not in ("step", "call")}


@dataclass(slots=True)
class Compared:
    """Counts over some runs. `flagged` and `only` count the runs with an intervention by side, and by one alone."""

    runs: int = 0
    steps: int = 0
    differing: int = 0
    differing_steps: int = 0
    interventions: list[int] = field(default_factory=lambda: [0, 0])
    flagged: list[int] = field(default_factory=lambda: [0, 0])
    only: list[int] = field(default_factory=lambda: [0, 0])
    stopped: list[int] = field(default_factory=lambda: [0, 0])
    looks: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, replayed: Sequence[ReplayedRun]) -> None:
        steps = differing(*replayed)
        counts = [len(interventions(run)) for run in replayed]
        self.runs += 1
        self.steps += len(replayed[0].run.steps)
        self.differing += bool(steps) or start_differs(*replayed)
        self.differing_steps += len(steps)
        for side, run in enumerate(replayed):
            self.stopped[side] += first_stop(run) is not None
            self.looks[side] += second_look_at(run) is not None
        for side, count in enumerate(counts):
            self.interventions[side] += count
            self.flagged[side] += bool(count)
            self.only[side] += bool(count) and not counts[1 - side]


@dataclass(slots=True)
class Comparison:
    """The counts of all runs, and of those of each outcome."""

    every: Compared = field(default_factory=Compared)
    failing: Compared = field(default_factory=Compared)
    succeeding: Compared = field(default_factory=Compared)

    def add(self, replayed: Sequence[ReplayedRun]) -> None:
        run = replayed[0].run
        self.every.add(replayed)
        if run.has_outcome:
            (self.succeeding if run.outcome_kind == "success" else self.failing).add(replayed)

    def table(self) -> Table:
        """Return the counts of both sides; the title says how many runs and steps differ."""
        every = self.every
        rows = [_row("interventions", every.interventions)]
        for name, part in (("", every), ("failing ", self.failing), ("succeeding ", self.succeeding)):
            if part.runs:
                rows.append(_row(f"{name}runs with an intervention, of {part.runs:,}", part.flagged))
                rows.append(_row("  under this side only", part.only))
                if any(every.stopped):
                    rows.append(_row(f"{name}runs that are stopped", part.stopped))
                if any(every.looks):
                    rows.append(_row(f"{name}runs with a second look", part.looks))
        return Table(
            title=f"{_of(every.differing, every.runs, 'run')} decided differently, "
            f"in {every.differing_steps:,} of {count_noun(every.steps, 'step')}",
            head=("", "A", "B"),
            rows=rows,
        )


def _of(part: int, total: int, noun: str) -> str:
    return f"{part:,} of {count_noun(total, noun)} {'is' if total == 1 else 'are'}"


def _row(name: str, counts: Sequence[int]) -> tuple[str, ...]:
    return name, *(f"{count:,}" for count in counts)


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
        yield ((name.ljust(len(MARGIN)), "bold"), (fit_width(file, canvas.width - len(MARGIN)), "dim"))


def entry_lines(replayed: Sequence[ReplayedRun], canvas: Canvas) -> Iterator[Line]:
    """Yield the run, its first differing step, and what each side does after it."""
    run, steps = replayed[0].run, differing(*replayed)
    if not steps:
        yield from title_lines(replayed[0], canvas, "only the first call differs")
        return
    of = f"{len(steps):,} of {count_noun(len(run.steps), 'step')}"
    count = f"{of} {'differs' if len(run.steps) == 1 else 'differ'}, the first is step {steps[0]}"
    yield from title_lines(replayed[0], canvas, count)
    for side, one in zip(NAMES, replayed, strict=True):
        name = side
        for row in clip_rows(_short(one, steps[0]), canvas.width - 5, 2, 2):
            yield ((INDENT, ""), (name.ljust(len(MARGIN)), "bold"), (row, ""))
            name = " "


def _short(replayed: ReplayedRun, index: int) -> str:
    """Return in a sentence what the decision after that step does."""
    if index >= len(replayed.decisions):
        return "not decided: the run would have been stopped before"
    decision, found = replayed.decisions[index], first_stop(replayed)
    state = decision.fsm_state.value
    if found is not None and found.step == index:
        return f"{state}, {'stops' if found.stop.real else 'would stop'} the run: {stop_reason(replayed, found)}"
    texts = [text for text in texts_of(decision) if not text.standing]
    if not texts:
        why = silence(decision, None)
        return f"{state}, says nothing{f' ({why})' if why else ''}"
    verb = "would say" if texts[0].withheld else "says"
    return f"{state}, {speaker_of(texts[0])} {verb}: {texts[0].text}"


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
    ends = [first_stop(run) for run in replayed]
    for index in steps:
        yield ()
        yield ((f"step {index}", "bold"),)
        step = replayed[0].run.steps[index]
        yield from view.lines(step) if full else [((INDENT, ""), (view.line(step), "dim"))]
        yield from _both(canvas, replayed, index, last.before(index), ends)
    yield ()
    total = len(replayed[0].run.steps)
    yield ((f"{_of(len(steps), total, 'step')} decided differently", "bold"),)


def _start(canvas: Canvas, replayed: Sequence[ReplayedRun]) -> Iterator[Line]:
    for name, run in zip(NAMES, replayed, strict=True):
        yield _side(name, run.start, canvas)
        yield from _inner(decided_lines(run.start, _inside(canvas), "before the first call"))


def _both(
    canvas: Canvas,
    replayed: Sequence[ReplayedRun],
    index: int,
    since: Sequence[int | None],
    ends: Sequence[Stopped | None],
) -> Iterator[Line]:
    inside, decisions = _inside(canvas), _decisions(replayed, index)
    for name, run, decision, steps, found in zip(NAMES, replayed, decisions, since, ends, strict=True):
        if decision is None:
            yield ((name.ljust(len(MARGIN)), "bold"), ("not decided: the run would have been stopped before", "red"))
            continue
        yield _side(name, decision, canvas)
        yield from _inner(decided_lines(decision, inside, place_of(decision, index)))
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
