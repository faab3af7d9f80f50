"""Detects new tools, targets and calls in a run that should converge, and calls that are new but bring nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..types import JSON
from .arguments import longer_words
from .features import Features
from .finding import Finding, settle
from .memory import count, numbers, table, texts
from .outcome import hash_of
from .recall import Recall
from .wording import STALE_ADVICE, insisted, nothing_gained, told

NAME = "late_sprawl"
FAILURE_TYPE = "sprawl"

DEEP = 20
"""Actions after which a run should converge."""
WINDOW = 10
"""Newest steps in which new ground is counted."""
MANY = 4
"""Steps in the window with new ground that are sprawl; fewer only raise the score, since most long runs have them."""
SETTLED = 5
"""Actions after which a run has found its way, so that new calls should bring something new."""
NEWEST = 5
"""Newest steps in which new calls that bring nothing are counted."""
BARREN = 3
"""Such calls that are sprawl."""
ABOVE = 0.05
"""Margin over the score of results that were there before, which is less exact about the calls."""
LIKELY = 0.5
"""Chance that the trouble lasts from which on such calls are sprawl: without it they are a search that takes long."""
MAX_KINDS = 32
"""Tools, or programs of a shell, that are remembered: those used last."""
MAX_TARGETS = 64
"""Targets that are remembered: those used last."""
BITS = 0xFFFF
"""The bits of a hash that are stored. If two hashes collide, something new is taken for known."""


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` sprawl or barren; `tool` of the newest such step; `count` of them."""
    kept = table(memory)
    kinds, targets = numbers(kept, "kinds"), numbers(kept, "targets")
    actions = count(kept, "actions")
    opened = [step for step in numbers(kept, "opened") if step > features.index - WINDOW]
    barren = [step for step in numbers(kept, "barren") if step > features.index - NEWEST]
    if features.call is None:
        return settle({**_without_last(kept), "opened": opened, "barren": barren}, memory)
    shell = features.shell
    now_kinds = [kind & BITS for kind in (features.kinds if shell else (hash_of(features.tool),))]
    now_targets = [target & BITS for target in features.targets]
    fresh = actions >= DEEP and _has_new(now_kinds, kinds) and (not shell or _has_new(now_targets, targets))
    fresh = fresh and not _belongs(features)
    opened = [*opened, features.index] if fresh else opened
    vain = actions >= SETTLED and features.barren and not features.brought.same_call and "test" not in features.roles
    barren = [*barren, features.index] if vain else barren
    left: dict[str, JSON] = {
        "kinds": _used(now_kinds, kinds, MAX_KINDS),
        "targets": _used(now_targets, targets, MAX_TARGETS) if shell else targets,
        "actions": min(DEEP, actions + 1),
        "opened": opened,
        "barren": barren,
    }
    if vain and len(barren) >= BARREN and features.lasting >= LIKELY:
        facts: dict[str, JSON] = {"kind": "barren", "tool": features.tool, "count": len(barren)}
        return settle(left, memory, max(0.35 + 0.1 * len(barren), features.lasting + ABOVE), barren, facts)
    score = _score(len(opened)) if fresh else 0.0
    return settle(left, memory, score, opened, {"kind": "sprawl", "tool": features.tool, "count": len(opened)})


def _belongs(features: Features) -> bool:
    """Return True for a check, and for a call that is about something that the task names."""
    return "test" in features.roles or not features.given.isdisjoint(longer_words(features.task))


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
    (kind,) = texts(finding.facts, "kind")
    if kind == "barren":
        return told(recall, finding.steps, rung, nothing_gained, STALE_ADVICE)
    if insisted(recall) or len(recall.failed_lately()) > 1:
        return told(recall, finding.steps, rung, _turned, _NEXT)
    evidence = _turned(recall, finding.steps, rung)
    return f"{evidence} {_NEXT[rung]}" if evidence else ""


def _turned(recall: Recall, steps: Sequence[int], rung: int) -> str:
    new = [action for action in recall.at(steps) if action.shown]
    last = f", most recently with {new[-1].shown}" if new and rung == 1 else ""
    return f"Late in the run you have turned to new things{last}." if new else ""


_NEXT = {
    1: "Say which one question decides the task, and go on with that one only.",
    2: "Go on with what decides the task.",
    3: "Take a step of another kind: one that answers what is open with what you have.",
}
