"""A monitor's finding in one step, whose score fades in the steps after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..types import JSON
from .memory import EMPTY, fraction, numbers, table

FADE = 0.7
"""Share of a score that is left after a step without a new finding: a monitor that fired is quiet two steps later."""
FORGOTTEN = 0.05
"""A faded score below this becomes 0."""
MAX_STEPS = 5
"""Steps that a finding names: the newest ones."""


@dataclass(slots=True, kw_only=True)  # not frozen, because each step makes one and a frozen one takes twice as long
class Finding:
    """A score in [0, 1] (1 is worst), the `steps` that show it, oldest first, and the `facts` that its text needs."""

    score: float = 0.0
    memory: JSON = None
    steps: tuple[int, ...] = ()
    facts: Mapping[str, JSON] = field(default_factory=dict)


def settle(
    kept: dict[str, JSON],
    old: JSON,
    score: float = 0.0,
    steps: Iterable[int] = (),
    facts: Mapping[str, JSON] = EMPTY,
) -> Finding:
    """Return the new finding, or the faded last one if its score is higher; `kept` is the rest of the memory."""
    last = table(old).get("last")
    if not last and not score:
        return Finding(memory=kept)
    before = table(last)
    faded = round(fraction(before, "score") * FADE, 3)
    if score and score >= faded:
        return _remember(kept, round(min(1.0, score), 3), tuple(sorted(set(steps)))[-MAX_STEPS:], facts)
    if faded < FORGOTTEN:
        return Finding(memory=kept)
    return _remember(kept, faded, tuple(numbers(before, "evidence")), table(before.get("facts")))


def _remember(kept: dict[str, JSON], score: float, steps: tuple[int, ...], facts: Mapping[str, JSON]) -> Finding:
    """Return the finding with a copy of itself in its memory, where the steps have the key `evidence`."""
    last: dict[str, JSON] = {"score": score, "evidence": list(steps), "facts": dict(facts)}
    return Finding(score=score, memory={**kept, "last": last}, steps=steps, facts=facts)
