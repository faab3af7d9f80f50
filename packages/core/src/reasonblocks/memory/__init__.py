"""Codebase memory: agents note what they found out about a codebase, and later runs recall it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ports import FindingStore
from ..types import Codebase, CodebaseSummary, Finding, Freshness, RecalledFinding

if TYPE_CHECKING:
    from .._findings import recalled_text
    from ._memory import CodebaseMemory

__all__ = [
    "Codebase",
    "CodebaseMemory",
    "CodebaseSummary",
    "Finding",
    "FindingStore",
    "Freshness",
    "RecalledFinding",
    "recalled_text",
]


def __getattr__(name: str) -> object:
    if name == "CodebaseMemory":
        from ._memory import CodebaseMemory

        return CodebaseMemory
    if name == "recalled_text":
        from .._findings import recalled_text

        return recalled_text
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
