"""Sees new kinds of tools and new targets deep in a run that should converge."""

from __future__ import annotations

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts

__all__ = ["FAILURE_TYPE", "NAME", "observe", "say"]

NAME = "late_sprawl"
FAILURE_TYPE = "sprawl"

DEEP = 20
"""Actions after which a run should converge."""
WINDOW = 10
"""Steps over which new ground adds up."""
MOST_KINDS = 64
"""Tools, or programs of a shell, that are remembered; likewise MOST_TARGETS."""
MOST_TARGETS = 96


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `tool` of the newest branch; `count` of steps that opened one."""
    kept = table(memory)
    kinds, targets = numbers(kept, "kinds"), numbers(kept, "targets")
    actions = int(str(kept.get("actions", 0)))
    new_kinds, new_targets = _new(features.kinds, kinds), _new(features.targets, targets)
    fresh = actions >= DEEP and bool(new_kinds) and bool(new_targets)
    opened = [step for step in numbers(kept, "opened") if step > features.index - WINDOW]
    opened = [*opened, features.index] if fresh else opened
    left: dict[str, JSON] = {
        "kinds": [*kinds, *new_kinds][-MOST_KINDS:],
        "targets": [*targets, *new_targets][-MOST_TARGETS:],
        "actions": actions + (features.call is not None),
        "opened": opened,
    }
    score = min(1.0, 0.2 * len(opened)) if fresh else 0.0
    return settle(left, memory, score, opened, {"tool": features.tool, "count": len(opened)})


def _new(found: tuple[int, ...], known: list[int]) -> list[int]:
    return [item for item in dict.fromkeys(found) if item not in known]


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    (tool,) = texts(finding.facts, "tool")
    return f"{at_steps(finding.evidence)} opened new ground late in the run, the last time with {tool}. {_NEXT[rung]}"


_NEXT = {
    1: "Name the one open question that decides the task, and go on with that one only.",
    2: "Finish what is open now before you begin anything new.",
    3: "Wrap up: give the best answer that the results so far support, and list what is open.",
}
