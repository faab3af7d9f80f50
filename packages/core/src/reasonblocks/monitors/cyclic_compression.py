"""Detects the same state derived again: nothing new in the results, resources read again, plans word by word."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import JSON
from .features import Features
from .finding import Finding, settle
from .memory import numbers, table, texts
from .outcome import hash_of
from .recall import Recall
from .wording import STALE_ADVICE, had_before, nothing_new, told, turns

NAME = "cyclic_compression"
FAILURE_TYPE = "churn"

MAX_SEEN = 32
"""Calls with their results that are remembered: the newest ones."""
MAX_PLANS = 16
"""Plans that are remembered: the newest ones."""
SPREAD = 0x9E3779B1
"""An odd factor for the result's hash, so that a call and a result with the same text do not cancel out."""
WINDOW = 15
"""Newest steps whose repetitions are counted."""
PLAN_WORDS = 25
"""Words of the shortest thought that is a plan and not a phrase."""
PLAN_EDGE = 48
"""Words of a plan that are compared at each end."""


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` stale or churn; `tool` of the newest repetition; `count` of repetitions."""
    kept = table(memory)
    seen = [] if features.changed else numbers(kept, "seen")
    plans = numbers(kept, "plans")
    answered = _answered(features)
    plan = _plan(features.words)
    fresh = any(map(seen[:-1].__contains__, answered)) or any(map(plans.__contains__, plan))
    again = [step for step in numbers(kept, "again") if step > features.index - WINDOW]
    again = [*again, features.index] if fresh else again
    left: dict[str, JSON] = {
        "seen": [*seen, *answered][-MAX_SEEN:],
        "plans": [*plans, *plan][-MAX_PLANS:],
        "again": again,
    }
    score = min(1.0, 0.2 * len(again) + 0.1) if fresh and len(again) >= features.asked else 0.0
    known = features.lasting if features.barren and features.known_row > 1 else 0.0
    if known > score and features.known_row > features.asked:
        row = range(features.index - features.known_row + 1, features.index + 1)
        return settle(left, memory, known, row, {"kind": "stale", "tool": features.tool, "count": len(row)})
    planned = any(map(plans.__contains__, plan))
    return settle(left, memory, score, again, {"tool": features.tool, "count": len(again), "plan": planned})


def _answered(features: Features) -> list[int]:
    """Return one hash of the call and its result; none for an error or a progress report, which answer nothing."""
    if features.call is None or features.waiting or features.failing:
        return []
    return [features.call ^ ((features.result or 0) * SPREAD & 0xFFFFFFFF)]


def _plan(words: Sequence[str]) -> list[int]:
    if len(words) < PLAN_WORDS:
        return []
    edges = words if len(words) <= 2 * PLAN_EDGE else (*words[:PLAN_EDGE], str(len(words)), *words[-PLAN_EDGE:])
    return [hash_of(" ".join(edges))]


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    (kind,) = texts(finding.facts, "kind")
    if kind == "stale" and (text := told(recall, finding.steps, rung, nothing_new, STALE_ADVICE)):
        return text
    text = told(recall, finding.steps, rung, had_before, {})
    if text or not finding.facts.get("plan"):
        return text
    return f"A thought that you wrote before is repeated word for word ({_place(finding, recall)}). {_NEXT[rung]}"


def _place(finding: Finding, recall: Recall) -> str:
    return turns(recall, finding.steps[-1:], "message")


_NEXT = {
    1: "Take the first step of it that is still open, or say what keeps you from it.",
    2: "Take its next open step now.",
    3: "Take a step of another kind: the first one of the plan that is still open.",
}
"""The next action after a plan that was written again."""
