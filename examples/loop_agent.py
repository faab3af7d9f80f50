"""The small agent of the examples: its tools and the script of its model.

The tools depend on neither steering nor a provider. The scripted model runs the same tests again and
again until it reads a monitor's text, and then follows it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reasonblocks import SteeringSession, ToolCall, ToolResult
from reasonblocks.render import FRAME
from reasonblocks.types import JSON, AdviceRequest, StepLogEntry, Usage
from reasonblocks_testing import Script, Turn, tool_call
from reasonblocks_testing.server import Asked

SYSTEM_PROMPT = "You fix bugs. You can read files and run the tests."
TASK = "Fix the failing tests."
FILES = {"tests/test_prices.py": 'def test_round_price():\n    assert cents("12.5") == 1250\n'}


def read_file(path: str) -> str:
    return FILES[path]


def run_tests() -> str:
    return "tests/test_prices.py::test_round_price FAILED: 1205 != 1250"


TOOLS: Mapping[str, Callable[..., str]] = {"read_file": read_file, "run_tests": run_tests}
DESCRIPTIONS = {"read_file": "Reads a file of the repository.", "run_tests": "Runs all tests of the repository."}
PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "read_file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "run_tests": {"type": "object", "properties": {}},
}


def arguments_of(text: str) -> JSON:
    """Parse the arguments of a tool call. Models may send invalid JSON: it is returned as text."""
    try:
        arguments: JSON = json.loads(text)
    except ValueError:
        return text
    return arguments


def run_tools(calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
    """Run the model's tool calls. A tool that fails gives a result with `is_error=True`, for steering and the model."""
    return tuple(map(_run_tool, calls))


def _run_tool(call: ToolCall) -> ToolResult:
    arguments: Any = call.arguments  # as the model sent them: not always an object
    try:
        output = TOOLS[call.name](**arguments)
    except Exception as exc:  # noqa: BLE001 - the model reads any error of a tool
        return ToolResult(call_id=call.id, name=call.name, output=f"{type(exc).__name__}: {exc}", is_error=True)
    return ToolResult(call_id=call.id, name=call.name, output=output, is_error=False)


# --- the scripted model


def says(at: int, text: str, name: str, **arguments: str) -> Turn:
    usage = Usage(input=400 + 60 * at, output=30, cache_read=300 if at else 0)
    return Turn(text=text, tool_calls=(tool_call(f"call_{at}", name, arguments),), usage=usage)


SCRIPT = Script(
    task=TASK,
    system_prompt=SYSTEM_PROMPT,
    turns=(
        says(0, "I run the tests to see what fails.", "run_tests"),
        says(1, "One price test fails. Perhaps that was bad luck, so I run the tests again.", "run_tests"),
        says(2, "It fails again. Once more, in case the machine was busy.", "run_tests"),
        says(3, "Still the same. One of these runs has to pass.", "run_tests"),
        says(4, "The same again. I try it a last time.", "run_tests"),
        says(5, "I have had that result enough: I read the test.", "read_file", path="tests/test_prices.py"),
        Turn(
            reasoning="12.5 has one decimal only.",
            text="The test fails because cents() reads the 5 of 12.5 as 5 cents: decimals have to be filled up to two.",
            usage=Usage(input=700, output=40, cache_read=300, reasoning=12),
        ),
    ),
)

AGAIN = Turn(text="It holds: cents() has to fill up the decimals.", usage=Usage(input=800, output=15, cache_read=700))
WITH_A_LOOK = replace(SCRIPT, turns=(*SCRIPT.turns, AGAIN))
"""The same run with one turn more, for the examples in which its end gets a second look."""


def advise(request: AdviceRequest) -> str:
    """Return advice for a stuck run; in place of a model that reads `request.steps`."""
    return "Read tests/test_prices.py before you run it again."


# --- printing a run


def print_levers(step_log: Iterable[StepLogEntry]) -> None:
    """Print each call of a run: its model, its route or effort if it has one, and what it was told."""
    for entry in step_log:
        lever = entry.route or entry.effort
        print(f"call {entry.step}: {entry.model_id}{f' ({lever})' * bool(lever)}")
        for source, text in zip(entry.injection_sources, entry.intervention_texts):
            if source != "E3Injection":
                print(textwrap.indent(text, "  | "))


def story(session: SteeringSession, requests: Sequence[Asked]) -> Iterator[str]:
    """Yield lines about a run: for each call its state and difficulty, the guidance that it got, and its tool calls."""
    for entry, request in zip(session.step_log, requests):
        score = "" if entry.difficulty is None else f", difficulty of the step before {entry.difficulty:.2f}"
        yield f"call {entry.step}: {entry.fsm_state}{score}"
        _, frame, guidance = request.texts[-1].partition(FRAME)
        if frame:
            yield textwrap.indent(frame + guidance, "  | ", lambda _: True)
        yield f"  -> {', '.join(entry.tool_calls) or 'answers'}"
    yield f"{session.outcome}: {len(session.step_log)} calls, {len(requests)} requests"
