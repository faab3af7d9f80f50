"""The library's clients that steer the runs, one for each setting of lessons and rules."""

from __future__ import annotations

from functools import cache

from reasonblocks import ReasonBlocks
from reasonblocks.backends._local_store import LocalStore
from reasonblocks.starter import starter_patterns
from reasonblocks.types import Pattern

from .arms import FEW_RULES, Arm, Rules

STEP_DEADLINE_MS = 60_000
"""Nothing is left out because the machine is busy with the model."""


@cache
def _client(*, lessons: bool, rules: Rules) -> ReasonBlocks:
    shown = [pattern for pattern in starter_patterns() if _is_shown(pattern, lessons=lessons, rules=rules)]
    return ReasonBlocks(
        profile=None,  # no run of the experiment changes how another one is judged
        e_traces_enabled=bool(shown),
        pattern_store=LocalStore(layer=shown) if shown else None,
        step_deadline_ms=STEP_DEADLINE_MS,
        strict=True,
    )


def _is_shown(pattern: Pattern, *, lessons: bool, rules: Rules) -> bool:
    if pattern.tier != "e3":
        return lessons
    return rules == "all" or (rules == "few" and pattern.id in FEW_RULES)


def client_for(arm: Arm, *, branch: bool = False) -> ReasonBlocks:
    """Return the client whose sessions steer this arm's runs. It keeps nothing between runs.

    A branch gets no standing rules: they belong to the first call, which all branches share.
    """
    return _client(lessons=arm.lessons, rules="none" if branch else arm.rules)
