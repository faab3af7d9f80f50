"""The library's clients that steer the runs, one for each setting of lessons and rules."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from functools import cache

from reasonblocks import Escalate, ReasonBlocks
from reasonblocks.backends.local_store import LocalStore
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import Advice, AdviceRequest, Pattern
from reasonblocks.types.steering import SecondLook

from .arms import Arm, Rules

STEP_DEADLINE_MS = 60_000
"""Nothing is left out because the machine is busy with the model."""
OWN_TOOLS = {"go": "read"}
"""The role of `go` for an advisor, which is told no result of a tool whose name shows no role.

With it, texts quote an error of `go`, too; guided houses have none.
"""
STRONG = "strong"
"""The name of the stronger model, in a route."""
ADVISOR: ContextVar[Callable[[AdviceRequest], Advice | None] | None] = ContextVar("advisor", default=None)
"""Asks a model on behalf of the run whose call is decided."""


def _advise(request: AdviceRequest) -> Advice | None:
    ask = ADVISOR.get()
    return None if ask is None else ask(request)


@cache
def _client(
    *,
    lessons: bool,
    rules: Rules,
    second_look: SecondLook | None,
    escalate: bool,
    advisor: bool,
    patience: str | None,
) -> ReasonBlocks:
    found = [pattern for pattern in starter_patterns() if _is_shown(pattern, lessons=lessons, rules=rules)]
    shown = [replace(pattern, off=False) for pattern in found]
    return ReasonBlocks(
        profile=None,  # no run of the experiment changes how another one is judged
        e_traces_enabled=bool(shown),
        pattern_store=LocalStore(layer=shown) if shown else None,
        second_look=second_look or False,
        escalate=Escalate(model=STRONG, after=0) if escalate else None,
        advisor=_advise if advisor else None,
        tool_roles=OWN_TOOLS if advisor else {},
        patience=patience,
        step_deadline_ms=STEP_DEADLINE_MS,
        strict=True,
    )


def _is_shown(pattern: Pattern, *, lessons: bool, rules: Rules) -> bool:
    if pattern.tier != "e3":
        return lessons
    return rules == "all" or (rules == "shipped" and not pattern.off)


def client_for(arm: Arm, *, branch: bool = False) -> ReasonBlocks:
    """Return the client whose sessions steer this arm's runs. It keeps nothing between runs.

    A branch gets no standing rules: they belong to the first call, which all branches share.
    """
    return _client(
        lessons=arm.lessons,
        rules="none" if branch else arm.rules,
        second_look=arm.second_look,
        escalate=arm.escalate,
        advisor=arm.advisor,
        patience=arm.patience,
    )
