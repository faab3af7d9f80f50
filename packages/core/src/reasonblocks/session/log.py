"""Keeps the step log of one run: `begin_step` opens an entry, `end_step` fills it, the next step closes it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from ..engine import amended_calls, completed_step
from ..types import Doubt, Step, StepDecision, StepLogEntry, StepOutcome, TraceState
from ..util.text import preview
from .telemetry import RunEvents

ENTRIES_KEPT = 10_000
PREVIEW = 150
"""Characters of an injection's preview."""
NOT_CALLED = "not called"
TOLD = """injections injection_sources intervention_texts injections_dropped pattern_ids note_ids withheld_sources
    withheld_texts placement cache_tokens_at_risk""".split()
"""The fields of an entry that say what the call is told, and where."""


class StepLog:
    """The newest entries, of which the last may be open. An entry that is closed is emitted."""

    __slots__ = ("_entries", "_events", "_open_decision", "_open_step", "judged_by")

    def __init__(self, judged_by: str, events: RunEvents) -> None:
        self.judged_by, self._events = judged_by, events
        self._entries: deque[StepLogEntry] = deque(maxlen=ENTRIES_KEPT)
        self._open_decision: StepDecision | None = None
        self._open_step: Step | None = None

    @property
    def entries(self) -> list[StepLogEntry]:
        return list(self._entries)

    def open(self, decision: StepDecision, step: Step | None = None, overhead_ms: float = 0.0) -> None:
        self._entries.append(self.entry(decision, overhead_ms))
        self._open_decision, self._open_step = decision, step

    def entry(self, decision: StepDecision, overhead_ms: float = 0.0) -> StepLogEntry:
        """Return an entry of now that is not kept here."""
        return entry_of_decision(decision, time.time(), overhead_ms, self.judged_by)

    def ensure(self, decision: StepDecision, step: Step | None = None) -> None:
        """Add an entry for a decision of another process; auxiliary calls may have been made since."""
        if self._entries and self._entries[0].step == decision.step + 1:
            self._entries.appendleft(self.entry(decision))
        elif self._at(decision.step) is None:
            self.open(decision, step)

    def close(self) -> None:
        """Close the open entry, if any; a call that was never made is recorded as an error."""
        decision, step = self._open_decision, self._open_step
        self._open_decision = self._open_step = None
        if decision is None:
            return
        entry = self._entries[-1]
        if entry.attempts == 0:
            entry = self._entries[-1] = replace(entry, error=NOT_CALLED)
        self._events.step(entry, step, decision.scores)

    def settle(self) -> None:
        """Close the open entry if its call was made."""
        if self._entries and self._entries[-1].attempts:
            self.close()

    def completed(self, before: TraceState, given: Step | None) -> Step:
        """Return the completed step, and add the calls that are known only now to its log entry."""
        calls = amended_calls(before, given)
        at = self._at(before.last.step) if calls and before.last is not None else None
        if at is not None:
            names = tuple([call.name for call in calls])
            if names != self._entries[at].tool_calls:  # usually they are equal
                self._entries[at] = replace(self._entries[at], tool_calls=names)
        return completed_step(before, given)

    def is_answered(self, step: int) -> bool:
        """Return True if the call was made, by whoever resumed the run."""
        at = self._at(step)
        return at is not None and self._entries[at].attempts > 0

    def amend(self, decision: StepDecision) -> None:
        """Replace the injections of an entry, shown and withheld, and their placement, by those of its decision."""
        at = self._at(decision.step)
        if at is not None:
            entry = self.entry(decision)
            told = {name: getattr(entry, name) for name in TOLD}
            self._entries[at] = replace(self._entries[at], **told)
        if self._open_decision is not None and self._open_decision.step == decision.step:
            self._open_decision = decision

    def rewind(self, calls: int) -> None:
        """Forget the entries of calls that a restored state has not made."""
        while self._entries and self._entries[-1].step >= calls:
            self._entries.pop()
            self._open_decision = self._open_step = None

    def fill(self, step: int, outcome: StepOutcome, overhead_ms: float, cost_usd: float | None = None) -> None:
        """Record a call's outcome. If there are several, the last one is kept; attempts, tokens and cost add up."""
        at = self._at(step)
        if at is not None:
            self._entries[at] = _filled(self._entries[at], outcome, overhead_ms, cost_usd)

    def route_failed(self, state: str) -> None:
        """Record that the open call goes to the agent's own model."""
        if self._open_decision is not None and self._entries[-1].route == state:
            self._entries[-1] = replace(self._entries[-1], route=None)

    def effort_failed(self) -> None:
        """Record that the open call is made without an effort."""
        if self._open_decision is not None:
            self._entries[-1] = replace(self._entries[-1], effort=None)

    def _at(self, step: int) -> int | None:
        """Return the position of entry `step`: entries are consecutive, and the first may be a resumed one."""
        if not self._entries:
            return None
        at = step - self._entries[0].step
        return at if 0 <= at < len(self._entries) and self._entries[at].step == step else None


def entry_of_decision(decision: StepDecision, timestamp: float, overhead_ms: float, judged_by: str) -> StepLogEntry:
    """Return the entry with everything known before the call."""
    shown = [(injection.source, injection.text) for injection in decision.injections]
    if decision.standing_rules:
        shown.append(("E3Injection", decision.standing_rules))
    return StepLogEntry(
        step=decision.step,
        timestamp=timestamp,
        difficulty=decision.difficulty,
        difficulty_parts=decision.difficulty_parts,
        composite=decision.composite,
        monitors_fired=decision.monitors_fired,
        failure_type=decision.failure_type,
        finding_kind=decision.finding_kind,
        gate_decision=decision.gate_decision,
        thought_preview=decision.thought_preview,
        fsm_state=decision.fsm_state.value,
        injections=tuple([preview(text, PREVIEW) for _, text in shown]),
        injection_sources=tuple([source for source, _ in shown]),
        intervention_texts=tuple([text for _, text in shown]),
        injections_dropped=decision.dropped,
        retrieved=decision.retrieved,
        note_ids=decision.note_ids,
        pattern_ids=tuple([pattern_id for injection in decision.injections for pattern_id in injection.pattern_ids]),
        placement=decision.placement,
        cache_tokens_at_risk=decision.cache_tokens_at_risk,
        skipped_reason=decision.skipped_reason,
        route=decision.route,
        effort=decision.effort,
        mode=decision.mode,
        advisor_ms=decision.advisor_ms,
        advisor_tokens=decision.advisor_tokens,
        withheld_sources=tuple([injection.source for injection in decision.withheld]),
        withheld_texts=tuple([injection.text for injection in decision.withheld]),
        withheld_route=decision.withheld_route,
        withheld_effort=decision.withheld_effort,
        withheld_stop=decision.withheld_stop,
        withheld_interrupt=decision.withheld_interrupt,
        interrupt=decision.interrupt,
        stop=decision.stop,
        overhead_ms=overhead_ms,
        judged_by=judged_by,
        doubts=decision.doubts,
    )


def _filled(entry: StepLogEntry, outcome: StepOutcome, overhead_ms: float, cost_usd: float | None) -> StepLogEntry:
    usage = outcome.usage
    return replace(
        entry,
        model_id=outcome.model or None,
        tool_calls=tuple([call.name for call in outcome.tool_calls]),
        tokens=_added(entry.tokens, usage.total),
        input_tokens=_added(entry.input_tokens, usage.input),
        output_tokens=_added(entry.output_tokens, usage.output),
        cache_read_tokens=_added(entry.cache_read_tokens, usage.cache_read),
        cache_write_tokens=_added(entry.cache_write_tokens, usage.cache_write),
        cost_usd=cost_usd if not entry.attempts else _added_cost(entry.cost_usd, cost_usd),
        latency_ms=outcome.latency_ms,
        overhead_ms=entry.overhead_ms + overhead_ms,
        attempts=entry.attempts + outcome.attempts,
        error=outcome.error,
    )


def _added(tokens: int | None, more: int | None) -> int | None:
    return more if tokens is None else tokens if more is None else tokens + more


def _added_cost(cost: float | None, more: float | None) -> float | None:
    return None if cost is None or more is None else cost + more


def in_doubt(doubts: Sequence[Doubt]) -> str:
    """Return the log line about a success that the run's last step contradicts; the texts may hold secrets."""
    names = ", ".join(dict.fromkeys(doubt.monitor for doubt in doubts))
    return f'ended as "success", but its last step is in doubt ({names}): see final.doubts'
