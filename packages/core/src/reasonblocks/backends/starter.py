"""Standing rules that hold for every agent: what is injected at the first call when nobody gave a store."""

from __future__ import annotations

from ..types import Pattern

__all__ = ["STARTER_RULES"]

_INSTRUCTIONS = {
    "rb-check-before-done": "Before you say that something is done, run the check that would show that it is not.",
    "rb-error-first": "After an error, read what it names and change that before you try again.",
    "rb-no-same-call": "The same call gives the same result until something is changed: change it, or move on.",
    "rb-no-stand-ins": "Where a fact is missing, look it up with a tool; a made-up value is worse than none.",
}

STARTER_RULES = tuple(
    Pattern(id=name, tier="e3", fields={"instruction": instruction}) for name, instruction in _INSTRUCTIONS.items()
)
