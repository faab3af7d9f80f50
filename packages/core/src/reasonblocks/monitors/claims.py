"""Doubts about the end of a run, by the record of its changes and checks (MONITORS section 4)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..types import Account, Doubt, Patience, Step
from ..util.text import clip

_FAILED = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)|unable|unfortunately|could(?: not|n['’]t)|can(?:not|['’]t)"
    r"|did(?: not|n['’]t) (?:work|pass)"
    r"|not (?:possible|able|fixed|resolved|solved|done|finished|completed?|working)|incomplete|unresolved"
    r"|still broken)\b",
    re.IGNORECASE,
)
"""The answer itself reports that something failed."""
_RAN = re.compile(
    r"\b(?:i|we)(?:['’]ve| have)? (?:just |also |then )?(?:ran|run|re-?ran|executed) (?:\w+ ){0,3}?(?:tests?|test suite"
    r"|type ?check\w*|lint\w*|build)\b|\b\d+ (?:tests? )?passed\b|\ball (?:\d+ )?tests? (?:now )?pass(?:ed)?\b",
    re.IGNORECASE,
)
"""The answer claims a check, in English."""


def doubts_of(step: Step, index: int, account: Account, patience: Patience) -> Iterator[tuple[str, Doubt]]:
    """Yield the kind and the doubt of each claim that the record contradicts, if the run would end with this step.

    Any final answer counts as a claim of success, unless it says that something failed; a run without an answer claims
    nothing.
    """
    said = _said(step)
    if not account.did.finished or not (said.strip() or step.tool_calls) or _FAILED.search(said):
        return
    check, seen = account.check, account.steps == index + 1
    if check is not None and check.failed and not check.since:
        ago = steps_ago(index - check.step, "before this answer")
        text = f"The newest check, {ago}, failed, and no change was seen after it."
        yield "red", Doubt(monitor="claim_contradiction", text=text)
    elif check is None and seen and not account.tested and _RAN.search(said):
        none = "no call of this run was recognised as a test, build, type or lint check"
        text = f"The answer says that a check was run, but {none}."
        yield "claim", Doubt(monitor="claim_contradiction", text=text)
    if account.edits and (check is not None or (patience.checks and seen and not account.tested)):
        since = " since the newest check" if check is not None else ""
        text = f"Files were changed{since}, and no check was seen after that."
        yield "done", Doubt(monitor="verification_skip", text=text)


def _said(step: Step) -> str:
    texts = [step.thought if step.thought.strip() else step.reasoning]
    texts += [value for call in step.tool_calls for value in _values(call.arguments)]
    return clip("\n".join(texts))


def _values(given: object) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [value for value in given.values() if isinstance(value, str)] if isinstance(given, dict) else []


def steps_ago(count: int, after: str) -> str:
    """Return how many steps something is ago."""
    return f"{count} step{'s' * (count != 1)} {after}" if count else "in this step"
