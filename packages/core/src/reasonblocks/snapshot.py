"""The trace state as plain JSON and back, exactly: versioned, unknown keys ignored, a newer version refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from . import render
from .exceptions import SnapshotError
from .types import (
    JSON,
    DifficultyParts,
    FSMState,
    Injected,
    Injection,
    Pending,
    ScoreMemory,
    StepDecision,
    StepRecord,
    TierUse,
    ToolCall,
    TraceState,
)

__all__ = ["VERSION", "decode", "encode"]

VERSION = 1
"""Rises when a change would make an older reader go on differently."""
_REBUILT = frozenset({"guidance", "notes", "replayed"})
"""Parts of the last decision that its injections and the moment give again."""

T = TypeVar("T")


def encode(state: TraceState) -> dict[str, JSON]:
    """Plain JSON that shares nothing with the state."""
    return {"version": VERSION, **{name: _plain(getattr(state, name)) for name in _NAMES[TraceState]}}


def decode(data: Mapping[str, Any]) -> TraceState:
    """The state that `encode` wrote. Raises `SnapshotError` with the field, its value and the rule."""
    version = _version(data)
    if version > VERSION:
        raise SnapshotError("version", version, f"is newer than this library's {VERSION}: upgrade reasonblocks-core")
    if not isinstance(data.get("trace_id"), str):
        raise SnapshotError("trace_id", data.get("trace_id"), "must be a string")
    return _built(TraceState, data)


def _version(data: object) -> int:
    if not isinstance(data, Mapping):
        raise SnapshotError("", data, "a snapshot is a JSON object")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise SnapshotError("version", version, "must be an int")
    return version


def _plain(value: Any) -> JSON:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, FSMState):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in _NAMES[type(value)]}
    return [_plain(item) for item in value]


_VALUES = (
    TraceState, StepDecision, StepRecord, TierUse, Pending, ScoreMemory, DifficultyParts, Injected, Injection, ToolCall
)  # fmt: skip
_NAMES: Mapping[type, tuple[str, ...]] = {
    cls: tuple(field.name for field in fields(cls) if not (cls is StepDecision and field.name in _REBUILT))
    for cls in _VALUES
}


def _built(cls: type[T], data: Mapping[str, Any]) -> T:
    """A value from the keys that it knows; what is missing has its default."""
    readers = _READERS.get(cls, {})
    given = {}
    for name in _NAMES[cls]:
        if name in data:
            given[name] = _read(name, data[name], readers.get(name))
    try:
        return cls(**given)
    except TypeError as exc:
        raise SnapshotError(cls.__name__, dict(data), f"lacks a field ({exc})") from exc


def _read(name: str, value: Any, reader: Callable[[Any], Any] | None) -> Any:
    if reader is None:
        return value
    try:
        return reader(value)
    except SnapshotError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as exc:
        raise SnapshotError(name, value, f"cannot be read ({exc})") from exc


def _one(cls: type[T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else _built(cls, value)


def _many(cls: type[T]) -> Callable[[Any], tuple[T, ...]]:
    return lambda value: tuple(_built(cls, item) for item in value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be an int >= 0")
    return value


def _difficulties(value: Any) -> tuple[float, ...]:
    if not all(isinstance(item, (int, float)) and 0 <= item <= 1 for item in value):
        raise ValueError("must be numbers in [0, 1]")
    return tuple(value)


def _decision(value: Any) -> StepDecision | None:
    if value is None:
        return None
    bare = _built(StepDecision, value)
    return StepDecision(
        **{name: getattr(bare, name) for name in _NAMES[StepDecision]}, guidance=render.guidance(bare.injections)
    )


_READERS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    TraceState: {
        "trace_id": _text,
        "current_state": FSMState,
        "difficulty_history": _difficulties,
        "steps": _many(StepRecord),
        "total_tokens": _count,
        "calls": _count,
        "faults": _count,
        "score_memory": _one(ScoreMemory),
        "memories": dict,
        "fired_before": tuple,
        "injected": _many(Injected),
        "injected_types": tuple,
        "patterns_shown": tuple,
        "e1": _one(TierUse),
        "e2": _one(TierUse),
        "e3": _one(TierUse),
        "pending": _one(Pending),
        "keys": tuple,
        "last": _decision,
    },
    StepDecision: {
        "fsm_state": FSMState,
        "difficulty_parts": _one(DifficultyParts),
        "monitors_fired": tuple,
        "injections": _many(Injection),
        "dropped": tuple,
    },
    StepRecord: {"fired": tuple},
    Injection: {"pattern_ids": tuple},
    Pending: {"tool_calls": _many(ToolCall)},
}
