"""A run in which the user says something before call 2: what every adapter has to make of it.

Each adapter's tests play it on a real agent, in the way in which a message reaches a run of that framework.
"""

from __future__ import annotations

from collections.abc import Sequence

from reasonblocks.types import Step, TraceState

__all__ = ["AT", "LOOKS", "SAID", "Heard", "check"]

SAID = "Only the parser, please."
LOOKS = 3
"""The calls of the model that call a tool; the next one ends the run."""
AT = 2
"""The call before which the user says it."""


class Heard:
    """A scorer that keeps the user's texts of the steps which it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, step: Step) -> float:
        self.texts.append(step.user_text)
        return 0.4


def check(heard: Sequence[str], state: TraceState) -> None:
    """The step of that call has the text, no other has one, and the mark of the run's account is there."""
    assert list(heard) == [SAID if step == AT else "" for step in range(LOOKS + 1)]
    assert state.account.mark == AT
