"""What a scripted model says and what scripted tools give back: the world that every adapter is tried in."""

from __future__ import annotations

from collections.abc import Mapping
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
