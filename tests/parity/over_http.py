"""Steers the same runs embedded and over HTTP, in several ways, and compares every field of every entry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from reasonblocks.client import ReasonBlocks
from reasonblocks.session import SteeringSession
from reasonblocks.types import (
    JSON,
    Pattern,
    RunInfo,
    RunOptions,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
)
from reasonblocks.types.outcomes import recorded_outcome
from reasonblocks_testing._parity import FINAL, Line, run_differences
from reasonblocks_testing._parity_runs import LESSONS, PATIENCE_MS, store_of
from reasonblocks_testing.rb_api import ScriptedRbApi
from reasonblocks_testing.script import Script
from reasonblocks_workbench.traces import RecordedRun


class Repeats:
    """A caller's monitor: the share of steps that only call tools of earlier steps."""

    name, failure_type = "repeats", "repeats"

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        known: dict[str, Any] = dict(memory) if isinstance(memory, Mapping) else {"steps": 0, "tools": []}
        tools = [call.name for call in step.tool_calls]
        again = bool(tools) and {*tools} <= {*known["tools"]}
        at = known["steps"]
        left = {"steps": at + 1, "tools": sorted({*known["tools"], *tools})[:20]}
        return (0.7 if again and at % 5 == 4 else 0.2 * again), left, (at,) if again else ()


class Says(Repeats):
    """The same, with its own text."""

    name, failure_type = "says", "said"

    def say(self, evidence: tuple[int, ...], rung: int) -> str | None:
        return f"The same tools were called again, for instance in step {max(evidence, default=0)} ({rung})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to steer a run: options of the client, and its course.

    `restored`: it continues in its middle from a snapshot read back from JSON. `forked`: from there, a second session
    continues beside it with the same id and other steps. `on_loops`: each step is decided on an event loop of its own.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    restored: bool = False
    forked: bool = False
    on_loops: bool = False


WAYS = (
    Way(name="default"),
    Way(name="own monitors", options={"monitors": (Repeats(), Says()), "weights": {"repeats": 0.3}}),
    Way(name="observe", options={"mode": "observe"}),
    Way(name="restored", restored=True),
    Way(name="forked", forked=True),
    Way(name="async", on_loops=True),
    Way(
        name="settings",
        options={
            "task_profile": "pr_review",
            "weights": {"semantic_loop": 0.5},
            "calibration": {"difficulty_mean": 0.25},
            "patience": "2 of 3",
            "tool_roles": {"bash": "test", "str_replace_editor": "edit"},
        },
    ),
    Way(name="own monitors, restored", options={"monitors": (Says(),)}, restored=True),
)


def embedded(way: Way) -> ReasonBlocks:
    """Return a client that decides everything in this process."""
    return ReasonBlocks(strict=True, step_deadline_ms=PATIENCE_MS, pattern_store=store_of(LESSONS), **way.options)


@contextmanager
def over_http(way: Way, patterns: Sequence[Pattern] | None = None) -> Iterator[ReasonBlocks]:
    """Yield a client of a server, which has the patterns of the embedded client by default."""
    known = store_of(LESSONS).list("default") if patterns is None else patterns
    with (
        ScriptedRbApi(patterns=known) as api,
        ReasonBlocks(
            strict=True,
            step_deadline_ms=PATIENCE_MS,
            base_url=api.url,
            api_key=api.key,
            live_streaming_enabled=False,
            **way.options,
        ) as rb,
    ):
        yield rb


def entries(rb: ReasonBlocks, run: RecordedRun, way: Way) -> list[Line]:
    """Return every entry of a run's step log, with scores and guidance; those of its fork follow."""
    options = RunOptions(agent_name=run.source, task=run.task or None, model=run.model or None)
    main = _Steered(rb.session(options, run_id=run.run_id), run, on_loops=way.on_loops)
    middle, fork = len(run.steps) // 2, None
    for index in range(len(run.steps)):
        if index == middle and (way.restored or way.forked):
            snapshot = json.loads(json.dumps(main.session.trace.snapshot()))
            if way.restored:
                main.session.pause()
                main.continue_in(rb.session(options, snapshot=snapshot))
            if way.forked:
                other = replace(run, steps=(*run.steps[:index], *run.steps[index:][::-1]))
                fork = _Steered(rb.session(options, snapshot=snapshot), other, on_loops=way.on_loops, at=index)
        main.step()
        if fork is not None:
            fork.step()
    return [*main.finish(), *(fork.finish() if fork else ())]


class _Steered:
    """A session that receives the steps of a recorded run."""

    def __init__(self, session: SteeringSession, run: RecordedRun, *, on_loops: bool, at: int = 0) -> None:
        self.session, self._run, self._at, self._on_loops = session, run, at, on_loops
        self._decisions: list[StepDecision] = []
        self._log: list[StepLogEntry] = []

    def continue_in(self, session: SteeringSession) -> None:
        self._log += self.session.step_log
        self.session = session

    def step(self) -> None:
        """Decide the next call, and report the recorded answer."""
        done = self._run.steps[self._at - 1] if self._at else None
        given = StepInput(key=f"call-{self._at}", completed=done, default_model=self._run.model)
        decision = asyncio.run(self.session.abegin_step(given)) if self._on_loops else self.session.begin_step(given)
        self._decisions.append(decision)
        step, usage = self._run.steps[self._at], self._run.usages[self._at]
        answer = StepOutcome(
            model="agent", usage=usage, text=step.thought, reasoning=step.reasoning, tool_calls=step.tool_calls
        )
        self.session.end_step(decision, answer)
        self._at += 1

    def finish(self) -> list[Line]:
        self.session.finish(recorded_outcome(self._run.outcome), completed=self._run.steps[-1])
        log = [*self._log, *self.session.step_log]
        lines = [_line(entry, decision, entry.step) for entry, decision in zip(log, self._decisions, strict=True)]
        if self.session.final is not None and self.session.final_decision is not None:
            lines.append(_line(self.session.final, self.session.final_decision, FINAL))
        return lines


def _line(entry: StepLogEntry, decision: StepDecision, number: JSON) -> Line:
    said: Line = {"guidance": decision.guidance, "standing_rules": decision.standing_rules}
    return {**entry.as_dict(), **said, "scores": dict(decision.scores), "entry": number}


def _texts(line: Line) -> list[JSON]:
    """Return the texts that the agent was told with an entry's call, or that were withheld."""
    texts: Any = line
    return [*texts["intervention_texts"], *texts["withheld_texts"]]


@dataclass(slots=True, kw_only=True)
class Compared:
    """The runs, entries and texts compared in one way, and the differences."""

    runs: int = 0
    entries: int = 0
    texts: int = 0
    differences: list[str] = field(default_factory=list)


def compared(way: Way, runs: Iterable[RecordedRun]) -> Compared:
    """Steer the runs in one way by two clients, embedded and over HTTP, and return the differences."""
    found = Compared()
    with embedded(way) as here, over_http(way) as there:
        for run in runs:
            expected = entries(here, run, way)
            given = entries(there, run, way)
            found.runs += 1
            found.entries += len(expected)
            found.texts += sum(len(_texts(line)) for line in expected)
            found.differences += run_differences(f"{way.name}, {run.file}, {run.run_id}", given, expected)
    return found


def recorded(script: Script) -> RecordedRun:
    """Return a script as a recorded run."""
    return RecordedRun(
        run_id=script.run_id,
        steps=tuple(turn.step for turn in script.turns),
        usages=tuple(turn.usage for turn in script.turns),
        file="script",
        line=1,
        source="agent",
        task=script.task,
        model=script.model,
    )


def shared_out(runs: Iterable[RecordedRun], ways: tuple[Way, ...] = WAYS) -> Mapping[str, list[RecordedRun]]:
    """Return the runs by the name of their way, each way in turn."""
    found: dict[str, list[RecordedRun]] = {way.name: [] for way in ways}
    for number, run in enumerate(runs):
        found[ways[number % len(ways)].name].append(run)
    return found
