"""Remembers what a run has shown: lists, for what was not tried yet, and what the hints name."""

from __future__ import annotations

from collections.abc import Mapping

from ..types import JSON, Account, Step
from . import untried
from .hints import seen
from .memory import table

OWN_MEMORY = "_untried"
"""The key of this memory among those of the monitors; snapshots have it."""


def gather(step: Step, index: int, account: Account, memory: JSON, tool_roles: Mapping[str, str]) -> JSON:
    """Return the memory after this step; `account` is that with this step."""
    before = seen.parse_seen(table(memory).get("seen"))
    now = seen.gather(step, index, before, tool_roles)
    lists = untried.gather(step, index, account, memory, tool_roles)
    return {**table(lists), "seen": now.stored} if any(now) else lists
