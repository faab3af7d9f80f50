"""Implements `reasonblocks replay`: replays recorded runs and reports the decisions."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from .._json import evolve
from .._replay import OtherRuns, ReplayedRun
from .._replay import replay as replayed_run
from ..exceptions import RecordError
from ..types import JSON, Injection, Step, StepDecision
from ._files import recorded, size
from ._options import add_settings, read_settings
from ._output import OK, PROBLEM, Bar, Parsers, columns, printable, say, show, warn, warnings_once
from ._summary import Summary, total

if TYPE_CHECKING:
    from .._client import ReasonBlocks
    from .._replay import ReplayedRun
    from ..traces import RecordedRun


def replayed_json(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the JSON object of one run."""
    run, last = replayed.run, len(replayed.decisions) - 1
    return {
        "run_id": run.run_id,
        "file": run.file,
        "source": run.source,
        "outcome": run.outcome,
        "judged_by": replayed.judged_by,
        "start": {"fsm_state": replayed.start.fsm_state.value, "injections": _injections(replayed.start.injections)},
        "steps": [
            _step(index, None if index == last else index + 1, decision)
            for index, decision in enumerate(replayed.decisions)
        ],
        "doubts": [asdict(doubt) for doubt in replayed.doubts],
    }


def _step(index: int, call: int | None, decision: StepDecision) -> dict[str, JSON]:
    parts = decision.difficulty_parts
    return {
        "step": index,
        "call": call,
        "difficulty": decision.difficulty,
        "difficulty_parts": None if parts is None else asdict(parts),
        "fsm_state": decision.fsm_state.value,
        "scores": dict(decision.scores),
        "composite": decision.composite,
        "fired": list(decision.monitors_fired),
        "failure_type": decision.failure_type,
        "gate_decision": decision.gate_decision,
        "injections": _injections(decision.injections),
        "skipped_reason": decision.skipped_reason,
    }


def _injections(injections: tuple[Injection, ...]) -> list[JSON]:
    return [{"source": injection.source, "text": injection.text} for injection in injections]


HEAD = ("step", "state", "difficulty", "fired", "gate", "action")
PREVIEW = 60
"""Characters of an action in a row."""


def run_lines(replayed: ReplayedRun) -> Iterator[str]:
    """Yield a title, a row for each step with the text injected after it, and the doubts below the last row."""
    run = replayed.run
    yield printable(f"{run.run_id}  {run.outcome or 'outcome unknown'}  {len(run.steps)} steps  {run.file}:{run.line}")
    if replayed.judged_by != "shipped":
        yield f"judged by: {replayed.judged_by}"
    if run.task:
        yield printable(f"task: {_short(run.task, 100)}")
    steps = zip(run.steps, replayed.decisions, strict=True)
    rows = [HEAD, _row("start", replayed.start, "")]
    rows += [_row(str(index), decision, _action(step)) for index, (step, decision) in enumerate(steps)]
    head, *lines = columns(rows)
    yield head
    for line, decision in zip(lines, (replayed.start, *replayed.decisions), strict=True):
        yield line
        yield from _injected(decision)
        yield from _doubted(decision)


def _row(name: str, decision: StepDecision, action: str) -> tuple[str, ...]:
    return (
        name,
        decision.fsm_state.value,
        "-" if decision.difficulty is None else f"{decision.difficulty:.2f}",
        ", ".join(decision.monitors_fired) or "-",
        " ".join(part for part in (decision.gate_decision, decision.skipped_reason) if part) or "-",
        action,
    )


def _action(step: Step) -> str:
    text = f"{step.action} {step.action_input}" if step.tool_calls else step.thought
    return printable(_short(text, PREVIEW))


def _injected(decision: StepDecision) -> Iterator[str]:
    for injection in decision.injections:
        yield f"      > {injection.source}"
        yield from (f"      | {printable(line)}" for line in injection.text.splitlines())


def _doubted(decision: StepDecision) -> Iterator[str]:
    for doubt in decision.doubts:
        yield f"      ? {printable(doubt.monitor)} doubts this end"
        yield from (f"      | {printable(line)}" for line in doubt.text.splitlines())


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


OWN = "own"
"""The value of --profile for the other runs of the files."""
KEPT_IDS = 10_000
"""Run ids that are kept, to suggest the nearest one if `--run` finds none."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "replay",
        help="show what steering would have done in recorded runs",
        description="Replays recorded runs through the engine and changes nothing. FILE is our JSON Lines (also .gz) "
        "or LangChain messages; the format is detected by content.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks replay [OPTIONS] FILE..."
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object per run, nothing else on stdout")
    parser.add_argument("--run", metavar="ID", help="only this run, step by step")
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N runs of each file")
    add_settings(parser)
    parser.set_defaults(command=replay)


def _count(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def replay(arguments: argparse.Namespace) -> int:
    """Replay the files; return 1 if no run could be read, or if none is the requested one."""
    from .._client import ReasonBlocks

    settings = read_settings(arguments)
    others = OtherRuns() if settings.get("profile") == OWN else None
    if others is not None:
        settings["profile"] = others
    with closing(ReasonBlocks(**settings)) as rb:
        if rb.disabled:
            print("reasonblocks: REASONBLOCKS_DISABLED=1: nothing is judged below", file=sys.stderr)
        work = _Work(rb, arguments, others)
        with warnings_once(work.bar):
            work.all()
    return work.verdict()


class _Work:
    """One invocation: replays the files one after another and sums up the results."""

    def __init__(self, rb: ReasonBlocks, arguments: argparse.Namespace, others: OtherRuns | None) -> None:
        self.rb, self.arguments, self.others = rb, arguments, others
        self.summaries: list[Summary] = []
        self.seen: list[str] = []
        self.done, self.steps = 0, 0
        self.found = False
        self.bar = Bar(total=sum(map(size, arguments.files)))

    def all(self) -> None:
        if self.others is not None:
            self._gather(self.others)
        before = accumulate(map(size, self.arguments.files), initial=0)
        for path, offset in zip(self.arguments.files, before, strict=False):
            self._file(path, offset)
            if self.found and self.arguments.run:
                break
        self.bar.clear()
        if not self._quiet and len(self.summaries) > 1 and self.done:
            self._show(total(self.summaries))

    def _gather(self, others: OtherRuns) -> None:
        """Replay all runs once, so that each can be judged by the others."""
        for path in self.arguments.files:
            for run in recorded(path, lambda at: None):
                if not isinstance(run, RecordError):
                    self._replayed(run)
        others.complete = True

    def _replayed(self, run: RecordedRun) -> ReplayedRun:
        if self.others is not None:
            self.others.task_key = run.task_key
        chosen = self.arguments.task_profile is not None
        return replayed_run(self.rb, evolve(run, task_profile=None) if chosen else run)

    def verdict(self) -> int:
        if not self.seen:
            warn("reasonblocks replay: no run could be read")
        elif self.arguments.run and not self.found:
            near = difflib.get_close_matches(self.arguments.run, self.seen, n=1, cutoff=0)
            warn(f"reasonblocks replay: no run is called {self.arguments.run!r}; the nearest is {near[0]!r}")
        return OK if self.done else PROBLEM

    @property
    def _quiet(self) -> bool:
        return bool(self.arguments.json or self.arguments.run)

    def _file(self, path: str, offset: int) -> None:
        summary = Summary(path)
        runs = recorded(path, lambda at: self._progress(offset + at))
        for run in islice(self._wanted(runs, summary), self.arguments.limit):
            self._replay(run, summary)
            if self.arguments.run:
                return
        self.summaries.append(summary)
        if not self._quiet and summary.every.runs:
            self._show(summary)

    def _wanted(self, runs: Iterator[RecordedRun | RecordError], summary: Summary) -> Iterator[RecordedRun]:
        """Yield the runs to replay; report and count malformed ones."""
        for run in runs:
            if isinstance(run, RecordError):
                summary.malformed += 1
                self.bar.clear()
                warn(str(run))
                continue
            if len(self.seen) < KEPT_IDS:
                self.seen.append(run.run_id)
            if self.arguments.run in (None, run.run_id):
                yield run

    def _replay(self, run: RecordedRun, summary: Summary) -> None:
        replayed = self._replayed(run)
        self.found, self.done, self.steps = True, self.done + 1, self.steps + len(run.steps)
        summary.add(replayed)
        if self._quiet:
            self.bar.clear()
        if self.arguments.json:
            say(json.dumps(replayed_json(replayed), separators=(",", ":")))
        elif self.arguments.run:
            for line in run_lines(replayed):
                say(line)

    def _progress(self, at: int) -> None:
        self.bar.at(at, f"{self.done:,} runs, {self.steps:,} steps")

    def _show(self, summary: Summary) -> None:
        self.bar.clear()
        for table in summary.tables():
            show(table)
