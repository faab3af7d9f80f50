"""Detects unchecked changes: done is declared without a check, or the same files are changed again and again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ..types import JSON
from .ending import admits, checks, declares_done
from .features import MAX_TARGETS as STEP_TARGETS
from .features import Features
from .finding import Finding, settle
from .memory import count, numbers, table, texts
from .recall import Action, Recall
from .wording import quoted, where

NAME = "verification_skip"
FAILURE_TYPE = "unverified"

MAX_EDITS = 8
"""Steps with a change that are remembered: the newest ones."""
MAX_TARGETS = 48
"""Changed targets that are remembered: the newest ones."""
MANY = 4
"""Repeated changes of files without a check that are too many; the first change of each file does not count."""
SHOWN = 200
"""A change's result from this length on, in characters, shows what is there now, so that the agent sees its change."""
_LOOKS = frozenset(("read", "search"))


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` done, many or nothing; `tool` of the last change, or of the last look;
    `count` of repeated changes.
    """
    kept = table(memory)
    if checks(features):
        return Finding(memory=_looked(features))
    edits, targets = numbers(kept, "edits"), numbers(kept, "targets")
    again, tool = count(kept, "again"), kept.get("tool", "")
    left: dict[str, JSON] = {name: value for name, value in kept.items() if name != "last"}
    if declares_done(features) and (edits or kept.get("blind")) and not (not edits and admits(features)):
        facts: dict[str, JSON] = {"kind": "done" if edits else "nothing", "tool": tool, "count": again}
        return settle(left, memory, 0.8, [*(edits[-3:] or numbers(kept, "blind")), features.index], facts)
    if not features.changed:
        return settle(left, memory)
    unseen = features.lengths[2] < SHOWN or features.stale
    again += unseen and _known(features.targets, targets)
    left = {
        "edits": [*edits, features.index][-MAX_EDITS:],
        "targets": [*dict.fromkeys([*targets, *features.targets])][-MAX_TARGETS:],
        "again": again,
        "tool": features.tool,
    }
    score = min(1.0, 0.65 + 0.1 * (again - MANY)) if again >= MANY else 0.0
    return settle(left, memory, score, numbers(left, "edits"), {"kind": "many", "tool": features.tool, "count": again})


def _looked(features: Features) -> dict[str, JSON]:
    """Return the memory after a check: all changes are checked, and a look that failed is remembered."""
    blind = features.failing and features.roles and features.roles <= _LOOKS
    return {"blind": [features.index], "tool": features.tool} if blind else {}


def _known(targets: tuple[int, ...], known: list[int]) -> bool:
    """Return True if all targets were changed before.

    With as many targets as a step can have, the changed file may be among those that were left out.
    """
    return 0 < len(targets) < STEP_TARGETS and all(map(known.__contains__, targets))


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    (kind,) = texts(finding.facts, "kind")
    if kind == "done":
        evidence = _done(finding.steps, rung, recall)
    elif kind == "nothing":
        evidence = _blind(finding.steps, rung, recall)
    else:
        evidence = _many(rung, recall)
    return f"{evidence} {_NEXT[rung][kind]}" if evidence else ""


def _done(steps: Sequence[int], rung: int, recall: Recall) -> str:
    edits = [action for action in recall.at(steps[:-1]) if action.edits and action.shown]
    if not edits or any(action.checks for action in recall.actions if action.step > edits[-1].step):
        return ""
    place = f" ({where(recall, edits[-1:])})" if rung == 1 else ""
    return f"You have declared the work done, but nothing has checked the change by {edits[-1].shown}{place}."


def _blind(steps: Sequence[int], rung: int, recall: Recall) -> str:
    looks = [action for action in recall.at(steps[:-1]) if action.failed and action.shown]
    if not looks:
        return ""
    place = f" ({where(recall, looks[-1:])})" if rung == 1 else ""
    said = quoted(looks[-1]) if rung == 1 else ""
    return f"You have given the answer, but the last look, {looks[-1].shown}{place}, failed{said}."


def _many(rung: int, recall: Recall) -> str:
    unchecked = [action for action in reversed([*takewhile(_is_unchecked, reversed(recall.actions))]) if action.edits]
    if len(unchecked) < 2 or not unchecked[-1].shown:
        return ""
    newest = f", the newest being {unchecked[-1].shown} ({where(recall, unchecked[-1:])})" if rung == 1 else ""
    return f"Nothing has checked your last {len(unchecked)} changes{newest}."


def _is_unchecked(action: Action) -> bool:
    return not action.checks


_CHECK = {
    1: "Run the one test, or read back the one file, that would show whether the change works.",
    2: "Check the change now, before the next one.",
    3: "Take a step of another kind: one check that shows what works and what does not.",
}
_LOOK = {
    1: "Take the one look that would show whether the answer holds, or say in the answer that it is not checked.",
    2: "Look again now, or say that it is not checked.",
    3: "Take a step of another kind: a look in another place, or an answer that says what is not known.",
}
_NEXT = {rung: {"done": _CHECK[rung], "many": _CHECK[rung], "nothing": _LOOK[rung]} for rung in (1, 2, 3)}
