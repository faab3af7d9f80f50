"""The library's clients that steer the runs, one for each setting of lessons and rules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from reasonblocks import ReasonBlocks
from reasonblocks.backends.local_store import LocalStore
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import Pattern

from .arms import Arm, Rules

STEP_DEADLINE_MS = 60_000
"""Nothing is left out because the machine is busy with the model."""


@cache
def _client(*, lessons: bool, rules: Rules) -> ReasonBlocks:
    found = [pattern for pattern in starter_patterns() if _is_shown(pattern, lessons=lessons, rules=rules)]
    shown = [replace(pattern, off=False) for pattern in found]
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
    return rules == "all" or (rules == "shipped" and not pattern.off)


def client_for(arm: Arm, *, branch: bool = False) -> ReasonBlocks:
    """Return the client whose sessions steer this arm's runs. It keeps nothing between runs.

    A branch gets no standing rules: they belong to the first call, which all branches share.
    """
    return _client(lessons=arm.lessons, rules="none" if branch else arm.rules)
