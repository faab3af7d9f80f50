"""Whatever a step holds, monitors and scorer judge it in bounded time and without a fault."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from reasonblocks.account.observe import observe
from reasonblocks.engine import scoring
from reasonblocks.monitors.calibration import SHIPPED_LEVEL
from reasonblocks.types import JSON, Account, Evaluation, Patience, ScoreMemory, Step, ToolCall, ToolResult
from tests.core.monitors.conftest import requests, settle
from tests.core.steps import acted

TASK = "Fix the date parser so that leap years are accepted"
SOON = 0.15
"""Seconds, at best of three."""
LONG = 16_000


def step(arguments: JSON = "", said: str = "", *, name: str = "bash", thought: str = "") -> Step:
    return acted(name, arguments, said, thought=thought)


def judge(one: Step, task: str = TASK) -> tuple[Evaluation, float]:
    """Judge a step twice, as the second time finds it in the account; return the second evaluation and difficulty."""
    request = requests([one, one], task=task, patience=Patience(rung="2 of 3"))[-1]
    json.dumps(request.memories, allow_nan=False)
    difficulty = scoring.score(one, ScoreMemory(), SHIPPED_LEVEL, request.account.did, easy=False)[0]
    return settle(request), difficulty


def is_judged(one: Step, task: str = TASK) -> bool:
    """Return True if all numbers are between 0 and 1 and every monitor that fired has a score."""
    evaluation, difficulty = judge(one, task)
    numbers = [difficulty, evaluation.composite or 0.0, *evaluation.scores.values()]
    return all(0 <= number <= 1 for number in numbers) and set(evaluation.fired) <= set(evaluation.scores)


def best(judged: Callable[[], object]) -> float:
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        judged()
        taken.append(time.perf_counter() - began)
    return min(taken)


REPEATED = (
    "cat <<", "cat <<a ", "cat <<'a", "tee <<'a'\n", "\n\n", "\n ", "; ", "sed -", "sed -a ", "perl -i", "open('w",
    "a-", "a.", "/", "a/", "~/", "a_", "_/", "a-a/", "0x/", "-1", "1:", "1.", "x: ", "Error: ", "xError", "ts= ",
    "not found ", "no x ", "deadbeef-", "tmp_", "is 1 ", "i ", "中", "\x00", "\ud800", "> ", "= ", "x",
)  # fmt: skip


@pytest.mark.parametrize("part", REPEATED)
def test_no_text_keeps_a_pattern_busy(part: str) -> None:
    text = (part * LONG)[:LONG]
    red = f"Traceback (most recent call last)\n{text}"
    for one in (step({"command": text}, text, thought=text), step(text, red, name="run_tests")):
        assert best(partial(judge, one, text)) < SOON


CALLS = 10_000
MANY: dict[str, Step] = {
    "calls": Step(tool_calls=tuple(ToolCall(id="c", name="sh", arguments=f"ls a{n}/b.py " * 9) for n in range(CALLS))),
    "results": Step(tool_results=tuple(ToolResult(call_id="c", output="Error: no " * 50) for _ in range(CALLS))),
    "arguments": step({f"k{n}": n for n in range(CALLS)}),
    "nothings": step([""] * (100 * CALLS)),
    "lists": step([[[]] * CALLS] * CALLS),
    "characters": step({"command": "x " * 500_000}, "y " * 500_000, thought="z " * 500_000),
}


@pytest.mark.parametrize("one", MANY.values(), ids=MANY)
def test_no_number_of_things_takes_long(one: Step) -> None:
    assert best(lambda: observe(one, Account(), 0, {})) < SOON


def nested(levels: int) -> JSON:
    value: JSON = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


ODD: dict[str, object] = {
    "nothing": None,
    "a number": 5,
    "no numbers": {"a": float("nan"), "b": float("-inf")},
    "keys that are no text": {1: 2, "a": 3, None: 4},
    "more digits than Python prints": {"a": [10**5_000]},
    "bytes": {"a": b"\xff"},
    "half a surrogate pair": {"a\ud800": "\udfff"},
    "NUL": {"\0": "\0"},
    "depth": nested(100_000),
}


@pytest.mark.parametrize("arguments", ODD.values(), ids=ODD)
@pytest.mark.parametrize("said", ["", "\ud800 Error: \0"])
def test_no_odd_arguments_are_a_fault(arguments: JSON, said: str) -> None:
    assert is_judged(step(arguments, said, name="\ud800\0", thought=said))


def test_a_step_without_anything_is_no_fault() -> None:
    assert is_judged(Step(), "")
    assert not judge(Step(), "")[0].inject


def test_a_task_of_a_megabyte_takes_no_longer() -> None:
    assert best(lambda: judge(step("ls"), "купить слона " * 80_000)) < SOON
