"""Counts runs for the summaries of `replay`, the list of a report, and its health page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from statistics import median

from reasonblocks.types import StepLogEntry

from .page import RunPage


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts over some runs. `flagged` counts runs with an intervention, `doubted` those whose end a monitor doubts.

    `steps` counts the decided steps and `recorded` all, of which `saved` follow a stop. `observed` counts the stops
    that observing prevents. `interventions` counts the steps after which something is told, `texts` the texts by their
    source. `unjudged` are the steps that were not evaluated. `firsts` are the steps of the first interventions.
    `judged` and `recovered` count texts by failure type. The counts that begin with `unheard` are those of runs whose
    agent has seen no text. `escalated` counts the runs with calls that go, or would go, to a stronger model, and
    `escalated_calls` those.
    """

    runs: int = 0
    steps: int = 0
    recorded: int = 0
    stopped: int = 0
    saved: int = 0
    observed: int = 0
    looks: int = 0
    escalated: int = 0
    escalated_calls: int = 0
    faults: int = 0
    unavailable: int = 0
    errors: int = 0
    dropped: int = 0
    flagged: int = 0
    interventions: int = 0
    firsts: list[int] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    monitors: Counter[str] = field(default_factory=Counter)
    doubted: int = 0
    doubts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    recovered: Counter[str] = field(default_factory=Counter)
    unjudged: int = 0
    unheard: int = 0
    unheard_stopped: int = 0
    unheard_judged: Counter[str] = field(default_factory=Counter)
    unheard_recovered: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})

    def add(self, page: RunPage) -> None:
        """Count a run."""
        states = [row.state for row in page.decided]
        told = [row for row in page.rows if row.interventions]
        self.runs += 1
        self.steps += len(states)
        self.recorded += page.steps
        self.states.update(states)
        self.reached.update(set(states))
        self.outcomes[page.outcome_kind] += 1
        self.looks += page.look is not None
        escalated = sum(_is_escalated(row.entry) for row in page.rows)
        self.escalated += bool(escalated)
        self.escalated_calls += escalated
        self.flagged += bool(told)
        self.interventions += len(told)
        self.firsts += [told[0].after or 0] if told else []
        self.monitors.update({name for row in page.decided for name in row.entry.monitors_fired})
        self.doubted += bool(page.doubts)
        self.doubts.update({doubt.monitor for doubt in page.doubts})
        self._add_stop(page)
        self._add_faults(page)
        self._add_effects(page)

    def _add_stop(self, page: RunPage) -> None:
        row = page.stopped
        if row is not None:
            self.stopped += 1
            self.saved += sum(1 for one in page.rows if one.after is not None and one.number > row.number)
            self.observed += not row.entry.stop
            self.unheard_stopped += page.unheard

    def _add_faults(self, page: RunPage) -> None:
        self.unjudged += page.unjudged
        self.faults += sum(row.entry.skipped_reason == "fault" for row in page.decided)
        for entry in (row.entry for row in page.rows):
            self.unavailable += "unavailable" in (entry.skipped_reason, entry.gate_decision)
            self.errors += bool(entry.error)
            self.dropped += len(entry.injections_dropped)

    def _add_effects(self, page: RunPage) -> None:
        self.texts.update("withheld" if told.withheld else told.who for _, told in page.told)
        self.unheard += sum(told.withheld or page.replayed for _, told in page.told)
        judged = self.unheard_judged if page.unheard else self.judged
        recovered = self.unheard_recovered if page.unheard else self.recovered
        types = {row.number: row.entry.failure_type or "no failure type" for row in page.rows}
        for call, verdict in page.verdicts.items():
            judged[types[call]] += 1
            recovered[types[call]] += verdict.recovered


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return names and counts, the highest count first, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def median_of(steps: list[int]) -> str:
    return f"{median(steps):g}" if steps else "-"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def join_names(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"


def _is_escalated(entry: StepLogEntry) -> bool:
    return "ESCALATE" in (entry.route, entry.withheld_route) or bool(entry.effort or entry.withheld_effort)
