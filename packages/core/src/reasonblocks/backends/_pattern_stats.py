"""Counts the effects of each shown pattern, so that a pattern that never helps is ranked last.

An injection is judged if the run was in trouble: three completed steps later, or at the run's end if that is earlier.
The run has recovered if no monitor fires and the state is neither SLOW nor SKIP; a run that ends has recovered if it
succeeded. Standing rules are shown to every run and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .._gates import E1_COMPOSITE
from .._json import evolve
from ..events import Event, RunFinish, StepEvent
from ..types import FSMState

JUDGED_AFTER = 3
"""Completed steps after an injection: its effect shows one step later, and a fired monitor fades within two."""
MAX_RUNS = 1_000
"""The most watched runs; beyond it the oldest is forgotten, unjudged."""
_HARD = (FSMState.SLOW.value, FSMState.SKIP.value)


@runtime_checkable
class Counts(Protocol):
    """A store that counts: `what` is "retrieved", "injected", "recovered" or "not_recovered"."""

    def count(self, ids: Iterable[str], what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Shown:
    """Patterns that were shown to a run in trouble, and the call that they were shown before."""

    step: int
    ids: tuple[str, ...]


class PatternStats:
    """A telemetry sink that counts into a store, in the sink's thread: no step waits for it."""

    def __init__(self, store: Counts) -> None:
        self._store = store
        self._shown: dict[str, list[_Shown]] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, StepEvent) and event.metadata.get("skipped_reason") == "auxiliary":
            self._put_off(event.run_id)
        elif isinstance(event, StepEvent):
            self._judge(event)
            self._note(event)
        elif isinstance(event, RunFinish):
            self._finish(event)

    def close(self) -> None:
        """Drop the runs that are still open, without judging them."""
        self._shown.clear()

    def _put_off(self, run_id: str) -> None:
        """Extend every wait by one call, after a call that was not a step."""
        if run_id in self._shown:
            self._shown[run_id] = [evolve(shown, step=shown.step + 1) for shown in self._shown[run_id]]

    def _judge(self, event: StepEvent) -> None:
        waiting = self._shown.get(event.run_id, [])
        due = [shown for shown in waiting if event.step_index >= shown.step + JUDGED_AFTER]
        if due:
            self._settle(event.run_id, due, recovered=not _troubled(event))

    def _note(self, event: StepEvent) -> None:
        retrieved = event.metadata.get("retrieved")
        if isinstance(retrieved, Mapping):
            found = [pattern_id for ids in retrieved.values() if isinstance(ids, list) for pattern_id in ids]
            self._count(found, "retrieved")
        shown = event.metadata.get("pattern_ids")
        if not isinstance(shown, list):
            return
        self._count(shown, "injected")
        rules = retrieved.get("e3") if isinstance(retrieved, Mapping) else None
        judged = tuple(name for name in shown if not (isinstance(rules, list) and name in rules))
        if judged and (_troubled(event) or (event.composite or 0.0) > E1_COMPOSITE):
            self._shown.setdefault(event.run_id, []).append(_Shown(event.step_index, judged))
            while len(self._shown) > MAX_RUNS:
                del self._shown[next(iter(self._shown))]

    def _finish(self, event: RunFinish) -> None:
        left = self._shown.get(event.run_id, [])
        if left and event.outcome != "failure: abandoned":
            self._settle(event.run_id, left, recovered=event.outcome == "success")
        self._shown.pop(event.run_id, None)

    def _settle(self, run_id: str, judged: list[_Shown], *, recovered: bool) -> None:
        self._count(
            [pattern_id for shown in judged for pattern_id in shown.ids], "recovered" if recovered else "not_recovered"
        )
        self._shown[run_id] = [shown for shown in self._shown[run_id] if shown not in judged]

    def _count(self, ids: Iterable[object], what: str) -> None:
        names = [name for name in ids if isinstance(name, str)]
        if names:
            self._store.count(names, what)


def _troubled(event: StepEvent) -> bool:
    return bool(event.monitors_fired) or event.metadata.get("fsm_state") in _HARD
