"""Reads events back from JSON: the inverse of their `as_dict`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, TypeVar, get_args

from ..exceptions import EventError
from ..types import Doubt, Mode, RunInfo, ToolCall, ToolResult
from ..util.json import MAX_INT, is_number
from .event import Event, RunFinish, RunStart, StepEvent

Read = Callable[[str, Any], Any]
"""Returns the value of a field. Raises `EventError`."""
T = TypeVar("T")
LARGEST_FLOAT = sys.float_info.max


def event_of(body: Mapping[str, Any]) -> Event:
    """Return the event that `as_dict` wrote. Unknown fields are ignored; missing ones get their defaults.

    Raises `EventError` with the field, its value and the rule.
    """
    kind = body.get("event")
    if kind == "step":
        return _built(StepEvent, _STEP, body)
    if kind == "run_start":
        return RunStart(run=_built(RunInfo, _RUN, body), timestamp=_number("timestamp", _needed(body, "timestamp")))
    if kind == "run_finish":
        return _built(RunFinish, _FINISH, body)
    raise EventError("event", kind, "must be run_start, step or run_finish")


def _built(cls: type[T], readers: Mapping[str, Read], body: Mapping[str, Any]) -> T:
    given = {name: read(name, body[name]) for name, read in readers.items() if name in body}
    for name in _NEEDED[cls]:
        _needed(body, name)
    return cls(**given)


def _needed(body: Mapping[str, Any], name: str) -> Any:
    if name not in body:
        raise EventError(name, None, "is missing")
    return body[name]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EventError(name, value, "must be text")
    return value


def _number(name: str, value: Any) -> float:
    if not is_number(value) or not -LARGEST_FLOAT <= value <= LARGEST_FLOAT:
        raise EventError(name, value, "must be a finite number")
    return value


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise EventError(name, value, "must be a number from 0 to 1")
    return value


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INT:
        raise EventError(name, value, "must be a whole number from 0 to 2**63 - 1")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise EventError(name, value, "must be true or false")
    return value


def _mode(name: str, value: Any) -> str:
    if value not in get_args(Mode):
        raise EventError(name, value, f"must be {' or '.join(get_args(Mode))}")
    return str(value)


def _any(name: str, value: Any) -> Any:
    return value


def _optional(read: Read, name: str, value: Any) -> Any:
    return None if value is None else read(name, value)


def _many(read: Read, name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise EventError(name, value, "must be a list")
    return tuple([read(name, item) for item in value])


def _table(read: Read, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise EventError(name, value, "must be an object")
    return {_text(name, key): read(name, item) for key, item in value.items()}


def _value(cls: type[T], readers: Mapping[str, Read], name: str, value: Any) -> T:
    if not isinstance(value, Mapping):
        raise EventError(name, value, "must be a list of objects")
    return _built(cls, readers, value)


_maybe_text, _maybe_count = partial(_optional, _text), partial(_optional, _count)
_maybe_flag, _maybe_number = partial(_optional, _flag), partial(_optional, _number)
_texts = partial(_many, _text)
_doubt = partial(_value, Doubt, {"monitor": _text, "text": _text})
_call = partial(_value, ToolCall, {"id": _text, "name": _text, "arguments": _any})
_result = partial(
    _value,
    ToolResult,
    {"call_id": _text, "output": _text, "name": _text, "is_error": _maybe_flag, "duration_ms": _maybe_number},
)
_RUN: Mapping[str, Read] = {
    **dict.fromkeys(("run_id", "framework", "agent_name", "task", "model"), _text),
    **dict.fromkeys(("org_id", "project_id", "task_profile"), _text),
    **dict.fromkeys(("parent_run_id", "parent_call_id", "session_id", "codebase_id", "traceparent"), _maybe_text),
    "mode": _mode,
    "metadata": partial(_table, _any),
}
_STEP: Mapping[str, Read] = {
    "run_id": _text,
    "step_index": _count,
    "timestamp": _number,
    **dict.fromkeys(("thought", "action", "action_input", "observation", "reasoning", "user_text"), _text),
    "is_error": _maybe_flag,
    "tool_calls": partial(_many, _call),
    "tool_results": partial(_many, _result),
    **dict.fromkeys(("tokens", "input_tokens", "output_tokens", "cache_read_tokens"), _maybe_count),
    **dict.fromkeys(("step_model", "failure_type"), _maybe_text),
    **dict.fromkeys(("injections", "injection_sources", "intervention_texts", "monitors_fired"), _texts),
    "scores": partial(_table, _share),
    "composite": partial(_optional, _share),
    "metadata": partial(_table, _any),
}
_FINISH: Mapping[str, Read] = {
    "run_id": _text,
    "outcome": _text,
    "timestamp": _number,
    "doubts": partial(_many, _doubt),
}
_NEEDED: Mapping[type, tuple[str, ...]] = {
    cls: tuple(field.name for field in fields(cls) if field.default is field.default_factory is MISSING)
    for cls in (RunInfo, StepEvent, RunFinish, Doubt, ToolCall, ToolResult)
}
