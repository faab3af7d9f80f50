"""Sees new kinds of tools and new targets deep in a run that should converge."""

from __future__ import annotations

from collections.abc import Mapping

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts
from .outcome import hash_of
from .roles import is_shell

NAME = "late_sprawl"
FAILURE_TYPE = "sprawl"

DEEP = 20
"""Actions after which a run should converge."""
WINDOW = 10
"""Steps over which new ground adds up."""
MANY = 4
"""Steps that open new ground within the window, which is too many; fewer are noted, as most long runs have them."""
MAX_KINDS = 32
"""Tools, or programs of a shell, that are remembered, those used last; likewise MAX_TARGETS."""
MAX_TARGETS = 64
BITS = 0xFFFF
"""What is kept of a hash: where two fall together, something new is taken for known."""


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `tool` of the newest branch; `count` of steps that opened one."""
    kept = table(memory)
    kinds, targets = numbers(kept, "kinds"), numbers(kept, "targets")
    actions = int(str(kept.get("actions", 0)))
    opened = [step for step in numbers(kept, "opened") if step > features.index - WINDOW]
    if features.call is None:
        return settle({**_without_last(kept), "opened": opened}, memory)
    shell = is_shell(features.tool)
    now_kinds = [kind & BITS for kind in (features.kinds if shell else (hash_of(features.tool),))]
    now_targets = [target & BITS for target in features.targets]
    fresh = actions >= DEEP and _has_new(now_kinds, kinds) and (not shell or _has_new(now_targets, targets))
    opened = [*opened, features.index] if fresh else opened
    left: dict[str, JSON] = {
        "kinds": _used(now_kinds, kinds, MAX_KINDS),
        "targets": _used(now_targets, targets, MAX_TARGETS) if shell else targets,
        "actions": min(DEEP, actions + 1),
        "opened": opened,
    }
    score = _score(len(opened)) if fresh else 0.0
    return settle(left, memory, score, opened, {"tool": features.tool, "count": len(opened)})


def _without_last(kept: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in kept.items() if name != "last"}


def _has_new(found: list[int], known: list[int]) -> bool:
    return not all(map(known.__contains__, found))


def _used(found: list[int], known: list[int], most: int) -> list[int]:
    """Those used last, at the end: what a run comes back to is not forgotten."""
    if not found or found == known[-len(found) :]:
        return known
    return [*[item for item in known if item not in found], *dict.fromkeys(found)][-most:]


def _score(opened: int) -> float:
    return min(1.0, 0.7 + 0.1 * (opened - MANY)) if opened >= MANY else 0.1 * opened


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    (tool,) = texts(finding.facts, "tool")
    return f"{at_steps(finding.evidence)} opened new ground late in the run, the last time with {tool}. {_NEXT[rung]}"


_NEXT = {
    1: "Name the one open question that decides the task, and go on with that one only.",
    2: "Finish what is open now before you begin anything new.",
    3: "Wrap up: give the best answer that the results so far support, and list what is open.",
}
