"""Sees changes that nothing has checked: done declared, or the same files changed again and again."""

from __future__ import annotations

import re

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts

NAME = "verification_skip"
FAILURE_TYPE = "unverified"

MAX_EDITS = 8
"""Steps with a change that are remembered: the newest ones."""
MAX_TARGETS = 48
TOO_MANY = 4
"""Targets of one step that are no longer all that it names."""
MANY = 4
"""Changes beyond the first of each file, without a check, that count as many: one each to many files is a batch."""
_CHECKS = frozenset(("test", "read", "search"))
_DONE = re.compile(
    r"\b(?:(?:task|work|implementation|fix|change|changes|everything|all|it|this|that)(?:['’]s| is| are| has been"
    r"| have been)? (?:now )?(?:complete|completed|done|finished|implemented|fixed|resolved)"
    r"|i(?:['’]ve| have) (?:now )?(?:successfully )?(?:completed|finished|fixed|implemented|resolved))\b|\A\W*done\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `kind` done or many; `tool` that made the last change; `count` of changes beyond the first of each."""
    kept = table(memory)
    if not _CHECKS.isdisjoint(features.roles):
        return Finding(memory={})
    edits, targets = numbers(kept, "edits"), numbers(kept, "targets")
    again, tool = kept.get("again", 0), kept.get("tool", "")
    left: dict[str, JSON] = {name: value for name, value in kept.items() if name != "last"}
    if _declares_done(features) and edits:
        facts: dict[str, JSON] = {"kind": "done", "tool": tool, "count": again}
        return settle(left, memory, 0.8, [*edits[-3:], features.index], facts)
    if "edit" not in features.roles or features.failing:
        return settle(left, memory)
    again = int(str(again)) + _known(features.targets, targets)
    left = {
        "edits": [*edits, features.index][-MAX_EDITS:],
        "targets": [*dict.fromkeys([*targets, *features.targets])][-MAX_TARGETS:],
        "again": again,
        "tool": features.tool,
    }
    score = min(1.0, 0.65 + 0.1 * (again - MANY)) if again >= MANY else 0.0
    return settle(left, memory, score, numbers(left, "edits"), {"kind": "many", "tool": features.tool, "count": again})


def _known(targets: tuple[int, ...], known: list[int]) -> bool:
    """Were all of them changed before? Where more are named than a step tells, the file may be among the rest."""
    return 0 < len(targets) < TOO_MANY and all(map(known.__contains__, targets))


def _declares_done(features: Features) -> bool:
    return "finish" in features.roles or (features.call is None and _DONE.search(features.thought) is not None)


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    kind, tool = texts(finding.facts, "kind", "tool")
    if kind == "done":
        *edits, end = finding.evidence
        changed = at_steps(edits).lower()
        what = f"Step {end} declares the work done, but nothing has checked what {tool} changed in {changed}."
    else:
        what = f"{at_steps(finding.evidence)} made changes with {tool} and nothing has checked them since."
    return f"{what} {_NEXT[rung]}"


_NEXT = {
    1: "Run the one test, or read back the one file, that would show whether the change works.",
    2: "Check the change now, before the next one.",
    3: "Wrap up: run one check, then report what it showed.",
}
