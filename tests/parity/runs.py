"""The runs that everything steered has to decide alike: golden ones, a long mixed one, and recorded ones."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.backends.local_store import LocalStore
from reasonblocks.backends.starter import STARTER_RULES
from reasonblocks.ports import TelemetrySink
from reasonblocks.testing import Golden, ParityRun, Script, Turn, World, load_golden, tool_call, tool_result
from reasonblocks.traces import RecordedRun, read_runs
from reasonblocks.types import JSON, Pattern, Step, ToolResult, Usage
from tests.parity.long_script import long_script

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
CORPUS = ROOT.parent / "shared" / "corpus" / "dev"
PATIENCE_MS = 60_000
"""A step's deadline: a busy machine decides nothing."""

RECORDED = {
    "agentdojo": "success",
    "intercode_react": "failure",
    "miniswe_deepseek": "success",
    "tau_airline": "failure",
    "whowhen": "failure",
}
"""Files of recorded runs, and the outcome of the one that is taken: the longest, the first of equal ones."""
FEWEST_STEPS, MOST_STEPS = 8, 40

ROUTES = {"FAST": "fast-model", "NORMAL": "plain-model", "SLOW": "strong-model", "SKIP": "last-model"}
LONG: Mapping[str, Mapping[str, Any]] = {
    "system": {},
    "tail": {"placement": "tail", "standing_rules": "run", "e2_requires_signal": True},
    "routed": {"model_routing": ROUTES, "task_profile": "pr_review"},
}
"""The long run's settings, by the name of the run."""
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

NAMES = (
    *(f"golden {path.stem}" for path in sorted(GOLDEN.glob("*.jsonl"))),
    *(f"long {name}" for name in LONG),
    *(f"recorded {name}" for name in RECORDED),
)
"""Every parity run; a recorded one is not there where the corpus is not."""


def parity_runs() -> dict[str, ParityRun]:
    """The runs that are there, by name, in their order."""
    return {run.name: run for run in (*_golden_runs(), *_long_runs(), *_recorded_runs())}


def skip_if_not_recorded(name: str, there: Container[str]) -> None:
    """Skips the test that asks for a recorded run where there is no corpus. Every other run has to be there."""
    if name not in there and name.startswith("recorded ") and not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the repository")


def _golden_runs() -> Iterator[ParityRun]:
    for path in sorted(GOLDEN.glob("*.jsonl")):
        golden = load_golden(path)
        yield ParityRun(
            name=f"golden {path.stem}",
            script=sayable(golden.script),
            client=partial(_golden_client, golden),
            resume_at=golden.resumes,
        )


def _golden_client(golden: Golden, sink: TelemetrySink) -> ReasonBlocks:
    return golden.client(World(golden), sinks=[sink], step_deadline_ms=PATIENCE_MS)


def _long_runs() -> Iterator[ParityRun]:
    for name, settings in LONG.items():
        yield ParityRun(name=f"long {name}", script=sayable(long_script()), client=partial(_long_client, settings))


def _long_client(settings: Mapping[str, Any], sink: TelemetrySink) -> ReasonBlocks:
    return _client(sink, pattern_store=LocalStore(patterns=[*STARTER_RULES, *LESSONS]), **settings)


def _recorded_runs() -> Iterator[ParityRun]:
    for name, outcome in RECORDED.items():
        path = CORPUS / f"{name}.jsonl.gz"
        if path.is_file():
            script = sayable(script_of(_longest(path, outcome)))
            yield ParityRun(name=f"recorded {name}", script=script, client=_client)


def _client(sink: TelemetrySink, **settings: Any) -> ReasonBlocks:
    """The real scorer and monitors."""
    return ReasonBlocks(sinks=[sink], strict=True, step_deadline_ms=PATIENCE_MS, **settings)


def _longest(path: Path, outcome: str) -> RecordedRun:
    runs = (run for run in read_runs(str(path)) if isinstance(run, RecordedRun) and run.outcome == outcome)
    return max((run for run in runs if _fits(run)), key=lambda run: len(run.steps))


def _fits(run: RecordedRun) -> bool:
    """Of a length that takes seconds, and no step but the last without a tool call: there a real agent would end."""
    return FEWEST_STEPS <= len(run.steps) <= MOST_STEPS and all(step.tool_calls for step in run.steps[:-1])


# --- a recorded run as a script


def script_of(run: RecordedRun) -> Script:
    """The run as a scripted model and its tools would go through it. What it calls its model is kept out."""
    turns = [_turn(at, step, usage) for at, (step, usage) in enumerate(zip(run.steps, run.usages, strict=True))]
    if turns[-1].tool_calls:
        turns.append(Turn(text="I leave it there."))
    return Script(turns=tuple(turns), task=run.task or "Go on.", run_id=run.run_id)


def _turn(at: int, step: Step, usage: Usage) -> Turn:
    results = {result.call_id: result for result in step.tool_results}
    ids = [f"call-{at}-{number}" for number in range(len(step.tool_calls))]
    calls = [tool_call(id, _tool_name(call.name), _arguments(call.arguments)) for id, call in zip(ids, step.tool_calls)]
    came = [_result(id, results.get(call.id)) for id, call in zip(ids, step.tool_calls)]
    return Turn(text=step.thought, reasoning=step.reasoning, tool_calls=(*calls,), results=(*came,), usage=usage)


def _result(id: str, known: ToolResult | None) -> ToolResult:
    return tool_result(id, known.output, known.is_error) if known else tool_result(id, "")


def _tool_name(name: str) -> str:
    """As the APIs of models ask for."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"


def _arguments(given: JSON) -> Mapping[str, JSON]:
    return given if isinstance(given, Mapping) else {"input": given}


# --- what every framework can say


UNCOUNTED = Usage(input=100, output=20, cache_read=0, cache_write=0)
"""Tokens of a call whose recording counts none: in some frameworks 0 is what is said of a call without counts."""


def sayable(script: Script) -> Script:
    """The same run in words that every framework has: calls with counts of their tokens, errors or nothing.

    A result that is expressly no error is one of which nothing is said, since some frameworks cannot tell them apart.
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
