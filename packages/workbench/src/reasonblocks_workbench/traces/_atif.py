"""Reads trajectories in the Agent Trajectory Interchange Format of the Harbor project.

Source: the format's RFC (Harbor, 0001-trajectory-format), version 1.4, and the names of the fields that later versions
add. The reader was not tested with a file of another program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from pydantic import BaseModel, Field

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_int, plain
from reasonblocks.messages.content import output_of, text_of
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage

from ._conversation import UserTexts
from ._files import Record
from ._messages import decode_output
from ._run import Header, RecordedRun, Runs, run_by_run

PREFIX = "ATIF-v"


class _Call(BaseModel):
    tool_call_id: str = ""
    function_name: str
    arguments: Any = Field(default_factory=dict)


class _Result(BaseModel):
    source_call_id: str | None = None
    content: Any = None  # text; parts since version 1.6


class _Observation(BaseModel):
    results: list[_Result] = []


class _Metrics(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    extra: dict[str, Any] | None = None


class _Step(BaseModel):
    source: str
    message: Any = ""  # text; parts since version 1.6
    reasoning_content: str | None = None
    model_name: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None


class _Agent(BaseModel):
    name: str | None = None
    model_name: str | None = None


class _Trajectory(Header):
    session_id: str | None = None
    agent: _Agent = Field(default_factory=_Agent)
    steps: list[_Step]


class Atif:
    """Reads a trajectory as one run, with a step for each step of the agent and the outcome of an added `outcome`.

    Observations of the system and the steps of subagents are left out.
    """

    name = "atif"
    title = "ATIF trajectories"

    def sniff(self, value: JSON) -> bool:
        return is_atif(value)

    def lacks(self, value: JSON) -> str | None:
        version = value.get("schema_version") if isinstance(value, dict) else None
        return "no 'steps'" if isinstance(version, str) and version.startswith(PREFIX) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return run_by_run(file, records, _run)


def is_atif(value: JSON) -> TypeGuard[dict[str, JSON]]:
    """Return True for an object with the steps and the version of a trajectory."""
    if not isinstance(value, dict) or "steps" not in value:
        return False
    version = value.get("schema_version")
    return isinstance(version, str) and (version.startswith(PREFIX) or {"agent", "session_id"} <= value.keys())


def _run(file: str, record: Record) -> RecordedRun | RecordError:
    run = _Trajectory.model_validate(record.value)
    told = next((text_of(step.message) for step in run.steps if step.source == "user"), "")
    steps = [step for step in run.steps if step.source == "agent"]
    said = _said(run.steps)
    known = {
        "run_id": run.run_id or run.session_id,
        "source": run.source or run.agent.name,
        "task": run.task or told,
        "model": run.model
        or run.agent.model_name
        or next((step.model_name for step in steps if step.model_name), None),
    }
    header = run.model_copy(update=known)
    return header.recorded(
        file, record.line, tuple(map(_step, steps, said)), tuple(_usage(step.metrics) for step in steps)
    )


def _said(steps: Iterable[_Step]) -> list[str]:
    """Return the user's new text for each step of the agent."""
    users, found = UserTexts(), list[str]()
    for step in steps:
        if step.source == "user":
            users.add(text_of(step.message))
        elif step.source == "agent":
            found.append(users.before_answer())
    return found


def _step(step: _Step, said: str) -> Step:
    calls = [
        ToolCall(id=call.tool_call_id, name=call.function_name, arguments=plain(call.arguments))
        for call in step.tool_calls or ()
    ]
    results = step.observation.results if step.observation else ()
    return Step(
        thought=text_of(step.message),
        reasoning=step.reasoning_content or "",
        tool_calls=(*calls,),
        tool_results=tuple(_result(result, calls) for result in results),
        user_text=said,
    )


def _result(result: _Result, calls: list[ToolCall]) -> ToolResult:
    """Return a result. One that names no call belongs to the only call, if there is one."""
    named = {call.id: call for call in calls}.get(result.source_call_id or "")
    call = named or (calls[0] if len(calls) == 1 and result.source_call_id is None else None)
    return decode_output(
        ToolResult(
            call_id=call.id if call else result.source_call_id or "",
            name=call.name if call else "",
            output=output_of(result.content),
        )
    )


def _usage(metrics: _Metrics | None) -> Usage:
    """Return the tokens of a step; `prompt_tokens` includes the cached ones (RFC, MetricsSchema)."""
    if metrics is None:
        return Usage()
    extra = metrics.extra or {}
    return Usage(
        input=metrics.prompt_tokens,
        output=metrics.completion_tokens,
        cache_read=metrics.cached_tokens,
        cache_write=first_int(extra, "cache_creation_input_tokens"),
        reasoning=first_int(extra, "reasoning_tokens"),
    )
