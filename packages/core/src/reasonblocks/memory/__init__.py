"""Codebase memory: agents note what they found out about a codebase, and later runs recall it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..ports import FindingStore
from ..types import Codebase, CodebaseSummary, Finding, Freshness, RecalledFinding

if TYPE_CHECKING:
    from ._tools import MemoryTool, ToolAnswer, memory_tools

__all__ = [
    "Codebase",
    "CodebaseSummary",
    "Finding",
    "FindingStore",
    "Freshness",
    "MemoryTool",
    "RecalledFinding",
    "ToolAnswer",
    "memory_tools",
]

_HOMES = {"MemoryTool": "_tools", "ToolAnswer": "_tools", "memory_tools": "_tools"}
"""The module of each name that is loaded when it is first used."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
