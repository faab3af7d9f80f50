"""ReasonBlocks steers tool-calling agents while they run.

A name is loaded when it is first used, because loading all of them takes much longer than `ReasonBlocks` alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._foreign import refuse_foreign

if TYPE_CHECKING:
    from ._client import ReasonBlocks
    from ._fsm import DifficultyFSM, Thresholds
    from ._saving import RequestPart, SavingPlan, TokenSaving
    from ._session import RunView, SteeringSession, TraceStateManager
    from .backends._edge_store import EdgeStore
    from .backends._http import HttpSink
    from .backends._jsonl_sink import JsonlSink
    from .backends._local_store import LocalStore
    from .backends._otel_sink import OpenTelemetrySink
    from .backends._qdrant_store import QdrantStore
    from .backends._sqlite_sink import SQLiteMonitorSink
    from .backends.embed import HashEmbedder
    from .exceptions import ReasonBlocksError
    from .memory import CodebaseMemory
    from .types import (
        AdapterCaps,
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
    "CodebaseMemory",
    "DifficultyFSM",
    "EdgeStore",
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
    "RequestPart",
    "RunView",
    "SQLiteMonitorSink",
    "SavingPlan",
    "SteeringSession",
    "Step",
    "StepInput",
    "StepLogEntry",
    "StepOutcome",
    "Thresholds",
    "TokenSaving",
    "ToolCall",
    "ToolResult",
    "TraceStateManager",
    "Usage",
    "__version__",
]

__version__ = "0.1.0"

_HOMES = {
    "CodebaseMemory": "memory",
    "DifficultyFSM": "_fsm",
    "EdgeStore": "backends._edge_store",
    "HashEmbedder": "backends.embed",
    "HttpSink": "backends._http",
    "JsonlSink": "backends._jsonl_sink",
    "LocalStore": "backends._local_store",
    "OpenTelemetrySink": "backends._otel_sink",
    "QdrantStore": "backends._qdrant_store",
    "ReasonBlocks": "_client",
    "ReasonBlocksError": "exceptions",
    "RequestPart": "_saving",
    "RunView": "_session",
    "SQLiteMonitorSink": "backends._sqlite_sink",
    "SavingPlan": "_saving",
    "SteeringSession": "_session",
    "Thresholds": "_fsm",
    "TokenSaving": "_saving",
    "TraceStateManager": "_session",
}
"""The module of each name; the others are in `types`."""

refuse_foreign()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'types')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
