"""Sums up the replayed runs of a file in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from statistics import median

from .._replay import ReplayedRun
from ._output import Table
from ._said import interventions

STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")


@dataclass(slots=True)
class Tally:
    """Counts over some runs. `flagged` counts runs with an intervention, `doubted` those whose end a monitor doubts."""

    runs: int = 0
    steps: int = 0
    faults: int = 0
    flagged: int = 0
    interventions: int = 0
    firsts: list[int] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    monitors: Counter[str] = field(default_factory=Counter)
    doubted: int = 0
    doubts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})

    def add(self, replayed: ReplayedRun) -> None:
        states = [decision.fsm_state.value for decision in replayed.decisions]
        steps = interventions(replayed)
        self.runs += 1
        self.steps += len(states)
        self.faults += sum(decision.skipped_reason == "fault" for decision in replayed.decisions)
        self.flagged += bool(steps)
        self.interventions += len(steps)
        self.firsts += steps[:1]
        self.states.update(states)
        self.reached.update(set(states))
        self.monitors.update({name for decision in replayed.decisions for name in decision.monitors_fired})
        self.doubted += bool(replayed.doubts)
        self.doubts.update({doubt.monitor for doubt in replayed.doubts})


@dataclass(slots=True)
class Summary:
    """The counts of one file, by outcome."""

    name: str
    malformed: int = 0
    every: Tally = field(default_factory=Tally)
    failing: Tally = field(default_factory=Tally)
    succeeding: Tally = field(default_factory=Tally)

    def add(self, replayed: ReplayedRun) -> None:
        for tally in (self.every, self._of_outcome(replayed.run.outcome)):
            if tally:
                tally.add(replayed)

    def _of_outcome(self, outcome: str | None) -> Tally | None:
        if outcome == "success":
            return self.succeeding
        return self.failing if outcome and outcome.startswith("failure") else None

    def tables(self) -> list[Table]:
        known = bool(self.failing.runs or self.succeeding.runs)
        return [self._overview(), *([self._by_outcome()] if known else [])]

    def _overview(self) -> Table:
        every = self.every
        rows = [
            ("runs", f"{every.runs:,}, {every.steps:,} steps, {self.malformed:,} malformed"),
            ("states", _listed(f"{name} {_share(every.states[name], every.steps)}" for name in _seen(every.states))),
            ("reached by", _listed(f"{name} {_counted(every.reached[name], 'run')}" for name in _seen(every.states))),
            ("interventions", _interventions(every)),
            (
                "monitors fired",
                _listed(f"{name} in {_counted(count, 'run')}" for name, count in _ranked(every.monitors)),
            ),
            ("ends in doubt", self._doubts()),
        ]
        if every.faults:
            rows.append(("faults", f"{_counted(every.faults, 'step')} went unsteered; --strict raises the first"))
        return Table(title=self.name, head=("", ""), rows=rows)

    def _doubts(self) -> str:
        """List the doubts by monitor, with the number of doubted runs that were recorded as a success."""
        named = _listed(f"{name} in {_runs(count)}" for name, count in _ranked(self.every.doubts))
        succeeding = self.succeeding.doubted
        return f"{named}; {succeeding:,} of them reported success" if succeeding else named

    def _by_outcome(self) -> Table:
        """Return the table that compares failing and succeeding runs."""
        sides = [side for side in (self.failing, self.succeeding) if side.runs]
        names = ["failing" if side is self.failing else "succeeding" for side in sides]
        rows = [
            ("runs", *(f"{side.runs:,}" for side in sides)),
            ("with an intervention", *(_share(side.flagged, side.runs) for side in sides)),
            ("first after step", *(_median(side.firsts) for side in sides)),
            *((f"steps in {name}", *(_share(side.states[name], side.steps) for side in sides))
              for name in ("FAST", "SLOW", "SKIP")),
            *((f"{name} fired", *(_share(side.monitors[name], side.runs) for side in sides))
              for name, _ in _ranked(self.every.monitors)),
        ]  # fmt: skip
        return Table(title="by outcome", head=("", *names), rows=rows)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return names and counts, the highest count first, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def total(summaries: Sequence[Summary]) -> Summary:
    """Return the sum of all files."""
    return Summary(
        name=f"all {len(summaries)} files",
        malformed=sum(summary.malformed for summary in summaries),
        every=sum((summary.every for summary in summaries), Tally()),
        failing=sum((summary.failing for summary in summaries), Tally()),
        succeeding=sum((summary.succeeding for summary in summaries), Tally()),
    )


def _interventions(tally: Tally) -> str:
    if not tally.interventions:
        return "none"
    runs = f"{_counted(tally.flagged, 'run')} ({_share(tally.flagged, tally.runs)})"
    return f"{tally.interventions:,} in {runs}, the first after step {_median(tally.firsts)} (median)"


def _seen(states: Counter[str]) -> list[str]:
    return [name for name in STATES if states[name]]


def _runs(count: int) -> str:
    return _counted(count, "run")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _median(steps: list[int]) -> str:
    return f"{median(steps):g}" if steps else "-"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"
