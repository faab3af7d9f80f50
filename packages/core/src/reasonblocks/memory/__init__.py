"""Codebase memory: agents note what they found out about a codebase, and later runs recall it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..ports import FindingStore
from ..types import Codebase, CodebaseSummary, Finding, Freshness, RecalledFinding

if TYPE_CHECKING:
    from ..findings import recalled_text
    from .memory import CodebaseMemory
    from .tools import MemoryTool, ToolAnswer, memory_tools

__all__ = [
    "Codebase",
    "CodebaseMemory",
    "CodebaseSummary",
    "Finding",
    "FindingStore",
    "Freshness",
    "MemoryTool",
    "RecalledFinding",
    "ToolAnswer",
    "memory_tools",
    "recalled_text",
]

_HOMES = {
    "CodebaseMemory": ".memory",
    "MemoryTool": ".tools",
    "ToolAnswer": ".tools",
    "memory_tools": ".tools",
    "recalled_text": "..findings",
}
"""The module of each name that is loaded when it is first used."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
