"""Tells the agent what is left of its budget, and ends the run when that is used up.

A limit ends the run exactly, so that what the agent was told is true. Calls are the steps of the run: the retries of
one call are one, and auxiliary calls are none. Tokens are those that the framework has reported; the session counts
their price and the seconds. The budget "auto" has the calls that the framework's own limits leave at most, and the
framework ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, log10

from ..types import Budget, Injection, Settings, TraceState
from ..types.steering import AUTO
from .tool_limits import tell_tools

REASON = "budget"
"""The reason for which a run ends whose budget is used up."""
ALIVE_STEPS = 8
"""The number of newest steps none of which may be dead if the limit is to be extended."""
LAST = "This is the last call: give your answer now. No result of a tool is read after it."
DELIVER = "Use them to deliver the best result that you have, and say what is missing."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """The rest of one limit, this call included."""

    unit: str
    left: int | float
    limit: int | float
    of_framework: bool = False

    @property
    def share(self) -> float:
        return self.left / self.limit

    @property
    def line(self) -> str:
        if self.of_framework:
            return f"Budget: at most {self.left:,} calls are left."
        left, smallest = self.left, 1.0
        if isinstance(left, float):  # rounded down to at least three digits of the limit
            smallest = 10.0 ** min(0, floor(log10(self.limit)) - 2)
            left = floor(round(left / smallest, 9)) * smallest
        amount = _number(left) if left else f"less than {_number(smallest)}"
        return f"Budget: {amount} of {_number(self.limit)} {self.unit} {'is' if left in (0, 1) else 'are'} left."


def _number(value: int | float) -> str:
    return f"{value:,.12g}" if isinstance(value, float) else f"{value:,}"


def is_used_up(state: TraceState, settings: Settings) -> bool:
    """Return True if a limit is used up, so that the run must end before its next call."""
    budget = settings.budget
    if budget is None or not settings.ends_at_budget:
        return False
    return any(limit.left <= 0 for limit in _limits(state, budget, None))


def leaves_room(state: TraceState, settings: Settings, calls_left: int | None) -> bool:
    """Return True unless the next call is the last one, in which an agent can only repeat its answer."""
    left = None if settings.budget is None else _calls_left(state, settings.budget, calls_left)
    return left is None or left > 1


def tell_budget(state: TraceState, settings: Settings, calls_left: int | None) -> tuple[TraceState, Injection | None]:
    """Return the line for the next call, or None, and the state that has it told.

    `calls_left` are those that the framework's limits leave. What is said of the run's end goes before what is left of
    a tool's calls, which is then told before a later call.
    """
    budget = settings.budget
    if budget is None:
        return state, None
    after, text, is_end = _tell_run(state, settings, budget, calls_left)
    if not is_end:
        of_tool, about_tool = tell_tools(state, settings)
        if about_tool:
            after, text = of_tool, about_tool
    return after, Injection(source="BudgetInjection", text=text) if text else None


def _tell_run(
    state: TraceState, settings: Settings, budget: Budget, calls_left: int | None
) -> tuple[TraceState, str, bool]:
    """Return the state, the text, and whether it is about the run's end.

    Each share of `tell_at` is told once, by the limit that is nearer to its end; near the end, the agent is told to
    deliver. The limit of calls is extended then, before anything is said of a last call, so that it stays true.
    """
    limits, ends = _limits(state, budget, calls_left), settings.ends_at_budget or budget == AUTO
    if not limits or any(limit.left <= 0 for limit in limits):
        return state, "", False
    nearest = min(limits, key=lambda limit: limit.share)
    told = min([share for share in budget.tell_at if nearest.share <= share], default=1.0)
    is_new, text, is_end = told < state.budget_told, "", False
    if ends and not state.budget_landed and _is_near(nearest, budget, told, is_new=is_new):
        is_end = True
        if nearest.unit == "calls" and _may_extend(state, budget):
            state, text = _extended(state, budget)
        else:
            state = replace(state, budget_landed=True)
            opening = _calls_line(int(nearest.left), budget) if nearest.unit == "calls" else nearest.line
            text = f"{opening} {DELIVER}"
    elif budget.every_call or (is_new and not state.budget_landed):
        text = nearest.line
    if ends and _calls_left(state, budget, calls_left) == 1:
        text, is_end = LAST, True
    return replace(state, budget_told=min(told, state.budget_told)), text, is_end


def _is_near(nearest: _Left, budget: Budget, told: float, *, is_new: bool) -> bool:
    """Return True from `land_at` calls before the end on; at the last share if another limit ends first."""
    if nearest.unit == "calls":
        return nearest.left <= max(budget.land_at, 1)
    return is_new and budget.land_at > 0 and told == min(budget.tell_at, default=None)


def _limits(state: TraceState, budget: Budget, calls_left: int | None) -> list[_Left]:
    """Return the limits of which is known what is left. Tokens that are not reported are not, nor their price."""
    found = []
    if (calls := _calls_left(state, budget, calls_left)) is not None:
        limit = calls + state.steps_begun
        found.append(_Left(unit="calls", left=calls, limit=limit, of_framework=budget == AUTO))
    if budget.tokens is not None and state.total_tokens:
        found.append(_Left(unit="tokens", left=budget.tokens - state.total_tokens, limit=budget.tokens))
    if budget.cost_usd is not None and state.cost_usd:
        left = budget.cost_usd - state.cost_usd
        found.append(_Left(unit="US dollars", left=left, limit=budget.cost_usd))
    if budget.seconds is not None:
        found.append(_Left(unit="seconds", left=budget.seconds - state.seconds, limit=budget.seconds))
    return found


def _calls_left(state: TraceState, budget: Budget, of_framework: int | None = None) -> int | None:
    if budget == AUTO:
        return of_framework
    return None if budget.calls is None else budget.calls + state.budget_extension - state.steps_begun


def _may_extend(state: TraceState, budget: Budget) -> bool:
    """Return True if the limit was not extended yet, and none of the newest steps is dead."""
    newest = state.account.letters[-ALIVE_STEPS:]
    return budget.extend > 0 and state.budget_extension == 0 and newest == "." * ALIVE_STEPS


def _extended(state: TraceState, budget: Budget) -> tuple[TraceState, str]:
    extended = replace(state, budget_extension=budget.extend)
    left = _calls_left(extended, budget) or 0
    return extended, f"Budget: extended once, by {budget.extend:,} calls. {_calls_line(left, budget)}"


def _calls_line(left: int, budget: Budget) -> str:
    """Return the calls that are left; by a framework's limit, or beside another one, the run may end before them."""
    at_most = budget == AUTO or (budget.tokens, budget.cost_usd, budget.seconds) != (None, None, None)
    return f"{'At most ' if at_most else ''}{left:,} calls are left, this one included."
