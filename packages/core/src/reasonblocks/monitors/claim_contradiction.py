"""Sees conclusions that the tools contradict, or that rest on assumption in place of evidence."""

from __future__ import annotations

import re

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts
from .values import values_in

__all__ = ["FAILURE_TYPE", "NAME", "observe", "say"]

NAME = "claim_contradiction"
FAILURE_TYPE = "contradiction"

CLAIM_HEAD = 240
"""Characters from the start of a thought within which it speaks of the result just seen."""
WINDOW = 8
"""Steps over which assumptions add up."""
ONE = 0.3
"""One assumption alone is noted: recorded runs that assume something once end as others do."""

_ASSUMING = frozenset(
    "assume assuming pretend simulate simulating simulated placeholder placeholders made dummy hypothetical "
    "hypothetically mock fake".split()
)
"""Without one of these words no thought matches the next rule: most steps never meet it."""
_INVENTED = r"(?:dummy|mock|fake|simulated|made[- ]up|hypothetical|placeholders?)"
_ASSUMED = re.compile(
    r"\b(?:i(?:['’]ll| will|['’]m| am)?(?: just| have to| need to| going to)? "
    r"(?:assum(?:e|ing)|pretend|simulat(?:e|ing))"
    r"|let(?:['’]s| me| us) (?:just )?(?:assume|pretend|simulate)|assuming (?:that|the|this|it)"
    r"|we(?:['’]ll| will| can)? (?:assume|pretend|simulate)|hypothetical(?:ly)?"
    rf"|(?:us(?:e|ing)|with|insert(?:ing)?|fill(?:ing)? in) (?:an? |some )?{_INVENTED} "
    r"(?:data|responses?|results?|outputs?|values?|numbers?|figures?))\b"
)
_DONE = (
    r"(?:fixed|resolved|solved|cancell?ed|updated|created|booked|sent|deleted|refunded|changed|added|saved|installed"
    r"|deployed|merged|submitted|completed?|processed|placed|moved|removed|executed|applied|transferred|paid)"
)
_SUCCESS = re.compile(
    r"\b(?:(?:that|this|it|everything|all(?: of (?:the|them))?(?: \d+)?(?: tests)?"
    r"|(?:the )?(?:command|query|tests?|test suite|suite|fix|change|update|call|build)) "
    r"(?:now )?(?:works?|worked|passe[sd]|pass|succeeded|(?:is|are) (?:now )?(?:green|passing|working))"
    r"|(?:was|were|has been|have been|been) success(?:ful|fully)"
    rf"|(?:is|are|was|were|has been|have been) (?:now )?{_DONE}|i(?:['’]ve| have) (?:now )?(?:successfully )?{_DONE}"
    rf"|success(?:ful|fully) {_DONE}|{_DONE} successfully)\b"
)
_DENIED = re.compile(
    r"\b(?:not|\w+n['’]t|fail(?:s|ed|ing|ure|ures)?|errors?|but|however|unfortunately|no|if|should|could|would|let"
    r"|how|why|whether|when|once|until|before|except|understand|ensure|sure|see|verify|check|actually|wait|hmm"
    r"|confirm(?:s|ed)?|reproduce[sd]?|expect(?:ed|s)?)\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `kind` claim, value or assumed; `tool` whose failing result is passed over, or that was called."""
    kept = table(memory)
    failed = numbers(kept, "failed")
    assumed = [step for step in numbers(kept, "assumed") if step > features.index - WINDOW]
    now = _assumes(features)
    assumed = [*assumed, features.index] if now else assumed
    other, values = values_in(features, table(kept.get("values")))
    left: dict[str, JSON] = {"assumed": assumed} if assumed else {}
    if values:
        left["values"] = dict(values)
    if features.failing:
        left.update(failed=[features.index], tool=features.tool)
    elif failed and features.result is None:
        left.update(failed=failed, tool=kept.get("tool"))
    if failed and _claims(features.thought[:CLAIM_HEAD]):
        return settle(left, memory, 0.8, [*failed, features.index], {"kind": "claim", "tool": kept.get("tool")})
    if other:
        return settle(left, memory, 0.75, other, {"kind": "value", "tool": features.tool})
    score = (ONE if len(assumed) == 1 else 0.25 + 0.2 * len(assumed)) if now else 0.0
    return settle(left, memory, score, assumed, {"kind": "assumed", "tool": features.tool})


def _assumes(features: Features) -> bool:
    return not _ASSUMING.isdisjoint(features.vocabulary) and _ASSUMED.search(features.thought) is not None


def _claims(head: str) -> bool:
    return _SUCCESS.search(head) is not None and _DENIED.search(head) is None


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    kind, tool = texts(finding.facts, "kind", "tool")
    before = tool and f" before calling {tool}"
    if kind == "claim":
        failed, claimed = finding.evidence[0], finding.evidence[-1]
        what = f"Step {claimed} speaks of success, but the result of {tool} in step {failed} was an error."
    elif kind == "value":
        what = f"{at_steps(finding.evidence)} give different values for the same thing{before}."
    else:
        what = f"{at_steps(finding.evidence)} put an assumption in place of a result{before}."
    return f"{what} {_NEXT[rung][kind]}"


_NEXT = {
    1: {
        "claim": "Look at that error again and settle it before you build on it.",
        "value": "Look the value up once more where it comes from, and say which one holds and why.",
        "assumed": "Replace the assumption that matters most by a tool call that shows the real value.",
    },
    2: {
        "claim": "Settle that error now.",
        "value": "Look it up now and keep to what you find.",
        "assumed": "Get the real value from a tool now, or say that it cannot be had.",
    },
    3: {
        "claim": "Wrap up: report what worked and what failed, as the results show it.",
        "value": "Wrap up: give the one value that a result shows, and name the others as withdrawn.",
        "assumed": "Wrap up: answer with what the tools have shown, and name each assumption as one.",
    },
}
