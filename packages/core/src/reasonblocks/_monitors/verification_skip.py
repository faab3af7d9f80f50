"""Detects unchecked changes: done is declared without a check, or the same files are changed again and again."""

from __future__ import annotations

import re

from ..types import JSON
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
_CHECKS = frozenset(("test", "read", "search"))
_DONE = re.compile(
    r"\b(?:(?:task|work|implementation|fix|change|changes|everything|all|it|this|that)(?:['’]s| is| are| has been"
    r"| have been)? (?:now )?(?:complete|completed|done|finished|implemented|fixed|resolved)"
    r"|i(?:['’]ve| have) (?:now )?(?:successfully )?(?:completed|finished|fixed|implemented|resolved))\b|\A\W*done\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` done or many; `tool` of the last change; `count` of repeated changes."""
    kept = table(memory)
    if not _CHECKS.isdisjoint(features.roles):
        return Finding(memory={})
    edits, targets = numbers(kept, "edits"), numbers(kept, "targets")
    again, tool = count(kept, "again"), kept.get("tool", "")
    left: dict[str, JSON] = {name: value for name, value in kept.items() if name != "last"}
    if _declares_done(features) and edits:
        facts: dict[str, JSON] = {"kind": "done", "tool": tool, "count": again}
        return settle(left, memory, 0.8, [*edits[-3:], features.index], facts)
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


def _known(targets: tuple[int, ...], known: list[int]) -> bool:
    """Return True if all targets were changed before.

    With as many targets as a step can have, the changed file may be among those that were left out.
    """
    return 0 < len(targets) < STEP_TARGETS and all(map(known.__contains__, targets))


def _declares_done(features: Features) -> bool:
    return "finish" in features.roles or (features.call is None and _DONE.search(features.thought) is not None)


def say(finding: Finding, rung: int) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a request to wrap up (3)."""
    kind, tool = texts(finding.facts, "kind", "tool")
    if kind == "done":
        *edits, end = finding.steps
        changed = at_steps(edits).lower()
        what = f"Step {end} declares the work done, but nothing has checked what {tool} changed in {changed}."
    else:
        what = f"{at_steps(finding.steps)} made changes with {tool} and nothing has checked them since."
    return f"{what} {_NEXT[rung]}"


_NEXT = {
    1: "Run the one test, or read back the one file, that would show whether the change works.",
    2: "Check the change now, before the next one.",
    3: "Wrap up: run one check, then report what it showed.",
}
