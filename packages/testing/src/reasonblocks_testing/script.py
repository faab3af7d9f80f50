"""Scripts: the answers of a model and the results of its tools, which a harness plays to a real agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reasonblocks.types import Step, StepOutcome, ToolCall, ToolResult, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One model call of a script: the model's answer and the results of the tools that it calls.

    - `text`: the visible answer; `reasoning`: the thinking beside it. Both may be empty.
    - `tool_calls`: the calls in the answer, in order; parallel calls are several in one turn. Empty: the run ends.
    - `results`: one `ToolResult` for each call, with the same `call_id`. With `is_error=True` the tool must fail in
      the framework's own way; otherwise the output is an ordinary result.
    - `usage`: the tokens that the model reports for this call; None for a count that it does not report.
    - `error`: an exception that the model raises instead of answering.
    - `failures`: the number of attempts that fail before the one that answers. The harness raises an error that its
      framework retries.

    >>> Turn(
    ...     text="I run the tests.",
    ...     tool_calls=(tool_call("c0", "run_tests"),),
    ...     results=(tool_result("c0", "3 failed", is_error=False),),
    ... )
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
        """The completed step of this turn, as an adapter should read it from the history."""
        return Step(thought=self.text, reasoning=self.reasoning, tool_calls=self.tool_calls, tool_results=self.results)

    def outcome(self, model: str) -> StepOutcome:
        """Return the outcome of this call, as an adapter should report it after `model` answered."""
        return StepOutcome(
            model=model, usage=self.usage, text=self.text, reasoning=self.reasoning, tool_calls=self.tool_calls
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One whole run of an agent: its task and all answers of its model.

    - `turns`: one `Turn` for each model call, in order. A real agent ends with the first one that calls no tool, or
      that raises its `error`; only after a second look it continues with the next.
    - `task`: the user's message that starts the run.
    - `system_prompt`: the agent's own system prompt; None for an agent without one.
    - `model`: the name of the agent's own model. All model names in the suite end in `-model`.
    - `run_id`: the id that the run must have. If the framework makes its own ids, the harness puts this one in `Ran`.
    - `agent_name`: the agent's name in its framework.

    >>> Script(turns=(Turn(text="Done."),), task="Say that you are done.")
    """

    turns: tuple[Turn, ...]
    task: str = "Fix the failing tests."
    system_prompt: str | None = "You fix bugs."
    model: str = "agent-model"
    run_id: str = "run"
    agent_name: str = "fixer"

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that the script calls, each once. The harness gives its agent tools of these names."""
        return tuple(dict.fromkeys(call.name for turn in self.turns for call in turn.tool_calls))

    @property
    def results(self) -> Mapping[str, ToolResult]:
        """The result of each tool call, by the call's id."""
        return {result.call_id: result for turn in self.turns for result in turn.results}


def tool_call(id: str, name: str, arguments: Mapping[str, Any] | None = None) -> ToolCall:
    """Return a tool call with a copy of the arguments; None means no arguments."""
    return ToolCall(id=id, name=name, arguments=dict(arguments or {}))


def tool_result(call_id: str, output: str, is_error: bool | None = None, name: str = "") -> ToolResult:
    """Return the result of the call `call_id`; `is_error=None` leaves open whether it is an error."""
    return ToolResult(call_id=call_id, output=output, is_error=is_error, name=name)


STEPS = 60
"""Steps of the long script, without the final answer."""
HARD = range(16, 40)
"""Steps in which the tests fail, and the agent is unsure and repeats itself."""

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
    """Return a script of sixty steps and a final answer."""
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
