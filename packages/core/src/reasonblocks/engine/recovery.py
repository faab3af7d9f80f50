"""Judges whether a run recovered after it was told something: one rule for pattern statistics and reports.

A text is judged if the run was in trouble: three completed steps later, or at the run's end if that is earlier. The
run has recovered if no monitor fires and the state is neither SLOW nor SKIP; a run that ends has recovered if it
succeeded and its last step raised no doubts. A run that was abandoned, or has an unknown outcome, is not judged.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from ..types import Doubt, FSMState
from ..types.outcomes import ABANDONED, UNKNOWN, kind_of
from .gates import E1_COMPOSITE

JUDGED_AFTER = 3
"""Completed steps after a text: its effect shows one step later, and a fired monitor fades within two."""
_HARD = (FSMState.SLOW.value, FSMState.SKIP.value)

T = TypeVar("T")


def is_troubled(fired: Collection[str], state: object) -> bool:
    """Return True if a monitor fires, or if the state is SLOW or SKIP."""
    return bool(fired) or state in _HARD


def is_judged(fired: Collection[str], state: object, composite: float | None) -> bool:
    """Return True if a text in this step is judged: the run is in trouble, or close to it."""
    return is_troubled(fired, state) or (composite or 0.0) > E1_COMPOSITE


def has_ended_well(outcome: str, doubts: Collection[Doubt]) -> bool:
    """Return True if the end of a run is a recovery: a success that its last step does not contradict."""
    return kind_of(outcome) == "success" and not doubts


class Judging(Generic[T]):
    """The texts of one run that wait for their verdict, in the order of its steps."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, T]] = []

    def wait(self, step: int, item: T) -> None:
        """Add a text that was told before call `step`."""
        self._waiting.append((step, item))

    def put_off(self) -> None:
        """Extend every wait by one call, after a call that was not a step."""
        self._waiting = [(step + 1, item) for step, item in self._waiting]

    def due(self, step: int) -> list[T]:
        """Remove and return the texts whose verdict call `step` brings."""
        due = [item for told, item in self._waiting if step >= told + JUDGED_AFTER]
        self._waiting = [(told, item) for told, item in self._waiting if step < told + JUDGED_AFTER]
        return due

    def left(self, outcome: str) -> list[T]:
        """Remove and return the texts that the run's end judges: none if it was abandoned, or ended as unknown."""
        left, self._waiting = [item for _, item in self._waiting], []
        return [] if outcome == ABANDONED or kind_of(outcome) == UNKNOWN else left
