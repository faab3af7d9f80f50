"""Detects new kinds of tools and new targets late in a run that should converge."""

from __future__ import annotations

from collections.abc import Mapping

from ..types import JSON
from .features import Features
from .finding import Finding, settle
from .memory import count, numbers, table
from .outcome import hash_of
from .recall import Recall

NAME = "late_sprawl"
FAILURE_TYPE = "sprawl"

DEEP = 20
"""Actions after which a run should converge."""
WINDOW = 10
"""Newest steps in which new ground is counted."""
MANY = 4
"""Steps in the window with new ground that are sprawl; fewer only raise the score, since most long runs have them."""
MAX_KINDS = 32
"""Tools, or programs of a shell, that are remembered: those used last."""
MAX_TARGETS = 64
"""Targets that are remembered: those used last."""
BITS = 0xFFFF
"""The bits of a hash that are stored. If two hashes collide, something new is taken for known."""


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `tool` of the newest step with new ground; `count` of such steps."""
    kept = table(memory)
    kinds, targets = numbers(kept, "kinds"), numbers(kept, "targets")
    actions = count(kept, "actions")
    opened = [step for step in numbers(kept, "opened") if step > features.index - WINDOW]
    if features.call is None:
        return settle({**_without_last(kept), "opened": opened}, memory)
    shell = features.shell
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
    """Return the `most` items used last, oldest first: an item that is used again moves to the end."""
    if not found or found == known[-len(found) :]:
        return known
    return [*[item for item in known if item not in found], *dict.fromkeys(found)][-most:]


def _score(opened: int) -> float:
    return min(1.0, 0.7 + 0.1 * (opened - MANY)) if opened >= MANY else 0.1 * opened


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    new = [action for action in recall.at(finding.steps) if action.shown]
    evidence = "You seem to open new ground late in the run."
    if new:
        last = f", most recently with {new[-1].shown}" if rung == 1 else ""
        evidence = f"Late in the run you have turned to new things{last}."
    return f"{evidence} {_NEXT[rung]}"


_NEXT = {
    1: "Name the one open question that decides the task, and go on with that one only.",
    2: "Finish what is open now before you begin anything new.",
    3: "Take a step of another kind: one that answers what is open with what you have.",
}
