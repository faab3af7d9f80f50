"""Codebase memory: agents note what they found out about a codebase, and later runs recall it."""

from __future__ import annotations

from ..ports import FindingStore
from ..types import Codebase, CodebaseSummary, Finding, Freshness, RecalledFinding

__all__ = ["Codebase", "CodebaseSummary", "Finding", "FindingStore", "Freshness", "RecalledFinding"]
