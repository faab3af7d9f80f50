"""What is said when no single finding is plain enough, and the evidence together is."""

from __future__ import annotations

from collections.abc import Mapping

from .finding import Finding, at_steps

__all__ = ["hints", "hint_text"]

FEWEST = 2
"""Steps that evidence needs to be named."""


def hints(shown: Mapping[str, tuple[int, ...]], usual: Mapping[str, float], quiet: float) -> dict[str, Finding]:
    """By monitor, of those whose score by evidence is above the quiet one and that have steps to name."""
    return {
        name: Finding(score=usual[name], evidence=steps)
        for name, steps in shown.items()
        if len(steps) >= FEWEST and usual[name] > quiet
    }


def hint_text(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    return f"{at_steps(finding.evidence)} failed, or brought a result that was there before. {_NEXT[rung]}"


_NEXT = {
    1: "Say in one line what they have shown, and take the step that would show something new.",
    2: "Leave this way now and try one that was not tried.",
    3: "Wrap up: give the best answer that the results so far support, and say what did not work.",
}
