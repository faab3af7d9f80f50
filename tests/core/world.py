"""The scripted world of these tests: the only place that imports the testing package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.requests import Retrieve
from reasonblocks.session import SteeringSession
from reasonblocks.types import (
    JSON,
    ETrace,
    Evaluation,
    Pattern,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
    ToolCall,
    ToolResult,
    Usage,
)
from reasonblocks.util.json import compact
from reasonblocks_testing import (
    Golden,
    RecordingSink,
    ScriptedEvaluator,
    ScriptedReasonBlocks,
    ScriptedStore,
    World,
    load_golden,
    scripted_scorer,
)

__all__ = [
    "MODEL", "QUIET", "Golden", "Hang", "RecordingSink", "Scores", "ScriptedEvaluator", "ScriptedReasonBlocks",
    "ScriptedStore", "World", "arun", "begin", "called", "client", "code_bytes", "final", "found", "golden_files",
    "hanging", "load_golden", "longest_gap", "nothing", "pattern", "printed", "real", "run", "scripted_scorer",
    "speaks", "step", "text_bytes", "through_json",
]  # fmt: skip

MODEL = "agent-model"
QUIET = Evaluation(scores={"semantic_loop": 0.0})


def golden_files() -> list[Path]:
    return sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def step(number: int, thought: str | None = None, output: str = "fine", is_error: bool | None = None) -> Step:
    """Completed step `number`, with one tool call `c<number>`."""
    return Step(
        thought=f"thought-{number}-" if thought is None else thought,
        tool_calls=(ToolCall(id=f"c{number}", name="read_file", arguments={"path": f"f{number}"}),),
        tool_results=(ToolResult(call_id=f"c{number}", output=output, is_error=is_error),),
    )


def speaks(text: str, *fired: str, **more: Any) -> Evaluation:
    """An evaluation that wants to inject a text."""
    fired = fired or ("semantic_loop",)
    given = {"fired": fired, "scores": dict.fromkeys(fired, 0.9), "composite": 0.3, **more}
    return Evaluation(inject=True, intervention_text=text, injection_path="monitor", **given)


def pattern(id: str, **more: Any) -> Pattern:
    """A pattern of the tier that its id starts with."""
    fields: Mapping[str, dict[str, JSON]] = {
        "e1": {"observation": f"{id} was seen", "recommended_action": f"do as {id} says"},
        "e2": {"diagnosis": f"{id} is going on", "intervention": f"try what {id} says", "anti_pattern": f"not {id}"},
        "e3": {"instruction": f"{id} always holds"},
    }
    tier = id[:2]
    given = {"tier": tier, "fields": fields[tier], "org_id": "default" if tier == "e1" else None, **more}
    return Pattern(id=id, **given)


def found(*ids: str, similarity: float = 0.9) -> list[ETrace]:
    return [ETrace(pattern=pattern(id), similarity=similarity) for id in ids]


def nothing(request: Retrieve) -> Sequence[ETrace]:
    """A store that has no pattern."""
    return ()


def client(
    *evaluations: Evaluation | None, store: Callable[[Retrieve], Sequence[ETrace]] = nothing, **options: Any
) -> ScriptedReasonBlocks:
    """A strict client whose evaluator says these evaluations, and is quiet for 100 more steps."""
    given = {"strict": True, "step_deadline_ms": 20_000, "pattern_store": ScriptedStore(store), **options}
    return ScriptedReasonBlocks(evaluator=ScriptedEvaluator([*evaluations, *[QUIET] * 100]), **given)


def real(**options: Any) -> ReasonBlocks:
    """A strict client with the built-in scorer and monitors, and no pattern."""
    return ReasonBlocks(**{"strict": True, "pattern_store": LocalStore(), "step_deadline_ms": 20_000, **options})


def begin(session: SteeringSession, number: int, key: str | None = None, model: str = MODEL) -> StepDecision:
    """The decision for call `number`, from completed step `number - 1`."""
    completed = step(number - 1) if number else None
    return session.begin_step(StepInput(key=key, completed=completed, default_model=model))


def called(number: int, tokens: int = 10) -> StepOutcome:
    """What call `number` did."""
    done = step(number)
    return StepOutcome(
        model=MODEL, usage=Usage(input=tokens, output=2), text=done.thought, tool_calls=done.tool_calls, latency_ms=3.0
    )


def run(session: SteeringSession, calls: int, start: int = 0) -> list[StepDecision]:
    """Whole calls `start` to `calls - 1`."""
    decisions = []
    for number in range(start, calls):
        decision = begin(session, number)
        session.end_step(decision, called(number))
        decisions.append(decision)
    return decisions


async def arun(session: SteeringSession, calls: int) -> None:
    """Whole calls 0 to `calls - 1` on an event loop."""
    for number in range(calls):
        completed = step(number - 1) if number else None
        decision = await session.abegin_step(StepInput(completed=completed, default_model=MODEL))
        session.end_step(decision, called(number))


def final(session: SteeringSession) -> StepLogEntry:
    """The entry of the last step of a run that has ended."""
    assert session.final is not None
    return session.final


def printed(code: str, *given: object) -> str:
    """The output of a program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, given)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def longest_gap(work: Awaitable[object]) -> float:
    """The longest time in which the event loop did nothing else, while it did the work."""
    gaps = [0.0]

    async def beat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.002)
            gaps.append(time.perf_counter() - before)

    heart = asyncio.ensure_future(beat())
    await asyncio.sleep(0.02)
    await work
    heart.cancel()
    return max(gaps)


def text_bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def code_bytes(value: JSON) -> int:
    """Bytes of the compact form."""
    return len(compact(value).encode("utf-8", "surrogatepass"))


def through_json(snapshot: Mapping[str, JSON]) -> dict[str, Any]:
    """A snapshot as another process reads it."""
    import json

    read: dict[str, Any] = json.loads(json.dumps(snapshot))
    return read


class Hang:
    """A callable that does not come back until it is released."""

    def __init__(self) -> None:
        self.calls = 0
        self._released = threading.Event()

    def __call__(self, *given: object) -> Any:
        self.calls += 1
        self._released.wait(30)

    def release(self) -> None:
        self._released.set()


class Scores:
    """A scorer that keeps the steps that it sees, and finds each as hard."""

    def __init__(self) -> None:
        self.seen: list[Step] = []

    def __call__(self, step: Step) -> float:
        self.seen.append(step)
        return 0.4


@contextmanager
def hanging() -> Iterator[Hang]:
    hang = Hang()
    try:
        yield hang
    finally:
        hang.release()
