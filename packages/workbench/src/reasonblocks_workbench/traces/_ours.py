"""Reads our own format: JSON lines, one run a line, with flat steps or steps with tool calls and results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from reasonblocks.exceptions import RecordError
from reasonblocks.messages.content import output_of
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage
from reasonblocks.util.json import replace_surrogates

from ._atif import is_atif
from ._files import Record
from ._run import Header, RecordedRun, Runs, run_by_run

Content: TypeAlias = str | list[Any] | dict[str, Any]
"""A tool's result: its text, its parts, or a value."""
_unknown = Usage()


class _Call(BaseModel):
    id: str = ""
    name: str
    arguments: Any = Field(default_factory=dict)  # any JSON: it was read from JSON


class _Result(BaseModel):
    call_id: str = ""
    name: str = ""
    output: Content = ""
    is_error: bool | None = None
    duration_ms: float | None = None


class _Step(BaseModel):
    model_config = ConfigDict(extra="ignore")

    thought: str | None = None
    reasoning: str | None = None
    action: str | None = None
    action_input: Any = None  # any JSON, mostly text
    observation: Content | None = None
    is_error: bool | None = None
    observation_is_error: bool | None = None
    tokens: int | None = None
    tool_calls: list[_Call] | None = None
    tool_results: list[_Result] | None = None
    user_text: str | None = None


class _Run(Header):
    steps: list[_Step]


class OurJSONL:
    """Reads our own format. `steps` is the only required key. Tokens of a flat step count as the call's output."""

    name = "reasonblocks"
    title = "ReasonBlocks JSON Lines"

    def sniff(self, value: JSON) -> bool:
        return isinstance(value, dict) and "steps" in value and not is_atif(value)

    def lacks(self, value: JSON) -> str | None:
        return "no 'steps'" if isinstance(value, dict) and "run_id" in value and "steps" not in value else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return run_by_run(file, records, _run)


def _run(file: str, record: Record) -> RecordedRun | RecordError:
    run = _Run.model_validate(record.value)
    steps = tuple(_step(index, step) for index, step in enumerate(run.steps))
    return run.recorded(file, record.line, steps, tuple(map(_usage, run.steps)))


def _usage(step: _Step) -> Usage:
    return _unknown if step.tokens is None else Usage(output=step.tokens)


def _step(index: int, step: _Step) -> Step:
    calls = _flat_calls(index, step) if step.tool_calls is None else _calls(step.tool_calls)
    return Step(
        thought=step.thought or "",
        reasoning=step.reasoning or "",
        tool_calls=calls,
        tool_results=_flat_results(calls, step) if step.tool_results is None else _results(step.tool_results),
        user_text=step.user_text or "",
    )


def _calls(calls: list[_Call]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls)


def _results(results: list[_Result]) -> tuple[ToolResult, ...]:
    return tuple(ToolResult(**{**dict(result), "output": output_of(result.output)}) for result in results)


def _flat_calls(index: int, step: _Step) -> tuple[ToolCall, ...]:
    if not step.action:
        return ()
    return (ToolCall(id=f"call-{index}", name=step.action, arguments=_arguments(step.action_input)),)


def _arguments(given: JSON) -> JSON:
    """Return the object that a text contains; any other input under the key `input`; {} for no input."""
    if given is None or given == "":
        return {}
    held = _object(given) if isinstance(given, str) and given[:1] == "{" else given
    return held if isinstance(held, dict) else {"input": given}


def _object(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
        return replace_surrogates(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return None


def _flat_results(calls: tuple[ToolCall, ...], step: _Step) -> tuple[ToolResult, ...]:
    flag = step.observation_is_error if step.is_error is None else step.is_error
    if not step.observation and flag is None:
        return ()
    call = calls[0] if calls else None
    return (
        ToolResult(
            call_id=call.id if call else "",
            name=call.name if call else "",
            output=output_of(step.observation),
            is_error=flag,
        ),
    )
