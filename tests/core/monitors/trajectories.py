"""Reads the recorded trajectories under runs/, and plays a trajectory through a session as a hand-written loop does."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reasonblocks import ReasonBlocks
from reasonblocks.types import JSON, Step, StepDecision, StepInput, StepOutcome
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.core.steps import acted

__all__ = [
    "FAIR", "FILES", "STUCK", "Fair", "Played", "Stuck", "Told", "bash", "call", "play", "react", "say",
]  # fmt: skip

FILES = sorted((Path(__file__).parent / "runs").glob("*.jsonl"))
MODEL = "agent-model"
WITHIN = 3
"""Steps after the trouble is plain within which the agent has to be told."""


@dataclass(frozen=True, slots=True)
class Fair:
    """Legitimate work: nobody may be told anything."""

    task: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Trouble after some fair work. The agent may not be told before `stuck` begins, and has to be told in it.

    `plain_at` is the step of `stuck`, counted from 0, by which the trouble is plain: mostly the third repetition.
    `types` has the failure type of the trouble; two where the definitions fit both.
    """

    task: str
    before: Sequence[Step]
    stuck: Sequence[Step]
    plain_at: int
    types: tuple[str, ...]

    @property
    def steps(self) -> list[Step]:
        return [*self.before, *self.stuck]

    @property
    def latest(self) -> int:
        """The last completed step after which the first text may come."""
        return len(self.before) + self.plain_at + WITHIN


def _lines(kind: str) -> Iterator[tuple[RecordedRun, dict[str, Any]]]:
    """Yield each run of the files of a kind as `replay` reads it, with its whole line, which has keys of our own."""
    for path in FILES:
        if path.name.startswith(kind):
            lines = path.read_text(encoding="utf-8").splitlines()
            for run in read_runs(str(path)):
                assert isinstance(run, RecordedRun), run
                yield run, json.loads(lines[run.line - 1])


def _fair() -> dict[str, Fair]:
    return {run.run_id: Fair(run.task, run.steps) for run, _ in _lines("fair_")}


def _stuck() -> dict[str, Stuck]:
    return {run.run_id: _divided(run, **line["expected"]) for run, line in _lines("stuck_")}


def _divided(run: RecordedRun, stuck_from: int, plain_at: int, failure_types: list[str]) -> Stuck:
    before, stuck = run.steps[:stuck_from], run.steps[stuck_from:]
    return Stuck(task=run.task, before=before, stuck=stuck, plain_at=plain_at, types=tuple(failure_types))


FAIR = _fair()
"""Legitimate work, by the sentence that names it."""
STUCK = _stuck()
"""Trouble, by the sentence that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One monitor text: the completed step after which the agent got it."""

    step: int
    text: str
    failure_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """`decisions[k]` was taken from completed step k; `speakers` are the monitors that spoke, in order."""

    decisions: Sequence[StepDecision]
    speakers: Sequence[str]

    @property
    def told(self) -> list[Told]:
        return [
            Told(step=at, text=injection.text, failure_type=decision.failure_type)
            for at, decision in enumerate(self.decisions)
            for injection in decision.injections
            if injection.source == "MonitorSteeringInjection"
        ]


def say(thought: str) -> Step:
    """A step that only speaks."""
    return Step(thought=thought)


def call(thought: str, tool: str, result: JSON, /, *, is_error: bool | None = None, **arguments: JSON) -> Step:
    """One function call. A result that is no text comes back as the JSON that a service answers."""
    return _step(thought, tool, dict(arguments), result, is_error)


def bash(thought: str, command: str, result: str, *, is_error: bool | None = None) -> Step:
    """One shell command; most shells of agents report no error flag."""
    return _step(thought, "bash", {"command": command}, result, is_error)


def react(thought: str, tool: str, argument: str, result: str) -> Step:
    """An action whose argument is plain text, as ReAct agents write them."""
    return _step(thought, tool, argument, result, None)


def _step(thought: str, tool: str, arguments: JSON, result: JSON, is_error: bool | None) -> Step:
    output = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return acted(tool, arguments, output, is_error=is_error, thought=thought)


def play(
    task: str, steps: Iterable[Step], *, cuts: Collection[int] = (), tool_roles: Mapping[str, str] | None = None
) -> Played:
    """One run in which every step is followed by a call, so that a text can come after each of them.

    Before the call after each step of `cuts` the run goes through JSON into a session of another client.
    """
    rb = _client(tool_roles)
    session = rb.session(run_id="run", task=task, model=MODEL)
    decision = session.begin_step(StepInput(key="call 0", default_model=MODEL))
    decisions: list[StepDecision] = []
    for index, step in enumerate(steps):
        session.end_step(decision, StepOutcome(model=MODEL, text=step.thought, tool_calls=step.tool_calls))
        if index in cuts:
            kept = json.loads(json.dumps(session.trace.snapshot()))
            session = _client(tool_roles).session(task=task, model=MODEL, snapshot=kept)
        decision = session.begin_step(StepInput(key=f"call {index + 1}", completed=step, default_model=MODEL))
        decisions.append(decision)
    speakers = [one.monitor or "" for one in session.trace.state.injected]
    session.finish()
    return Played(decisions=decisions, speakers=speakers)


def _client(tool_roles: Mapping[str, str] | None) -> ReasonBlocks:
    """Without E-traces: what is said is said by the monitors."""
    return ReasonBlocks(strict=True, step_deadline_ms=20_000, e_traces_enabled=False, tool_roles=tool_roles)
