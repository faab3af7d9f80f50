"""Sees conclusions that the tools contradict, or that rest on assumption in place of evidence."""

from __future__ import annotations

import re

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts

__all__ = ["FAILURE_TYPE", "NAME", "observe", "say"]

NAME = "claim_contradiction"
FAILURE_TYPE = "contradiction"

CLAIM_HEAD = 240
"""Characters from the start of a thought within which it speaks of the result just seen."""
WINDOW = 8
"""Steps over which assumptions add up."""

_ASSUMING = frozenset(
    "assume assuming pretend simulate simulating simulated placeholder placeholders made dummy hypothetical "
    "hypothetically mock fake".split()
)
"""Without one of these words no thought matches the next rule: most steps never meet it."""
_ASSUMED = re.compile(
    r"\b(?:i(?:['’]ll| will|['’]m| am)?(?: just| have to| need to| going to)? "
    r"(?:assum(?:e|ing)|pretend|simulat(?:e|ing))"
    r"|let(?:['’]s| me| us) (?:just )?(?:assume|pretend|simulate)|assuming (?:that|the|this|it)"
    r"|we(?:['’]ll| will| can)? (?:assume|pretend|simulate)|placeholders?|made[- ]up|dummy (?:data|values?)"
    r"|hypothetical(?:ly)?|(?:mock|fake|simulated) (?:data|responses?|results?|outputs?|values?))\b"
)
_SUCCESS = re.compile(
    r"\b(?:(?:that|this|it|everything|all(?: tests)?|the (?:command|query|test|tests|fix|change|update|call)) "
    r"(?:now )?(?:works?|worked|passe[sd]|pass|succeeded)|(?:was|were|has been|have been|been) success(?:ful|fully)"
    r"|success(?:ful|fully) (?:executed|completed|created|updated|installed|fixed|applied|added|sent|booked))\b"
)
_DENIED = re.compile(
    r"\b(?:not|\w+n['’]t|fail(?:s|ed|ing|ure)?|errors?|but|however|unfortunately|no|if|should|could|would|let)\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `kind` claim or assumed; `tool` whose failing result is passed over, or that was called."""
    kept = table(memory)
    failed = numbers(kept, "failed")
    assumed = [step for step in numbers(kept, "assumed") if step > features.index - WINDOW]
    now = _assumes(features)
    assumed = [*assumed, features.index] if now else assumed
    left: dict[str, JSON] = {"assumed": assumed} if assumed else {}
    if features.error is not None:
        left.update(failed=[features.index], tool=features.tool)
    if failed and _claims(features.thought[:CLAIM_HEAD]):
        return settle(left, memory, 0.8, [*failed, features.index], {"kind": "claim", "tool": kept.get("tool")})
    score = 0.25 + 0.2 * len(assumed) if now else 0.0
    return settle(left, memory, score, assumed, {"kind": "assumed", "tool": features.tool})


def _assumes(features: Features) -> bool:
    return not _ASSUMING.isdisjoint(features.vocabulary) and _ASSUMED.search(features.thought) is not None


def _claims(head: str) -> bool:
    return _SUCCESS.search(head) is not None and _DENIED.search(head) is None


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    kind, tool = texts(finding.facts, "kind", "tool")
    if kind == "claim":
        failed, claimed = finding.evidence[0], finding.evidence[-1]
        what = f"Step {claimed} speaks of success, but the result of {tool} in step {failed} was an error."
    else:
        what = (
            f"{at_steps(finding.evidence)} put an assumption in place of a result{tool and f' before calling {tool}'}."
        )
    return f"{what} {_NEXT[rung][kind]}"


_NEXT = {
    1: {
        "claim": "Look at that error again and settle it before you build on it.",
        "assumed": "Replace the assumption that matters most by a tool call that shows the real value.",
    },
    2: {
        "claim": "Settle that error now.",
        "assumed": "Get the real value from a tool now, or say that it cannot be had.",
    },
    3: {
        "claim": "Wrap up: report what worked and what failed, as the results show it.",
        "assumed": "Wrap up: answer with what the tools have shown, and name each assumption as one.",
    },
}
