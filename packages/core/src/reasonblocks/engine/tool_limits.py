"""Limits the calls of single tools: counts them, tells the agent what is left, and says which calls to refuse.

A call counts once its answer is a completed step. So the calls of the newest answer, which a framework is about to run,
are counted here by whoever asks about one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..types import Settings, ToolCall, TraceState

USED_UP = 0.0
"""The share that is told once no call of a tool is left."""


def count_tools(state: TraceState, calls: Iterable[ToolCall], settings: Settings) -> TraceState:
    """Return the state after these calls of a completed step."""
    limits = settings.budget.tools if settings.budget is not None else None
    if not limits or not (made := Counter(call.name for call in calls if call.name in limits)):
        return state
    return replace(state, tool_uses={**state.tool_uses, **{n: state.tool_uses.get(n, 0) + made[n] for n in made}})


def tell_tools(state: TraceState, settings: Settings) -> tuple[TraceState, str]:
    """Return what is left of the calls of one tool that passed a share since it was told, and the state; else ""."""
    budget = settings.budget
    if budget is None or not budget.tools:
        return state, ""
    for name, limit in budget.tools.items():
        left = max(0, limit - state.tool_uses.get(name, 0))
        told = min([share for share in (*budget.tell_at, USED_UP) if left / limit <= share], default=1.0)
        if told < state.tools_told.get(name, 1.0):
            return replace(state, tools_told={**state.tools_told, name: told}), _line(name, left, limit, settings)
    return state, ""


def _line(name: str, left: int, limit: int, settings: Settings) -> str:
    if left == 0 and settings.refuses_tools:
        return _used_up(name, limit)
    return f"Budget: {left:,} of {limit:,} calls of {name} {'is' if left == 1 else 'are'} left."


def refusal(state: TraceState, settings: Settings, name: str, earlier: int) -> str | None:
    """Return the answer to a call of the newest answer that must not be run, None for any other call.

    `earlier` is the number of this tool's calls before it in the same answer.
    """
    budget = settings.budget
    limit = budget.tools.get(name) if budget is not None and budget.tools else None
    if limit is None or not settings.refuses_tools or state.tool_uses.get(name, 0) + earlier < limit:
        return None
    return _used_up(name, limit)


def _used_up(name: str, limit: int) -> str:
    calls = "its only call is" if limit == 1 else f"its {limit:,} calls are"
    return f"{name} may not be called any more: {calls} used up."
