"""Detects unchecked changes: done is declared without a check, or the same files are changed again and again."""

from __future__ import annotations

from ..types import JSON
from .ending import admits, declares_done
from .features import MAX_TARGETS as STEP_TARGETS
from .features import Features
from .finding import Finding, at_steps, settle
from .memory import count, numbers, table, texts

NAME = "verification_skip"
FAILURE_TYPE = "unverified"

MAX_EDITS = 8
"""Steps with a change that are remembered: the newest ones."""
MAX_TARGETS = 48
"""Changed targets that are remembered: the newest ones."""
MANY = 4
"""Repeated changes of files without a check that are too many; the first change of each file does not count."""
_LOOKS = frozenset(("read", "search"))
_CHECKS = frozenset(("test", "read", "search"))


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` done, many or nothing; `tool` of the last change, or of the last look;
    `count` of repeated changes.
    """
    kept = table(memory)
    if _checks(features):
        return Finding(memory=_looked(features))
    edits, targets = numbers(kept, "edits"), numbers(kept, "targets")
    again, tool = count(kept, "again"), kept.get("tool", "")
    left: dict[str, JSON] = {name: value for name, value in kept.items() if name != "last"}
    if declares_done(features) and (edits or kept.get("blind")) and not (not edits and admits(features)):
        facts: dict[str, JSON] = {"kind": "done" if edits else "nothing", "tool": tool, "count": again}
        return settle(left, memory, 0.8, [*(edits[-3:] or numbers(kept, "blind")), features.index], facts)
    if not features.changed:
        return settle(left, memory)
    again += _known(features.targets, targets)
    left = {
        "edits": [*edits, features.index][-MAX_EDITS:],
        "targets": [*dict.fromkeys([*targets, *features.targets])][-MAX_TARGETS:],
        "again": again,
        "tool": features.tool,
    }
    score = min(1.0, 0.65 + 0.1 * (again - MANY)) if again >= MANY else 0.0
    return settle(left, memory, score, numbers(left, "edits"), {"kind": "many", "tool": features.tool, "count": again})


def _checks(features: Features) -> bool:
    """Return True for a look, a test, and a command that changes nothing and shows something."""
    if not _CHECKS.isdisjoint(features.roles):
        return True
    return features.shell and "edit" not in features.roles and features.lengths[2] > 0


def _looked(features: Features) -> dict[str, JSON]:
    """Return the memory after a check: all changes are checked, and a look that failed is remembered."""
    blind = features.failing and features.roles and features.roles <= _LOOKS
    return {"blind": [features.index], "tool": features.tool} if blind else {}


def _known(targets: tuple[int, ...], known: list[int]) -> bool:
    """Return True if all targets were changed before.

    With as many targets as a step can have, the changed file may be among those that were left out.
    """
    return 0 < len(targets) < STEP_TARGETS and all(map(known.__contains__, targets))


def say(finding: Finding, rung: int) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a request to wrap up (3)."""
    kind, tool = texts(finding.facts, "kind", "tool")
    if kind == "done":
        *edits, end = finding.steps
        changed = at_steps(edits).lower()
        what = f"Step {end} declares the work done, but nothing has checked what {tool} changed in {changed}."
    elif kind == "nothing":
        look, end = finding.steps[0], finding.steps[-1]
        what = f"Step {end} gives the answer, but the last look, with {tool} in step {look}, failed."
    else:
        what = f"{at_steps(finding.steps)} made changes with {tool} and nothing has checked them since."
    return f"{what} {_NEXT[rung]}"


_NEXT = {
    1: "Run the one test, or read back the one file, that would show whether the change works.",
    2: "Check the change now, before the next one.",
    3: "Wrap up: run one check, then report what it showed.",
}
