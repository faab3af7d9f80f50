"""Draws one replayed run: each step with its thought, calls and results, and what steering says about it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from reasonblocks.account.calls import Kind
from reasonblocks.account.results import read_result
from reasonblocks.types import JSON, FSMState, Step, StepDecision, ToolCall, ToolResult, Usage
from reasonblocks.types.outcomes import kind_of
from reasonblocks.util.json import canonical

from ..replay import ReplayedRun
from ..report import Told
from ..report.sources import texts_of
from ._decisions import (
    Stopped,
    finding,
    first_stop,
    gate_of,
    intervenes,
    interventions,
    is_observed,
    monitor_speaks,
    second_look,
    second_look_at,
    silence,
    stop_reason,
    texts,
    why,
)  # fmt: skip
from ._lines import Canvas, Line, bar, cells, clip_rows, fit_width, level, plain, rows
from .output import clean, printable

BAR = 10
MARGIN = 12
"""Columns of the names beside the header's lines."""
STYLES = {FSMState.FAST: "green", FSMState.SLOW: "yellow", FSMState.SKIP: "red"}
OUTCOMES = {"success": "bold green", "failure": "bold red"}
THOUGHT, ARGUMENTS, RESULT = (4, 1), (2, 0), (3, 2)
"""Rows at the start and at the end of each text that are shown of a long one."""
INDENT, DEEPER = "  ", "    "


class StepView:
    """Draws steps on a canvas. `full` shows texts whole."""

    def __init__(self, canvas: Canvas, *, full: bool) -> None:
        self.canvas, self.full = canvas, full

    def lines(self, step: Step) -> Iterator[Line]:
        """Yield the thought, then each call with its result."""
        yield from self._thought(step)
        results = _by_call(step)
        for index, call in enumerate(step.tool_calls):
            yield from self._call(call)
            for result in results.pop(index, ()):
                yield from self._result(result)
        for result in chain.from_iterable(results.values()):
            yield ((INDENT, ""), (f"{self.canvas.glyphs.call} ", "dim"), (clean(result.name or "a result"), "dim"))
            yield from self._result(result)

    def line(self, step: Step) -> str:
        """Return the step in one row: its calls, or what it thinks if it calls nothing."""
        calls = " + ".join(f"{call.name} {_arguments(call.arguments, 60)}" for call in step.tool_calls)
        return fit_width(calls or step.thought or step.reasoning, self.canvas.width - len(INDENT))

    def _thought(self, step: Step) -> Iterator[Line]:
        if step.thought.strip():
            yield from self._text(step.thought, INDENT, "", THOUGHT)
        if step.reasoning.strip() and (self.full or not step.thought.strip()):
            yield ((INDENT, ""), ("reasoning", "dim italic"))
            yield from self._text(step.reasoning, INDENT, "italic", THOUGHT)

    def _call(self, call: ToolCall) -> Iterator[Line]:
        name, mark = clean(call.name), f"{self.canvas.glyphs.call} "
        head: Line = ((INDENT, ""), (mark, "cyan"), (name, "bold cyan"))
        if self.full:
            yield head
            yield from self._whole(call.arguments)
            return
        room = self.canvas.width - cells(f"{INDENT}{mark}{name}  ")
        text = _arguments(call.arguments, 2 * (self.canvas.width - len(DEEPER)))
        if cells(text) <= room:
            yield (*head, ("  ", ""), (text, "")) if text else head
            return
        yield head
        yield from self._text(text, DEEPER, "", ARGUMENTS)

    def _whole(self, arguments: JSON) -> Iterator[Line]:
        given = arguments if isinstance(arguments, dict) else {"": arguments}
        for key, value in given.items():
            text = value if isinstance(value, str) else canonical(value)
            if key and len(given) > 1:
                yield ((DEEPER, ""), (f"{clean(key)}:", "dim"))
            yield from self._text(text, DEEPER, "", ARGUMENTS)

    def _result(self, result: ToolResult) -> Iterator[Line]:
        wrong = is_error(result)
        edge: Line = ((DEEPER, ""), (f"{self.canvas.glyphs.edge} ", "red" if wrong else "dim"))
        if wrong:
            yield (*edge, ("error", "bold red"))
        if not result.output.strip():
            yield (*edge, ("no output", "dim"))
        for row in self._rows(result.output, self.canvas.width - len(DEEPER) - 2, RESULT):
            yield (*edge, (row, "dim"))

    def _text(self, text: str, indent: str, style: str, limits: tuple[int, int]) -> Iterator[Line]:
        for row in self._rows(text, self.canvas.width - len(indent), limits):
            yield ((indent, ""), (row, style))

    def _rows(self, text: str, width: int, limits: tuple[int, int]) -> Iterable[str]:
        return rows(text, width) if self.full else clip_rows(text, width, *limits)


def is_error(result: ToolResult) -> bool:
    """Return True for a result that is an error, or announces one where the recording does not know."""
    return read_result(result, kind=Kind(frozenset())).failed if result.is_error is None else result.is_error


def _by_call(step: Step) -> dict[int, list[ToolResult]]:
    """Return the results by the position of their call; a result of an unknown call follows all calls."""
    places = {call.id: index for index, call in reversed(list(enumerate(step.tool_calls))) if call.id}
    found: dict[int, list[ToolResult]] = defaultdict(list)
    for position, result in enumerate(step.tool_results):
        unnamed = position if not result.call_id and position < len(step.tool_calls) else len(step.tool_calls)
        found[places.get(result.call_id, unnamed)].append(result)
    return found


def _arguments(arguments: JSON, limit: int) -> str:
    """Return the arguments in one line: the text of a single one, else pairs of name and value, each cut alike."""
    given = arguments if isinstance(arguments, dict) else {"": arguments}
    if len(given) == 1:
        (value,) = given.values()
        return fit_width(value if isinstance(value, str) else canonical(value), limit)
    each = max(12, limit // max(1, len(given)))
    return "  ".join(f"{fit_width(key, 40)}={_value(value, each)}" for key, value in given.items())


def _value(value: JSON, limit: int) -> str:
    text = json.dumps(value[: 2 * limit], ensure_ascii=False) if isinstance(value, str) else canonical(value)
    plain = isinstance(value, str) and value and " " not in value and text == f'"{value}"'
    return fit_width(str(value) if plain else text, limit)


def run_lines(replayed: ReplayedRun, canvas: Canvas, *, full: bool = False, only_said: bool = False) -> Iterator[Line]:
    """Yield the lines of a run. `only_said` leaves out the steps after which nothing is said."""
    yield from _RunView(replayed, canvas, full=full, only_said=only_said).lines()


class _RunView:
    def __init__(self, replayed: ReplayedRun, canvas: Canvas, *, full: bool, only_said: bool) -> None:
        self.replayed, self.canvas, self.only_said = replayed, canvas, only_said
        self.steps = StepView(canvas, full=full)
        self.stopped = first_stop(replayed)

    def lines(self) -> Iterator[Line]:
        yield from run_head(self.replayed, self.canvas, verdict(self.replayed))
        yield from self._overview()
        yield from self._said(self.replayed.start, "before the first call")
        yield from self._all_steps()
        yield from self._end()

    def _overview(self) -> Iterator[Line]:
        """Yield the course of the difficulty, with marks below it for texts, the stop, and a doubtful end."""
        decisions = self.replayed.decisions
        if len(decisions) < 2:
            return
        room = self.canvas.width - MARGIN
        each = -(-len(decisions) // room)
        parts = [decisions[at : at + each] for at in range(0, len(decisions), each)]
        yield ()
        yield (("difficulty".ljust(MARGIN), "dim"), ("".join(map(self._level, parts)), "cyan"))
        glyphs, found = self.canvas.glyphs, self.stopped
        said_at = [at for at, decision in enumerate(decisions) if intervenes(decision)]
        name = "would say" if is_observed(self.replayed) else "said"
        yield from self._marks(name, glyphs.mark, "bold magenta", said_at, each)
        if found is not None:
            name = "stopped" if found.stop.real else "would stop"
            yield from self._marks(name, glyphs.stop, "bold red", [found.step], each)
        yield from self._marks("doubt", "?", "bold yellow", [len(decisions) - 1] if self.replayed.doubts else [], each)
        if each > 1:
            yield from self._named("", f"the highest of {each} steps in each column", "dim")

    def _marks(self, name: str, mark: str, style: str, steps: Sequence[int], each: int) -> Iterator[Line]:
        """Yield a line with a mark in the column of each of these steps."""
        columns = {step // each for step in steps}
        if columns:
            drawn = "".join(mark if column in columns else " " for column in range(max(columns) + 1))
            yield ((name.ljust(MARGIN), "dim"), (drawn, style))

    def _level(self, part: tuple[StepDecision, ...]) -> str:
        known = [decision.difficulty for decision in part if decision.difficulty is not None]
        return level(max(known, default=None), self.canvas)

    def _all_steps(self) -> Iterator[Line]:
        run, last_said, hidden = self.replayed.run, None, 0
        for index, (step, decision) in enumerate(zip_longest(run.steps, self.replayed.decisions)):
            if self.only_said and not (decision and self._has_lines(index, decision)):
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

    def _has_lines(self, index: int, decision: StepDecision) -> bool:
        """Return True for a step after which something is said, or the run is stopped."""
        return intervenes(decision) or bool(second_look(decision)) or self._stopped_at(index) is not None

    def _stopped_at(self, index: int) -> Stopped | None:
        return self.stopped if self.stopped is not None and self.stopped.step == index else None

    def _decided(self, index: int, decision: StepDecision, last_said: int | None) -> Iterator[Line]:
        yield from self._said(decision, place_of(decision, index))
        found = self._stopped_at(index)
        if found is not None:
            yield ()
            yield from stop_lines(self.replayed, found, self.canvas)
        yield from quiet_lines(decision, self.canvas, None if last_said is None else index - last_said)
        if index + 1 == len(self.replayed.decisions) < len(self.replayed.run.steps):
            yield ()
            yield (("not decided from here on: the run is stopped", "bold red"),)

    def _said(self, decision: StepDecision, place: str) -> Iterator[Line]:
        lines = list(decided_lines(decision, self.canvas, place))
        yield from [(), *lines] if lines else []

    def _end(self) -> Iterator[Line]:
        yield ()
        outcome, style = outcome_part(self.replayed.run.outcome)
        yield (("outcome".ljust(MARGIN), "dim"), (outcome.removeprefix("outcome "), style))
        if self.stopped is not None:
            why = f"before step {self.stopped.step + 1:,}: {stop_reason(self.replayed, self.stopped)}"
            yield from self._named("stopped" if self.stopped.stop.real else "would stop", why, "red")
        yield from self._named("would say" if is_observed(self.replayed) else "said", _count_of(self.replayed))
        look = second_look_at(self.replayed)
        yield from self._named("second look", "" if look is None else f"would follow step {look:,}")
        yield from self._named("silent", _silences(self.replayed))
        states = Counter(decision.fsm_state.value for decision in self.replayed.decisions)
        yield from self._named("states", ", ".join(f"{name} {count:,}" for name, count in states.most_common()))
        for doubt in self.replayed.doubts:
            yield from self._named("doubt", f"{printable(doubt.monitor)}: {doubt.text}", "yellow")

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
        return "nothing but standing rules" if texts_of(replayed.start) else "nothing"
    counts = Counter(text.who for text in texts(replayed))
    kinds = ", ".join(
        f"{count} by {'a ' if count == 1 else ''}{who}{'' if count == 1 else 's'}" for who, count in counts.items()
    )
    return f"{kinds}; after {'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"


def _silences(replayed: ReplayedRun) -> str:
    counts = Counter(gate_of(decision) for decision in replayed.decisions if silence(decision, None))
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def verdict(replayed: ReplayedRun) -> str:
    """Return in a few words how many texts a run gets, where it is stopped, and whether its end is in doubt."""
    count, found = len(texts(replayed)), first_stop(replayed)
    withheld = " withheld" if count and is_observed(replayed) else ""
    parts = [f"{count:,} {'text' if count == 1 else 'texts'}{withheld}" if count else "no text"]
    parts += [found.place] if found is not None else []
    parts += ["ends in doubt"] if replayed.doubts else []
    return ", ".join(parts)


def run_head(replayed: ReplayedRun, canvas: Canvas, words: str = "") -> Iterator[Line]:
    """Yield the run's id, outcome, length and more words in one line, then its place and task."""
    run, between = replayed.run, canvas.glyphs.between
    length = f"{len(run.steps):,} {'step' if len(run.steps) == 1 else 'steps'}"
    yield from title_lines(replayed, canvas, ", ".join(filter(None, (length, words))))
    judged = f"judged by: {replayed.judged_by}" if replayed.judged_by != "shipped" else None
    profile = f"task profile: {run.task_profile}" if run.task_profile else None
    place = printable(f"{run.file}:{run.line}")
    known = between.join(printable(part) for part in (run.source, run.model, profile, judged) if part)
    both = f"{known}{between}{place}" if known else place
    for text in (both,) if cells(both) <= canvas.width else (known, place):
        yield from (((row, "dim"),) for row in rows(text, canvas.width))
    if run.task.strip():
        task = fit_width(run.task, 3 * (canvas.width - MARGIN))
        for index, row in enumerate(rows(task, canvas.width - MARGIN)):
            yield (("" if index else "task").ljust(MARGIN), "dim"), (row, "")


def title_lines(replayed: ReplayedRun, canvas: Canvas, about: str) -> Iterator[Line]:
    """Yield the run's id, its outcome, and a few words, in one line if they fit; nothing is cut."""
    name, outcome = printable(replayed.run.run_id), outcome_part(replayed.run.outcome)
    after = (outcome, ("  ", ""), (about, ""))
    if cells(name + plain(after)) + 2 <= canvas.width:
        yield ((name, "bold"), ("  ", ""), *after)
        return
    yield ((name, "bold"),)
    first, *others = rows(about, canvas.width - len(INDENT) - cells(outcome[0]) - 2)
    yield ((INDENT, ""), outcome, ("  ", ""), (first, ""))
    for row in others:
        yield ((" " * (len(INDENT) + cells(outcome[0]) + 2), ""), (row, ""))


def outcome_part(outcome: str | None) -> tuple[str, str]:
    return fit_width(outcome or "outcome unknown", 36), OUTCOMES.get(kind_of(outcome), "bold")


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


def decided_lines(decision: StepDecision, canvas: Canvas, place: str, *, standing: bool = True) -> Iterator[Line]:
    """Yield every text of a decision, whole, behind a bar; also its standing rules unless these are left out."""
    for index, text in enumerate(text for text in texts_of(decision) if standing or not text.standing):
        if index:
            yield ()
        yield from _text_lines(text, decision, canvas, place)


def stop_lines(replayed: ReplayedRun, found: Stopped, canvas: Canvas) -> Iterator[Line]:
    """Yield where the run is stopped, and why."""
    words = f"the run {'is' if found.stop.real else 'would be'} stopped, before step {found.step + 1}: "
    for row in rows(words + printable(stop_reason(replayed, found)), canvas.width - 2):
        yield ((f"{canvas.glyphs.said} {row}", "bold red"),)


def place_of(decision: StepDecision, index: int) -> str:
    """Return where the texts of a decision are said: in the next call, if there is one."""
    return f"after step {index}" if second_look(decision) else f"before step {index + 1}"


def _text_lines(text: Told, decision: StepDecision, canvas: Canvas, place: str) -> Iterator[Line]:
    style, words = ("dim", "dim") if text.standing else ("magenta", "")
    edge = (f"{canvas.glyphs.said} ", style)
    width = canvas.width - len(edge[0])
    for row in rows(label(text, decision, place), width):
        yield edge, (row, f"bold {style}")
    for row in rows(text.text, width):
        yield edge, (row, words)


def speaker_of(text: Told) -> str:
    """Return who says a text, as the subject of a sentence."""
    return f"a {text.who}" if text.look else text.who


def label(text: Told, decision: StepDecision, place: str) -> str:
    """Return the line above a text: who says it, where, and why."""
    if text.standing:
        return f"{text.who}, {place}"
    who = f"{speaker_of(text)} {'would say' if text.withheld else 'says'}, {place}"
    found, patterns = why(text, decision), ", ".join(text.patterns)
    reasons = " ".join(filter(None, (found, f"with lesson {patterns}" if found and patterns else patterns)))
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
