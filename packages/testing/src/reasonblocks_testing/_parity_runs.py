"""Parity runs that need no checkout: a long run that is part of the package, and recorded runs from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.client import ReasonBlocks
from reasonblocks.exceptions import RecordError
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import JSON, Note, Pattern, Step, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs

from ._parity import ParityRun
from ._scripted import ScriptedMailbox
from .script import Script, Turn, long_script, tool_call, tool_result

PATIENCE_MS = 60_000
"""The deadline of a step, so long that a busy machine changes no decision."""

ROUTES = {"FAST": "fast-model", "NORMAL": "plain-model", "SLOW": "strong-model", "SKIP": "last-model"}
LONG: Mapping[str, Mapping[str, Any]] = {
    "system": {"placement": "system"},
    "tail": {"placement": "tail", "standing_rules": "run", "e2_requires_signal": True},
    "routed": {"model_routing": ROUTES, "task_profile": "pr_review"},
    "noted": {},
}
"""Settings of the long run, by the run's name."""
NOTES = {
    0: Note(id="first", text="Start with the parser."),
    3: Note(id="second", text="Leave the fixtures alone."),
    4: Note(id="third", text="The clock is in UTC."),
}
"""The notes of the run "noted", by the call before which each arrives."""
LESSONS = (
    Pattern(
        id="clock",
        tier="e1",
        org_id="default",
        fields={"observation": "The tests pin the clock to UTC.", "recommended_action": "Compare dates in UTC."},
        exemplars=("The date is wrong again; I run the failing test of the parser.",),
        gate_threshold=0.3,
    ),
    Pattern(
        id="loop",
        tier="e2",
        fields={
            "diagnosis": "The same command is run without a change.",
            "intervention": "Read the assertion before the next run.",
            "anti_pattern": "Running the tests once more.",
        },
        exemplars=("Same again: I run the tests of the parser.",),
        gate_threshold=0.2,
    ),
)


def long_runs() -> Iterator[ParityRun]:
    """Yield the long run of sixty steps once with each of the settings. Scorer, monitors and patterns are real."""
    for name, settings in LONG.items():
        notes = NOTES if name == "noted" else {}
        client = partial(_client, LESSONS, settings, notes=notes)
        yield ParityRun(name=f"long {name}", script=sayable(long_script()), client=client)


def recorded_runs(path: str | os.PathLike[str]) -> Iterator[ParityRun | str]:
    """Yield the runs of a file in any format that `reasonblocks replay` reads, or the reason why one is left out."""
    file = os.fspath(path)
    for run in read_runs(file):
        if isinstance(run, RecordError):
            yield str(run)
        elif (silent := _silent_step(run)) is not None:
            yield f"{file}: run {run.run_id!r} is left out: step {silent} calls no tool, and a real agent ends there"
        else:
            yield recorded_run(run)


def recorded_run(run: RecordedRun) -> ParityRun:
    """Return a recorded run as a parity run with default settings."""
    return ParityRun(name=f"recorded {run.run_id}", script=sayable(script_of(run)), client=partial(_client, (), {}))


def _silent_step(run: RecordedRun) -> int | None:
    """Return the first step before the last that calls no tool, where a real agent would end."""
    return next((at for at, step in enumerate(run.steps[:-1]) if not step.tool_calls), None)


def _client(
    lessons: tuple[Pattern, ...],
    settings: Mapping[str, Any],
    sink: TelemetrySink,
    notes: Mapping[int, Note] = MappingProxyType({}),
    **options: Any,
) -> ReasonBlocks:
    """Return a client with the real scorer and monitors, every starter pattern, and without the user's patterns.

    `options` take precedence.
    """
    given: dict[str, Any] = {
        "sinks": [sink],
        "strict": True,
        "step_deadline_ms": PATIENCE_MS,
        "pattern_store": store_of(lessons),
        "mailbox": ScriptedMailbox(notes) if notes else None,
    }
    return ReasonBlocks(**{**given, **settings, **options})


def store_of(lessons: tuple[Pattern, ...]) -> LocalStore:
    """Return a store of every starter pattern and these lessons."""
    return LocalStore(patterns=[*(replace(pattern, off=False) for pattern in starter_patterns()), *lessons])


# --- a recorded run as a script


def script_of(run: RecordedRun) -> Script:
    """Return the run as a script for a model and its tools, without the recorded model name."""
    turns = [_turn(at, step, usage) for at, (step, usage) in enumerate(zip(run.steps, run.usages, strict=True))]
    if not turns or turns[-1].tool_calls:
        turns.append(Turn(text="I leave it there."))
    return Script(turns=tuple(turns), task=run.task or "Go on.", run_id=run.run_id)


def _turn(at: int, step: Step, usage: Usage) -> Turn:
    results = {result.call_id: result for result in step.tool_results}
    ids = [f"call-{at}-{number}" for number in range(len(step.tool_calls))]
    calls = [tool_call(id, _tool_name(call.name), _arguments(call.arguments)) for id, call in zip(ids, step.tool_calls)]
    answered = [_result(id, results.get(call.id)) for id, call in zip(ids, step.tool_calls)]
    return Turn(text=step.thought, reasoning=step.reasoning, tool_calls=(*calls,), results=(*answered,), usage=usage)


def _result(id: str, known: ToolResult | None) -> ToolResult:
    return tool_result(id, known.output, known.is_error) if known else tool_result(id, "")


def _tool_name(name: str) -> str:
    """Return a name that model APIs accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"


def _arguments(given: JSON) -> Mapping[str, JSON]:
    return given if isinstance(given, Mapping) else {"input": given}


# --- scripts that every framework can express


UNCOUNTED = Usage(input=100, output=20, cache_read=0, cache_write=0)
"""Token counts of a call that has none recorded, because some frameworks report missing counts as 0."""


def sayable(script: Script) -> Script:
    """Return the script in a form that every framework can express.

    Every call has token counts, and `is_error` is True or None, because some frameworks cannot tell None from False.
    """
    return replace(script, turns=tuple(map(_sayable, script.turns)))


def _sayable(turn: Turn) -> Turn:
    used = turn.usage
    usage = Usage(
        input=used.input or UNCOUNTED.input,
        output=used.output or UNCOUNTED.output,
        cache_read=used.cache_read or UNCOUNTED.cache_read,
        cache_write=used.cache_write or UNCOUNTED.cache_write,
    )
    results = (replace(result, is_error=result.is_error or None) for result in turn.results)
    return replace(turn, usage=usage, results=tuple(results))
