"""What one monitor says of one step, kept in its own memory until it has faded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

from ..types import JSON

FADE = 0.7
"""What is left of a score after a step that brought nothing new: a fired monitor is quiet some two steps later."""
FORGOTTEN = 0.05
"""A faded score below this is 0."""
MAX_EVIDENCE = 5
"""Steps that a finding names at most: the newest ones."""
_NOTHING: Mapping[str, JSON] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`score` in [0, 1], 1 is worst; `evidence` the steps that show it, oldest first; `facts` what the text needs."""

    score: float = 0.0
    memory: JSON = None
    evidence: tuple[int, ...] = ()
    facts: Mapping[str, JSON] = field(default_factory=dict)


def settle(
    kept: dict[str, JSON],
    old: JSON,
    score: float = 0.0,
    evidence: Iterable[int] = (),
    facts: Mapping[str, JSON] = _NOTHING,
) -> Finding:
    """The new finding, or the faded old one when that is still the worse; `kept` is what else the memory holds."""
    last = table(old).get("last")
    if not last and not score:
        return Finding(memory=kept)
    before = table(last)
    faded = round(cast("float", before.get("score", 0.0)) * FADE, 3)
    if score and score >= faded:
        return _keep(kept, round(min(1.0, score), 3), tuple(sorted(set(evidence)))[-MAX_EVIDENCE:], facts)
    if faded < FORGOTTEN:
        return Finding(memory=kept)
    return _keep(kept, faded, tuple(numbers(before, "evidence")), table(before.get("facts")))


def _keep(kept: dict[str, JSON], score: float, evidence: tuple[int, ...], facts: Mapping[str, JSON]) -> Finding:
    last: dict[str, JSON] = {"score": score, "evidence": list(evidence), "facts": dict(facts)}
    return Finding(score=score, memory={**kept, "last": last}, evidence=evidence, facts=facts)


# A memory is read as its own monitor wrote it: the trace state checks snapshots where they enter. Hence the types that
# are only said below: a `cast` is a call, and a step reads some forty values.


def table(value: JSON) -> Mapping[str, JSON]:
    """The object that a memory is, or an empty one before the first step."""
    return value or _NOTHING  # type: ignore[return-value]


def numbers(memory: Mapping[str, JSON], name: str) -> list[int]:
    """The whole numbers under this name, or none."""
    return memory.get(name) or []  # type: ignore[return-value]


def rows(memory: Mapping[str, JSON], name: str) -> list[list[int]]:
    """The rows of whole numbers under this name, or none."""
    return memory.get(name) or []  # type: ignore[return-value]


def texts(facts: Mapping[str, JSON], *names: str) -> list[str]:
    """These facts as text, "" where one is missing."""
    return [str(facts.get(name) or "") for name in names]


def at_steps(steps: Iterable[int]) -> str:
    """ "Step 4", "Steps 4 and 6", "Steps 4, 6 and 8"."""
    named = [str(step) for step in steps]
    if len(named) == 1:
        return f"Step {named[0]}"
    return f"Steps {', '.join(named[:-1])} and {named[-1]}"
