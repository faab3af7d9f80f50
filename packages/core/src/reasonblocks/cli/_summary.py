"""Sums up the replayed runs of a file in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from statistics import median

from .._replay import ReplayedRun
from ._output import Table
from ._said import interventions, second_look_at
from ._stops import stopped

STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")


@dataclass(slots=True)
class Tally:
    """Counts over some runs. `flagged` counts runs with an intervention, `doubted` those whose end a monitor doubts.

    `steps` counts the decided steps and `recorded` all, of which `saved` follow a stop. `observed` counts the stops
    that observing prevents.
    """

    runs: int = 0
    steps: int = 0
    recorded: int = 0
    stopped: int = 0
    saved: int = 0
    observed: int = 0
    looks: int = 0
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
        self.recorded += len(replayed.run.steps)
        found = stopped(replayed)
        if found is not None:
            self.stopped += 1
            self.saved += found.saved
            self.observed += not found.stop.real
        self.looks += second_look_at(replayed) is not None
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
    """The counts of one file, by outcome. `stops` is True if its runs may be stopped."""

    name: str
    malformed: int = 0
    stops: bool = False
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
        return [self._overview(), *([self._by_outcome()] if self._sides() else [])]

    def _overview(self) -> Table:
        every = self.every
        rows = [
            ("runs", f"{every.runs:,}, {every.recorded:,} steps, {self.malformed:,} malformed"),
            ("states", _listed(f"{name} {_share(every.states[name], every.steps)}" for name in _seen(every.states))),
            ("reached by", _listed(f"{name} {_counted(every.reached[name], 'run')}" for name in _seen(every.states))),
            ("interventions", _interventions(every)),
            *([(self._stopped_word(), self._stopped())] if self.stops or every.stopped else []),
            (
                "monitors fired",
                _listed(f"{name} in {_counted(count, 'run')}" for name, count in _ranked(every.monitors)),
            ),
            ("ends in doubt", self._doubts()),
        ]
        if every.looks:
            rows.append(("second looks", self._with_outcomes("looks")))
        if every.faults:
            rows.append(("faults", f"{_counted(every.faults, 'step')} went unsteered; --strict raises the first"))
        return Table(title=self.name, head=("", ""), rows=rows)

    def _doubts(self) -> str:
        """List the doubts by monitor, with the number of doubted runs that were recorded as a success."""
        named = _listed(f"{name} in {_runs(count)}" for name, count in _ranked(self.every.doubts))
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
            ("with an intervention", *(_share(side.flagged, side.runs) for side in sides)),
            ("first after step", *(_median(side.firsts) for side in sides)),
            *([(self._stopped_word(), *(_share(side.stopped, side.runs) for side in sides))]
              if self.every.stopped else []),
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
        stops=any(summary.stops for summary in summaries),
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
