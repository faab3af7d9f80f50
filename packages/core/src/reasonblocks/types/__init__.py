"""The values that the rooms of the house hand each other. Frozen; make a new one with `dataclasses.replace`."""

from __future__ import annotations

from ._json import JSON, canonical, compact
from ._log import StepLogEntry, doubts_json, retrieved_json
from ._patterns import ETrace, Pattern
from ._quick import evolve, quick
from ._state import Pending, StepRecord, TierUse, TraceState
from ._steering import (
    AdapterCaps,
    DifficultyParts,
    Doubt,
    Evaluation,
    FSMState,
    GateDecision,
    Injected,
    Injection,
    Level,
    Memories,
    Observed,
    Placement,
    Routing,
    ScoreMemory,
    Settings,
    SkippedReason,
    Source,
    StepDecision,
    Tier,
    Transition,
)
from ._step import RunInfo, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from ._storable import LARGEST_INT, storable, storable_json

__all__ = [
    "JSON",
    "LARGEST_INT",
    "AdapterCaps",
    "DifficultyParts",
    "Doubt",
    "ETrace",
    "Evaluation",
    "FSMState",
    "GateDecision",
    "Injected",
    "Injection",
    "Level",
    "Memories",
    "Observed",
    "Pattern",
    "Pending",
    "Placement",
    "Routing",
    "RunInfo",
    "ScoreMemory",
    "Settings",
    "SkippedReason",
    "Source",
    "Step",
    "StepDecision",
    "StepInput",
    "StepLogEntry",
    "StepOutcome",
    "StepRecord",
    "Tier",
    "TierUse",
    "ToolCall",
    "ToolResult",
    "TraceState",
    "Transition",
    "Usage",
    "canonical",
    "compact",
    "doubts_json",
    "evolve",
    "quick",
    "retrieved_json",
    "storable",
    "storable_json",
]
