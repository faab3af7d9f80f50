"""What a scripted model says and what scripted tools give back: the world that every adapter is tried in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..types import Step, StepOutcome, ToolCall, ToolResult, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One model call: what it says, and what the tools that it calls give back.

    `error` is raised instead of an answer. `failures` attempts fail before the one that answers: a framework that
    retries calls the model so many times more.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: Exception | None = None
    failures: int = 0

    @property
    def step(self) -> Step:
        return Step(thought=self.text, reasoning=self.reasoning, tool_calls=self.tool_calls, tool_results=self.results)

    def outcome(self, model: str) -> StepOutcome:
        return StepOutcome(
            model=model, usage=self.usage, text=self.text, reasoning=self.reasoning, tool_calls=self.tool_calls
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole run. The last turn calls no tool, so that a real agent ends there.

    `agent_name` is the agent's name in its framework.
    """

    turns: tuple[Turn, ...]
    task: str = "Fix the failing tests."
    system_prompt: str | None = "You fix bugs."
    model: str = "agent-model"
    run_id: str = "run"
    agent_name: str = "fixer"

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the agent needs, each once."""
        return tuple(dict.fromkeys(call.name for turn in self.turns for call in turn.tool_calls))

    @property
    def results(self) -> Mapping[str, ToolResult]:
        """What each call gives back, by its id."""
        return {result.call_id: result for turn in self.turns for result in turn.results}


def tool_call(id: str, name: str, arguments: Mapping[str, Any] | None = None) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=dict(arguments or {}))


def tool_result(call_id: str, output: str, is_error: bool | None = None, name: str = "") -> ToolResult:
    return ToolResult(call_id=call_id, output=output, is_error=is_error, name=name)


STEPS = 60
HARD = range(16, 40)
"""Steps in which the tests fail and the agent doubts and repeats itself."""

EASY_TURNS = (
    ("I read the parser.", "", ("read_file",), "def parse(text): ..."),
    ("I make the change.", "", ("edit_file",), "ok"),
    ("I run the tests.", "", ("bash",), "12 passed in 0.3s"),
    ("I look at both callers.", "", ("read_file", "search"), "parse(line)"),
    ("", "The parser next.", ("read_file",), "zażółć gęślą 日本語 🧪 \u202e x"),
    ("", "", ("bash", "bash", "read_file"), "ok"),
)
HARD_TURNS = (
    ("Maybe the date is wrong; perhaps I should assume UTC, but I am unsure.", "", ("bash",), "Error: 3 failed"),
    ("Same again: the test fails with an unexpected error, I run the tests of the parser.", "", ("bash",), "3 failed"),
    ("", "Hmm, strange: it might be the cache, or it could be the clock. I cannot tell.", ("edit_file",), "denied"),
    ("Same again: the test fails with an unexpected error, I run the tests of the parser.", "", ("bash",), "3 failed"),
    ("", "", ("bash", "read_file"), "Traceback: KeyError: 'naïve'"),
    ("The change is complete, although the tests failed.", "", ("edit_file",), "ok"),
)


def long_script() -> Script:
    """Return a script of sixty steps and an answer."""
    last = Turn(text="All tests pass now: 12 passed, 0 failed.", usage=Usage(input=5_000, output=12))
    return Script(turns=(*_turns(), last), task="Fix the failing tests in src/app.py – żółć.", run_id="long")


def _turns() -> Iterator[Turn]:
    for at in range(STEPS):
        kinds = HARD_TURNS if at in HARD else EASY_TURNS
        text, reasoning, tools, output = kinds[at % len(kinds)]
        yield Turn(
            text=text,
            reasoning=reasoning,
            tool_calls=tuple(_call(at, number, name) for number, name in enumerate(tools)),
            results=tuple(_result(at, number, output) for number in range(len(tools))),
            usage=Usage(input=100 + at, output=20, cache_read=50 + at, cache_write=at % 7),
        )


def _call(at: int, number: int, name: str) -> ToolCall:
    repeated = 0 if at in HARD else at % 5
    arguments = {"command": f"run {repeated}", "path": "src/app.py", "deep": {"lines": [1, 2.5, None, True, "ü"]}}
    return tool_call(f"call-{at}-{number}", name, arguments)


def _result(at: int, number: int, output: str) -> ToolResult:
    """Return a call's result; in hard steps call `at % 3` is marked as an error. No call is marked as a success."""
    return tool_result(f"call-{at}-{number}", output, is_error=True if at in HARD and at % 3 == number else None)
