"""ReasonBlocks steers tool-calling agents while they run. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backends.edge_store import EdgeStore
    from .backends.embed import HashEmbedder
    from .backends.jsonl_sink import JsonlSink
    from .backends.local_store import LocalStore
    from .backends.qdrant_store import QdrantStore
    from .backends.sqlite_sink import SQLiteMonitorSink
    from .client import ReasonBlocks
    from .exceptions import ReasonBlocksError
    from .fsm import DifficultyFSM
    from .session import SteeringSession, TraceStateManager
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
    "DifficultyFSM",
    "EdgeStore",
    "FSMState",
    "HashEmbedder",
    "JsonlSink",
    "LocalStore",
    "Pattern",
    "QdrantStore",
    "ReasonBlocks",
    "ReasonBlocksError",
    "SQLiteMonitorSink",
    "SteeringSession",
    "Step",
    "StepInput",
    "StepLogEntry",
    "StepOutcome",
    "ToolCall",
    "ToolResult",
    "TraceStateManager",
    "Usage",
    "__version__",
]

__version__ = "0.1.0"

_HOMES = {
    "DifficultyFSM": "fsm",
    "EdgeStore": "backends.edge_store",
    "HashEmbedder": "backends.embed",
    "JsonlSink": "backends.jsonl_sink",
    "LocalStore": "backends.local_store",
    "QdrantStore": "backends.qdrant_store",
    "ReasonBlocks": "client",
    "ReasonBlocksError": "exceptions",
    "SQLiteMonitorSink": "backends.sqlite_sink",
    "SteeringSession": "session",
    "TraceStateManager": "session",
}
"""Where a name lives; what is not here lives in `types`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'types')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
