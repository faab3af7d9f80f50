"""Converts the trace state to plain JSON and back without loss; refuses snapshots of a newer version."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..exceptions import SnapshotError
from ..monitors.bounds import checked_account, checked_patience
from ..monitors.sightings import OWN_MEMORY as UNTRIED_MEMORY
from ..render import guidance as render
from ..types import (
    JSON,
    Account,
    DifficultyParts,
    FSMState,
    Injected,
    Injection,
    Patience,
    Pending,
    ScoreMemory,
    StepDecision,
    StepRecord,
    TierUse,
    ToolCall,
    TraceState,
)
from ..types.account import Did
from ..util.json import evolve, storable

VERSION = 6
"""Incremented when a change would make an older reader continue a run differently."""
_JUDGES_SINCE = 6
"""The version whose scorer and monitors write what those of today read."""
_OURS = frozenset(
    "claim_contradiction semantic_loop verification_skip cyclic_compression late_sprawl silent_topic_drift"
    " _evidence _novelty _persistence _recall _suite _server".split()
) | {UNTRIED_MEMORY}
"""Names of memories that this library's monitors kept, in this version or an older one."""
_log = logging.getLogger("reasonblocks")
_REBUILT = frozenset({"guidance", "warnings", "replayed", "doubts"})
"""Parts of the last decision that are rebuilt from its injections, or that occur only in a final decision."""

T = TypeVar("T")


def encode(state: TraceState) -> dict[str, JSON]:
    """Return the state as plain JSON that shares nothing with it."""
    return {"version": VERSION, **{name: _plain(getattr(state, name)) for name in _NAMES[TraceState]}}


def decode(data: Mapping[str, Any]) -> TraceState:
    """Return the state that `encode` wrote. Raises `SnapshotError` with the field, its value and the rule.

    A state of an older version keeps its history, but its scorer and monitors start afresh.
    """
    version = _version(data)
    if version > VERSION:
        raise SnapshotError("version", version, f"is newer than this library's {VERSION}: upgrade reasonblocks-core")
    try:
        state = _built(TraceState, data)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        if isinstance(exc, SnapshotError):
            raise
        raise SnapshotError("", type(data).__name__, f"cannot be read ({exc})") from exc
    _check_numbers(state)
    return state if version >= _JUDGES_SINCE else _without_our_memories(state)


def _without_our_memories(state: TraceState) -> TraceState:
    """Drop memories that would mislead today's scorer and monitors; keep those of the caller's monitors."""
    _log.info("run %r: the account of its steps starts anew, since its snapshot is of an older version", state.trace_id)
    kept = {name: memory for name, memory in state.memories.items() if name not in _OURS}
    return evolve(state, memories=kept, score_memory=ScoreMemory())


def _check_numbers(state: TraceState) -> None:
    if not all(0 <= difficulty <= 1 for difficulty in state.difficulty_history):
        raise SnapshotError("difficulty_history", state.difficulty_history, "must be numbers in [0, 1]")
    for name in ("calls", "auxiliary_calls", "faults", "total_tokens"):
        if getattr(state, name) < 0:
            raise SnapshotError(name, getattr(state, name), "must be at least 0")
    if state.steps_begun < 0:
        raise SnapshotError("auxiliary_calls", state.auxiliary_calls, f"must be at most the {state.calls} calls")
    if state.token_budget is not None and state.token_budget < 1:
        raise SnapshotError("token_budget", state.token_budget, "must be at least 1, or null")
    try:
        checked_account(state.account)
        checked_patience(state.patience)
    except ValueError as exc:
        raise SnapshotError("account", "a value out of range", str(exc)) from exc


def _version(data: object) -> int:
    if not isinstance(data, Mapping):
        raise SnapshotError("", data, "a snapshot is a JSON object")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise SnapshotError("version", version, "must be an int, at least 1")
    return version


def _plain(value: Any) -> JSON:
    kind = type(value)
    if kind in _SCALARS:
        return value  # type: ignore[no-any-return]  # one of the five scalar types
    if kind in _NAMES:
        return {name: _plain(getattr(value, name)) for name in _NAMES[kind]}
    if kind in (tuple, list) or hasattr(value, "_fields"):  # mostly of numbers
        return [item if type(item) in _SCALARS else _plain(item) for item in value]
    if isinstance(value, FSMState):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return storable(value)  # a subclass of one of them, which not every serializer accepts


_SCALARS = frozenset({NoneType, str, bool, int, float})
_VALUES = (
    TraceState, StepDecision, StepRecord, TierUse, Pending, ScoreMemory, DifficultyParts, Injected, Injection, Patience,
    ToolCall, Account, Did,
)  # fmt: skip
_NAMES: Mapping[type, tuple[str, ...]] = {
    cls: tuple(field.name for field in fields(cls) if not (cls is StepDecision and field.name in _REBUILT))
    for cls in _VALUES
}
_NEEDED: Mapping[type, tuple[str, ...]] = {
    cls: tuple(field.name for field in fields(cls) if field.default is field.default_factory is MISSING)
    for cls in _VALUES
}


class _Missing:
    """Stands for the value of a missing field in errors."""

    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()


def _built(cls: type[T], data: Any, name: str = "") -> T:
    """Build a value from its known keys, each read by its type; a missing one gets its default."""
    if not isinstance(data, Mapping):
        raise SnapshotError(name, data, "must be an object")
    given = {key: _read(key, data[key], hint) for key, hint in _hints(cls.__name__).items() if key in data}
    if lacking := [key for key in _NEEDED[cls] if key not in given]:
        raise SnapshotError(f"{name}.{lacking[0]}" if name else lacking[0], _MISSING, "give all that snapshot() gave")
    if cls is StepDecision and "injections" in given:
        given["guidance"] = render.guidance(given["injections"])
    return cls(**given)


@lru_cache(maxsize=32)
def _hints(name: str) -> Mapping[str, Any]:
    """Return the field names and type hints of one of our values."""
    cls = next(cls for cls in _VALUES if cls.__name__ == name)
    hints = get_type_hints(cls, localns={"JSON": Any})
    return {name: hints[name] for name in _NAMES[cls]}


def _read(name: str, value: Any, hint: Any) -> Any:
    """Return the value converted to its type hint. The hints are the whole schema."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):  # every union of ours is "or None"
        return None if value is None else _read(name, value, next(part for part in parts if part is not NoneType))
    if kind is tuple and isinstance(value, list):
        return tuple(_read(name, item, parts[0]) for item in value)
    if kind is Literal and value in parts:
        return value
    if hasattr(hint, "_fields") and isinstance(value, list) and len(value) == len(hint._fields):
        hints = get_type_hints(hint)
        return hint(*[_read(name, item, hints[field]) for item, field in zip(value, hint._fields, strict=True)])
    if hint in _NAMES:
        return _built(hint, value, name)
    if hint is FSMState and value in FSMState.__members__:
        return FSMState(value)
    if hint is float and type(value) in (int, float) and math.isfinite(value):
        return storable(value)
    if hint is Any or (hint in (str, int, bool) and type(value) is hint):
        return storable(value)
    if kind is Mapping and isinstance(value, Mapping):
        return {_read(name, key, str): _read(name, item, parts[1]) for key, item in value.items()}
    raise SnapshotError(name, value, f"must be {getattr(hint, '__name__', hint)}")
