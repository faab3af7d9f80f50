"""ReasonBlocks steers tool-calling agents while they run.

A name is loaded when it is first used, because loading all of them takes much longer than `ReasonBlocks` alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .foreign import refuse_foreign

if TYPE_CHECKING:
    from .backends.embed import HashEmbedder
    from .backends.http import HttpSink
    from .backends.jsonl_sink import JsonlSink
    from .backends.local_store import LocalStore
    from .backends.otel_sink import OpenTelemetrySink
    from .backends.qdrant_store import QdrantStore
    from .backends.sqlite_sink import SQLiteMonitorSink
    from .client import ReasonBlocks
    from .engine.fsm import DifficultyFSM, Thresholds
    from .exceptions import ReasonBlocksError
    from .memory import CodebaseMemory
    from .session import RunView, SteeringSession, TraceStateManager
    from .types import (
        AdapterCaps,
        Budget,
        Escalate,
        FSMState,
        Pattern,
        Step,
        StepInput,
        StepLogEntry,
        StepOutcome,
        ToolCall,
        ToolResult,
        Usage,
    )

__all__ = [
    "AdapterCaps",
    "Budget",
    "CodebaseMemory",
    "DifficultyFSM",
    "Escalate",
    "FSMState",
    "HashEmbedder",
    "HttpSink",
    "JsonlSink",
    "LocalStore",
    "OpenTelemetrySink",
    "Pattern",
    "QdrantStore",
    "ReasonBlocks",
    "ReasonBlocksError",
    "RunView",
    "SQLiteMonitorSink",
    "SteeringSession",
    "Step",
    "StepInput",
    "StepLogEntry",
    "StepOutcome",
    "Thresholds",
    "ToolCall",
    "ToolResult",
    "TraceStateManager",
    "Usage",
    "__version__",
]

__version__ = "0.1.0"

_HOMES = {
    "CodebaseMemory": "memory",
    "DifficultyFSM": "engine.fsm",
    "HashEmbedder": "backends.embed",
    "HttpSink": "backends.http",
    "JsonlSink": "backends.jsonl_sink",
    "LocalStore": "backends.local_store",
    "OpenTelemetrySink": "backends.otel_sink",
    "QdrantStore": "backends.qdrant_store",
    "ReasonBlocks": "client",
    "ReasonBlocksError": "exceptions",
    "RunView": "session",
    "SQLiteMonitorSink": "backends.sqlite_sink",
    "SteeringSession": "session",
    "Thresholds": "engine.fsm",
    "TraceStateManager": "session",
}
"""The module of each name; the others are in `types`."""

refuse_foreign()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'types')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
