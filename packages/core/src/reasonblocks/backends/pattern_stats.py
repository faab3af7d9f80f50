"""Counts the effects of each shown pattern, so that a pattern that never helps is ranked last.

The rule of `_recovery` judges an injection. Standing rules are shown to every run and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from ..engine.recovery import Judging, has_ended_well, is_judged, is_troubled
from ..events import Event, RunFinish, StepEvent

MAX_RUNS = 1_000
"""The most watched runs; beyond it the oldest is forgotten, unjudged."""


@runtime_checkable
class Counts(Protocol):
    """A store that counts: `what` is "retrieved", "injected", "recovered" or "not_recovered"."""

    def count(self, ids: Iterable[str], what: str) -> None: ...


class PatternStats:
    """A telemetry sink that counts into a store, in the sink's thread: no step waits for it."""

    def __init__(self, store: Counts) -> None:
        self._store = store
        self._shown: dict[str, Judging[tuple[str, ...]]] = {}

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
            self._shown[run_id].put_off()

    def _judge(self, event: StepEvent) -> None:
        shown = self._shown.get(event.run_id)
        if shown is not None:
            troubled = is_troubled(event.monitors_fired, event.metadata.get("fsm_state"))
            self._settle(shown.due(event.step_index), recovered=not troubled)

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
        if judged and is_judged(event.monitors_fired, event.metadata.get("fsm_state"), event.composite):
            self._shown.setdefault(event.run_id, Judging()).wait(event.step_index, judged)
            while len(self._shown) > MAX_RUNS:
                del self._shown[next(iter(self._shown))]

    def _finish(self, event: RunFinish) -> None:
        shown = self._shown.pop(event.run_id, None)
        if shown is not None:
            self._settle(shown.left(event.outcome), recovered=has_ended_well(event.outcome, event.doubts))

    def _settle(self, judged: list[tuple[str, ...]], *, recovered: bool) -> None:
        self._count([pattern_id for ids in judged for pattern_id in ids], "recovered" if recovered else "not_recovered")

    def _count(self, ids: Iterable[object], what: str) -> None:
        names = [name for name in ids if isinstance(name, str)]
        if names:
            self._store.count(names, what)
