"""Draws one replayed run: each step, and what steering says about it, at its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from .._replay import ReplayedRun
from ..types import FSMState, Step, StepDecision, Usage
from ._layout import bar, cells, fitted, rows
from ._output import printable
from ._paint import Canvas, Line, plain
from ._said import Said, finding, intervenes, interventions, monitor_speaks, observed, said, silence, stop_of
from ._step_view import INDENT, StepView

BAR = 10
MARGIN = 12
"""Columns of the names beside the header's lines."""
STYLES = {FSMState.FAST: "green", FSMState.SLOW: "yellow", FSMState.SKIP: "red"}
OUTCOMES = {"success": "bold green", "failure": "bold red"}


def run_lines(replayed: ReplayedRun, canvas: Canvas, *, full: bool = False, only_said: bool = False) -> Iterator[Line]:
    """Yield the lines of a run. `only_said` leaves out the steps after which nothing is said."""
    yield from _RunView(replayed, canvas, full=full, only_said=only_said).lines()


class _RunView:
    def __init__(self, replayed: ReplayedRun, canvas: Canvas, *, full: bool, only_said: bool) -> None:
        self.replayed, self.canvas, self.only_said = replayed, canvas, only_said
        self.steps = StepView(canvas, full=full)

    def lines(self) -> Iterator[Line]:
        yield from run_head(self.replayed, self.canvas)
        yield from self._overview()
        yield from self._said(self.replayed.start, "before the first call")
        yield from self._all_steps()
        yield from self._end()

    def _overview(self) -> Iterator[Line]:
        """Yield the course of the difficulty, with a mark below each step after which something is said."""
        decisions = self.replayed.decisions
        if len(decisions) < 2:
            return
        room = self.canvas.width - MARGIN
        each = -(-len(decisions) // room)
        parts = [decisions[at : at + each] for at in range(0, len(decisions), each)]
        marks = "".join(self.canvas.glyphs.mark if any(map(intervenes, part)) else " " for part in parts)
        yield ()
        yield (("difficulty".ljust(MARGIN), "dim"), ("".join(map(self._level, parts)), "cyan"))
        if marks.strip():
            name = "would say" if observed(self.replayed) else "said"
            yield ((name.ljust(MARGIN), "dim"), (marks.rstrip(), "bold magenta"))
        if each > 1:
            yield from self._named("", f"the highest of {each} steps in each column", "dim")

    def _level(self, part: tuple[StepDecision, ...]) -> str:
        known = [decision.difficulty for decision in part if decision.difficulty is not None]
        levels = self.canvas.glyphs.levels
        return levels[min(int(max(known) * len(levels)), len(levels) - 1)] if known else " "

    def _all_steps(self) -> Iterator[Line]:
        run, last_said, hidden = self.replayed.run, None, 0
        for index, (step, decision) in enumerate(zip_longest(run.steps, self.replayed.decisions)):
            if self.only_said and not (decision and (intervenes(decision) or stop_of(decision))):
                hidden += 1
                continue
            yield from _gap(hidden)
            hidden = 0
            yield ()
            yield step_head(index, decision, run.usages[index] if index < len(run.usages) else None, self.canvas)
            yield from self.steps.lines(step or Step())
            if decision is not None:
                yield from self._decided(index, decision, last_said)
                last_said = index if monitor_speaks(decision) else last_said
        yield from _gap(hidden)

    def _decided(self, index: int, decision: StepDecision, last_said: int | None) -> Iterator[Line]:
        yield from self._said(decision, f"before step {index + 1}")
        yield from quiet_lines(decision, self.canvas, None if last_said is None else index - last_said)
        if index + 1 == len(self.replayed.decisions) < len(self.replayed.run.steps):
            yield ()
            yield (("not decided from here on: the run would have been stopped", "bold red"),)

    def _said(self, decision: StepDecision, place: str) -> Iterator[Line]:
        lines = list(decided_lines(decision, self.canvas, place))
        yield from [(), *lines] if lines else []

    def _end(self) -> Iterator[Line]:
        yield ()
        yield (("outcome".ljust(MARGIN), "dim"), outcome_part(self.replayed.run.outcome))
        yield from self._stopped()
        yield from self._named("would say" if observed(self.replayed) else "said", _count_of(self.replayed))
        yield from self._named("silent", _silences(self.replayed))
        states = Counter(decision.fsm_state.value for decision in self.replayed.decisions)
        yield from self._named("states", ", ".join(f"{name} {count:,}" for name, count in states.most_common()))
        for doubt in self.replayed.doubts:
            yield from self._named("doubt", f"{printable(doubt.monitor)}: {doubt.text}", "yellow")

    def _stopped(self) -> Iterator[Line]:
        """Yield the step before which the run is stopped, and why."""
        found = ((index, stop_of(decision)) for index, decision in enumerate(self.replayed.decisions))
        for index, stop in found:
            if stop is not None:
                yield from self._named(
                    "stopped" if stop.real else "would stop", f"before step {index + 1}: {stop.reason}", "red"
                )
                return

    def _named(self, name: str, text: str, style: str = "") -> Iterator[Line]:
        for row in rows(text, self.canvas.width - MARGIN) if text else ():
            yield ((name.ljust(MARGIN), "dim"), (row, style))
            name = ""


def _gap(steps: int) -> Iterator[Line]:
    if steps:
        yield ()
        yield ((f"... {steps:,} {'step' if steps == 1 else 'steps'} without a text ...", "dim"),)


def _count_of(replayed: ReplayedRun) -> str:
    """Return how many texts of each kind were said, and after which steps."""
    steps = interventions(replayed)
    if not steps:
        return "nothing but standing rules" if said(replayed.start) else "nothing"
    counts = Counter(text.who for index in steps for text in said(replayed.decisions[index]) if not text.standing)
    kinds = ", ".join(
        f"{count} by {'a ' if count == 1 else ''}{who}{'' if count == 1 else 's'}" for who, count in counts.items()
    )
    return f"{kinds}; after {'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"


def _silences(replayed: ReplayedRun) -> str:
    counts = Counter(decision.gate_decision or "off" for decision in replayed.decisions if silence(decision, None))
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def run_head(replayed: ReplayedRun, canvas: Canvas) -> Iterator[Line]:
    """Yield the run's id, outcome, length, place and task."""
    run, between = replayed.run, canvas.glyphs.between
    yield from title_lines(replayed, canvas, f"{len(run.steps):,} {'step' if len(run.steps) == 1 else 'steps'}")
    judged = f"judged by: {replayed.judged_by}" if replayed.judged_by != "shipped" else None
    profile = f"task profile: {run.task_profile}" if run.task_profile else None
    place = printable(f"{run.file}:{run.line}")
    known = between.join(printable(part) for part in (run.source, run.model, profile, judged) if part)
    both = f"{known}{between}{place}" if known else place
    for text in (both,) if cells(both) <= canvas.width else (known, place):
        yield from (((row, "dim"),) for row in rows(text, canvas.width))
    if run.task.strip():
        task = fitted(run.task, 3 * (canvas.width - MARGIN))
        for index, row in enumerate(rows(task, canvas.width - MARGIN)):
            yield (("" if index else "task").ljust(MARGIN), "dim"), (row, "")


def title_lines(replayed: ReplayedRun, canvas: Canvas, about: str) -> Iterator[Line]:
    """Yield the run's id, which is never cut, its outcome, and a few words, in one line if they fit."""
    name, outcome = printable(replayed.run.run_id), outcome_part(replayed.run.outcome)
    after = (outcome, ("  ", ""), (about, ""))
    if cells(name + plain(after)) + 2 <= canvas.width:
        yield ((name, "bold"), ("  ", ""), *after)
        return
    yield ((name, "bold"),)
    room = canvas.width - len(INDENT) - cells(outcome[0]) - 2
    yield ((INDENT, ""), outcome, ("  ", ""), (fitted(about, room), ""))


def outcome_part(outcome: str | None) -> tuple[str, str]:
    text = fitted(outcome or "outcome unknown", 36)
    return text, next((style for word, style in OUTCOMES.items() if text.startswith(word)), "bold")


def step_head(index: int, decision: StepDecision | None, usage: Usage | None, canvas: Canvas) -> Line:
    """Return the line above a step: its number, state, difficulty and tokens."""
    head: Line = ((f"step {index}", "bold"),)
    if decision is not None:
        head = (*head, ("  ", ""), *state_parts(decision, canvas))
    if usage is not None and usage.total is not None:
        head = (*head, (f"  {usage.total:,} tokens", "dim"))
    return head


def state_parts(decision: StepDecision, canvas: Canvas) -> Line:
    style = STYLES.get(decision.fsm_state, "")
    state = (decision.fsm_state.value.ljust(6), style)
    if decision.difficulty is None:
        return (state,)
    drawn = bar(decision.difficulty, BAR, canvas.glyphs.full, canvas.glyphs.empty)
    return (state, ("  ", ""), (drawn, style or "cyan"), (f" {decision.difficulty:.2f}", ""))


def decided_lines(decision: StepDecision, canvas: Canvas, place: str) -> Iterator[Line]:
    """Yield every text of a decision, whole, behind a bar."""
    for index, text in enumerate(said(decision)):
        if index:
            yield ()
        yield from _text_lines(text, canvas, place)
    stop = stop_of(decision)
    if stop is not None:
        words = f"the run {'is' if stop.real else 'would be'} stopped, {place}: {printable(stop.reason)}"
        yield from (((f"{canvas.glyphs.said} {row}", "bold red"),) for row in rows(words, canvas.width - 2))


def _text_lines(text: Said, canvas: Canvas, place: str) -> Iterator[Line]:
    style, words = ("dim", "dim") if text.standing else ("magenta", "")
    edge = (f"{canvas.glyphs.said} ", style)
    width = canvas.width - len(edge[0])
    for row in rows(label(text, place), width):
        yield edge, (row, f"bold {style}")
    for row in rows(text.text, width):
        yield edge, (row, words)


def label(text: Said, place: str) -> str:
    """Return the line above a text: who says it, where, and why."""
    if text.standing:
        return f"{text.who}, {place}"
    who = f"{text.who} {'would say' if text.withheld else 'says'}, {place}"
    patterns = f"with {text.patterns}" if text.why and text.patterns else text.patterns
    reasons = " ".join(filter(None, (text.why, patterns)))
    return f"{who}: {printable(reasons)}" if reasons else who


def quiet_lines(decision: StepDecision, canvas: Canvas, since: int | None, indent: str = INDENT) -> Iterator[Line]:
    """Yield why no monitor speaks although one fired, or that steering failed."""
    why = silence(decision, since)
    if why:
        fired = finding(decision)
        text = f"silent ({why}): {fired}" if fired else f"silent: {why}"
        for index, row in enumerate(rows(text, canvas.width - len(indent) - 2)):
            yield ((f"{indent}{' ' if index else canvas.glyphs.dot} {row}", "dim"),)
    if decision.skipped_reason in ("fault", "unavailable"):
        what = "steering failed" if decision.skipped_reason == "fault" else "a backend gave no answer"
        yield ((f"{indent}{canvas.glyphs.dot} {what} at this step", "red"),)
