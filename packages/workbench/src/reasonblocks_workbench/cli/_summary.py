"""Sums up the replayed runs of a file in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from reasonblocks.types.outcomes import UNKNOWN

from ..replay import ReplayedRun
from ..report import Tally, page_of_replayed
from ..report.tally import counted, listed, median_of, percent, ranked
from .output import Table

STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")


@dataclass(slots=True)
class Summary:
    """The counts of one file, by outcome. `stops` is True if its runs may be stopped."""

    name: str
    malformed: int = 0
    stops: bool = False
    every: Tally = field(default_factory=Tally)
    failing: Tally = field(default_factory=Tally)
    succeeding: Tally = field(default_factory=Tally)

    def add(self, replayed: ReplayedRun) -> None:
        page = page_of_replayed(replayed)
        for tally in (self.every, {"success": self.succeeding, "failure": self.failing}.get(replayed.run.outcome_kind)):
            if tally:
                tally.add(page)

    def tables(self) -> list[Table]:
        return [self._overview(), *([self._by_outcome()] if self._sides() else [])]

    def _overview(self) -> Table:
        every = self.every
        rows = [
            ("runs", f"{every.runs:,}, {every.recorded:,} steps, {self.malformed:,} malformed"),
            *([("unknown outcome", _runs(unknown))] if (unknown := every.outcomes[UNKNOWN]) else []),
            ("states", listed(f"{name} {percent(every.states[name], every.steps)}" for name in _seen(every.states))),
            ("reached by", listed(f"{name} {counted(every.reached[name], 'run')}" for name in _seen(every.states))),
            ("interventions", _interventions(every)),
            *([(self._stopped_word(), self._stopped())] if self.stops or every.stopped else []),
            (
                "monitors fired",
                listed(f"{name} in {counted(count, 'run')}" for name, count in ranked(every.monitors)),
            ),
            ("ends in doubt", self._doubts()),
        ]
        if every.looks:
            rows.append(("second looks", self._with_outcomes("looks")))
        if every.faults:
            rows.append(("faults", f"{counted(every.faults, 'step')} went unsteered; --strict raises the first"))
        return Table(title=self.name, head=("", ""), rows=rows)

    def _doubts(self) -> str:
        """List the doubts by monitor, with the number of doubted runs that were recorded as a success."""
        named = listed(f"{name} in {_runs(count)}" for name, count in ranked(self.every.doubts))
        succeeding = self.succeeding.doubted
        return f"{named}; {succeeding:,} of them reported success" if succeeding else named

    def _stopped_word(self) -> str:
        return "would be stopped" if self.every.observed else "stopped"

    def _stopped(self) -> str:
        if not self.every.stopped:
            return "none"
        not_made = "would not be made" if self.every.observed else "not made"
        return f"{self._with_outcomes('stopped')}; {self.every.saved:,} of {self.every.recorded:,} steps {not_made}"

    def _with_outcomes(self, count: str) -> str:
        """Return a count of runs, with its parts by outcome where outcomes are known."""
        every = getattr(self.every, count)
        counts = {name: getattr(tally, count) for name, tally in self._sides()}
        if not counts:
            return _runs(every)
        counts["unknown"] = every - sum(counts.values())
        return f"{_runs(every)} ({', '.join(f'{number:,} {name}' for name, number in counts.items() if number)})"

    def _sides(self) -> list[tuple[str, Tally]]:
        """Return the outcomes that there are, with their counts."""
        both = (("failing", self.failing), ("succeeding", self.succeeding))
        return [(name, tally) for name, tally in both if tally.runs]

    def _by_outcome(self) -> Table:
        """Return the table that compares failing and succeeding runs."""
        names, sides = zip(*self._sides(), strict=True)
        rows = [
            ("runs", *(f"{side.runs:,}" for side in sides)),
            ("with an intervention", *(percent(side.flagged, side.runs) for side in sides)),
            ("first after step", *(median_of(side.firsts) for side in sides)),
            *([(self._stopped_word(), *(percent(side.stopped, side.runs) for side in sides))]
              if self.every.stopped else []),
            *((f"steps in {name}", *(percent(side.states[name], side.steps) for side in sides))
              for name in ("FAST", "SLOW", "SKIP")),
            *((f"{name} fired", *(percent(side.monitors[name], side.runs) for side in sides))
              for name, _ in ranked(self.every.monitors)),
        ]  # fmt: skip
        return Table(title="by outcome", head=("", *names), rows=rows)


def total(summaries: Sequence[Summary]) -> Summary:
    """Return the sum of all files."""
    return Summary(
        name=f"all {len(summaries)} files",
        stops=any(summary.stops for summary in summaries),
        malformed=sum(summary.malformed for summary in summaries),
        every=sum((summary.every for summary in summaries), Tally()),
        failing=sum((summary.failing for summary in summaries), Tally()),
        succeeding=sum((summary.succeeding for summary in summaries), Tally()),
    )


def _interventions(tally: Tally) -> str:
    if not tally.interventions:
        return "none"
    runs = f"{counted(tally.flagged, 'run')} ({percent(tally.flagged, tally.runs)})"
    return f"{tally.interventions:,} in {runs}, the first after step {median_of(tally.firsts)} (median)"


def _seen(states: Counter[str]) -> list[str]:
    return [name for name in STATES if states[name]]


def _runs(count: int) -> str:
    return counted(count, "run")
