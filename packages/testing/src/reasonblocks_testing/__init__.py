"""Test support for adapters: the conformance suite, golden runs, parity, scripted backends and a recording sink.

To test an adapter, write a `Harness` and subclass `ConformanceSuite`. `LoopHarness` is a complete harness to read
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._golden import Golden, World, load_golden
from ._loop import LoopHarness
from ._parity import ParityRun, parity_lines, write_parity
from ._scripted import (
    RecordingSink,
    ScriptedEvaluator,
    ScriptedMailbox,
    ScriptedReasonBlocks,
    ScriptedStore,
    scripted_scorer,
)
from .harness import Harness, Ran, Seen
from .script import Script, Turn, tool_call, tool_result

if TYPE_CHECKING:
    from ._suite import ConformanceSuite

__all__ = [
    "ConformanceSuite",
    "Golden",
    "Harness",
    "LoopHarness",
    "ParityRun",
    "Ran",
    "RecordingSink",
    "Script",
    "ScriptedEvaluator",
    "ScriptedMailbox",
    "ScriptedReasonBlocks",
    "ScriptedStore",
    "Seen",
    "Turn",
    "World",
    "load_golden",
    "parity_lines",
    "scripted_scorer",
    "tool_call",
    "tool_result",
    "write_parity",
]


_SCENARIOS = ("_scenarios", "_run_scenarios", "_control_scenarios")
"""Modules whose assertions pytest rewrites, so that a failure shows the compared values."""


def __getattr__(name: str) -> object:
    if name != "ConformanceSuite":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _SCENARIOS))
    from ._suite import ConformanceSuite

    return ConformanceSuite


def __dir__() -> list[str]:
    return __all__
