"""The budget of a framework as its agent was told of it: the adapters' tests share this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.types import StepLogEntry

__all__ = ["LANDING", "LAST", "auto", "lines", "numbered"]

LANDING = (
    "At most 3 calls are left, this one included. Use them to deliver the best result that you have, and say what is"
    " missing."
)
LAST = "This is the last call: give your answer now. No result of a tool is read after it."


def auto(**options: Any) -> ReasonBlocks:
    """Return a client that tells its agents nothing but what their frameworks leave."""
    given = {"budget": "auto", "strict": True, "pattern_store": LocalStore(), "patience": "8 of 9", **options}
    return ReasonBlocks(**given)


def lines(log: Sequence[StepLogEntry]) -> list[str]:
    """Return the line of the budget before each call, "" for none."""
    told = (dict(zip(entry.injection_sources, entry.intervention_texts, strict=True)) for entry in log)
    return [texts.get("BudgetInjection", "") for texts in told]


def numbered(log: Sequence[StepLogEntry]) -> Mapping[int, str]:
    """Return the lines by the number of their call."""
    return {number: line for number, line in enumerate(lines(log)) if line}
