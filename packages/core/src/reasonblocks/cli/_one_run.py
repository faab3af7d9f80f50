"""One run, step by step, for a reader: state, difficulty, what fired, what the gate said, what was injected."""

from __future__ import annotations

from collections.abc import Iterator

from ..replay import Replayed
from ..types import Step, StepDecision
from ._output import columns, printable

__all__ = ["run_lines"]

HEAD = ("step", "state", "difficulty", "fired", "gate", "action")
PREVIEW = 60
"""Characters of an action that a row shows."""


def run_lines(replayed: Replayed) -> Iterator[str]:
    """Yield a title, a row for each step with the text injected after it, and the doubts below the last row."""
    run = replayed.run
    yield printable(f"{run.run_id}  {run.outcome or 'outcome unknown'}  {len(run.steps)} steps  {run.file}:{run.line}")
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
        " ".join(said for said in (decision.gate_decision, decision.skipped_reason) if said) or "-",
        action,
    )


def _action(step: Step) -> str:
    said = f"{step.action} {step.action_input}" if step.tool_calls else step.thought
    return printable(_short(said, PREVIEW))


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
