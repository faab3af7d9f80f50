"""The form of a completed step: flat, as older clients send it, or with its calls and results."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ..types import JSON, Step, ToolCall, ToolResult
from ..util.json import storable_json
from ._base import Request


class WireCall(Request):
    """A tool call."""

    id: str = ""
    name: str = ""
    arguments: Any = Field(default_factory=dict)  # any JSON

    @model_serializer(mode="wrap")
    def _whole(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keep arguments of null, which `exclude_none` would turn into none at all, and those into an empty object."""
        return {**serialize(self), "arguments": self.arguments}


class WireResult(Request):
    """The result of a tool call."""

    call_id: str = ""
    output: str = ""
    name: str = ""
    is_error: bool | None = None


class WireStep(Request):
    """A completed step: flat, as older clients send it, or with its calls and results, which take precedence."""

    thought: str = ""
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None
    observation_is_error: bool | None = None
    reasoning: str = ""
    tool_calls: list[WireCall] | None = None
    tool_results: list[WireResult] | None = None
    user_text: str = ""

    @classmethod
    def of(cls, step: Step) -> WireStep:
        """Return the step with its calls and results; ids and times are left out where nothing reads them."""
        return cls(
            thought=step.thought,
            reasoning=step.reasoning,
            tool_calls=[WireCall(id=call.id, name=call.name, arguments=call.arguments) for call in step.tool_calls],
            tool_results=[
                WireResult(call_id=result.call_id, output=result.output, name=result.name, is_error=result.is_error)
                for result in step.tool_results
            ],
            user_text=step.user_text,
        )

    def step(self) -> Step:
        """Return the step."""
        return Step(
            thought=self.thought,
            reasoning=self.reasoning,
            tool_calls=self._calls(),
            tool_results=self._results(),
            user_text=self.user_text,
        )

    def _calls(self) -> tuple[ToolCall, ...]:
        if self.tool_calls is not None:
            return tuple([ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in self.tool_calls])
        if not self.action:
            return ()
        return (ToolCall(id=FLAT_ID, name=self.action, arguments=flat_arguments(self.action_input)),)

    def _results(self) -> tuple[ToolResult, ...]:
        if self.tool_results is not None:
            return tuple([ToolResult(**dict(result)) for result in self.tool_results])
        if not self.observation and self.observation_is_error is None:
            return ()
        output, failed = self.observation or "", self.observation_is_error
        return (ToolResult(call_id=FLAT_ID, name=self.action or "", output=output, is_error=failed),)


FLAT_ID = "call"
"""The id of the only call of a flat step."""


def flat_arguments(text: str | None) -> JSON:
    """Return the object that a flat step's `action_input` contains; any other text under the key `input`."""
    if not text:
        return {}
    try:
        value = storable_json(text) if text[:1] == "{" else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"input": text}
