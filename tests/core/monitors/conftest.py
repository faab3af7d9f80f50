"""Steps and runs written by hand, for all tests of the monitors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.monitors import resolve_weights
from reasonblocks.types import Evaluation, Injected, Memories, Step, ToolCall, ToolResult
from reasonblocks_workbench.calibration import shipped
from tests.core.monitors.asking import evaluate

TASK = "Fix the date parser so that leap years are accepted"


def act(name: str, result: str, *, is_error: bool | None = None, thought: str = "", **arguments: str | int) -> Step:
    """One step with one tool call."""
    return Step(
        thought=thought,
        tool_calls=(ToolCall(id="c", name=name, arguments=dict(arguments)),),
        tool_results=(ToolResult(call_id="c", output=result, name=name, is_error=is_error),),
    )


def play(steps: Sequence[Step], injected: tuple[Injected, ...] = (), task: str = TASK) -> list[Evaluation]:
    """The evaluation of each step of a run."""
    memories: Memories = {}
    said = []
    for index, step in enumerate(steps):
        evaluation, memories = evaluate(step, index, memories, injected, task, resolve_weights("coding"), shipped())
        said.append(evaluation)
    return said


@pytest.fixture(name="act")
def _act() -> Callable[..., Step]:
    return act


@pytest.fixture(name="play")
def _play() -> Callable[..., list[Evaluation]]:
    return play


@pytest.fixture(name="fired")
def _fired() -> Callable[[Sequence[Step]], set[str]]:
    """The names of the monitors that fired anywhere in a run."""
    return lambda steps: {name for evaluation in play(steps) for name in evaluation.fired}
