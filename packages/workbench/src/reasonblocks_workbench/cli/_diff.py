"""Compares what two sets of settings decide on the same runs: which steps differ, and who intervenes where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from reasonblocks.types import JSON, StepDecision

from ..replay import ReplayedRun
from ._replay_json import run_json, step_json
from ._said import interventions, said, second_look_at
from ._stops import stopped
from .output import Table

SIDES = ("a", "b")


def differing(one: ReplayedRun, other: ReplayedRun) -> list[int]:
    """Return the steps after which the two decide differently: state, route, texts, or the end of the run.

    Scores alone are no difference: the agent sees nothing of them.
    """
    pairs = enumerate(zip_longest(_effects(one), _effects(other)))
    return [index for index, (left, right) in pairs if left != right]


def _effects(run: ReplayedRun) -> list[object]:
    """Return what each decision does; an observed run goes on after its stop, which counts only once."""
    effects: list[object] = [_effect(decision) for decision in run.decisions]
    found = stopped(run)
    if found is not None:
        effects[found.step] = effects[found.step], found.stop
    return effects


def _effect(decision: StepDecision) -> object:
    """Return what a decision does to the next call."""
    texts = said(decision)
    route = decision.route or decision.withheld_route
    return decision.fsm_state, route, texts_of(decision), decision.placement if texts else None


def texts_of(decision: StepDecision) -> tuple[tuple[str, str, bool], ...]:
    return tuple((text.source, text.text, text.withheld) for text in said(decision))


def start_differs(one: ReplayedRun, other: ReplayedRun) -> bool:
    """Return True if the first call is decided differently: other standing rules, or another place for them."""
    return _effect(one.start) != _effect(other.start)


def diff_json(replayed: Sequence[ReplayedRun]) -> dict[str, JSON] | None:
    """Return the object of a run that the two sides decide differently, with its differing steps; else None."""
    steps, start = differing(*replayed), start_differs(*replayed)
    if not steps and not start:
        return None
    return {
        **run_json(replayed[0]),
        "start_differs": start,
        "interventions": {side: list(interventions(run)) for side, run in zip(SIDES, replayed, strict=True)},
        "steps": [
            {"step": index, **{side: _decided(run, index) for side, run in zip(SIDES, replayed, strict=True)}}
            for index in steps
        ],
    }


def _decided(run: ReplayedRun, index: int) -> JSON:
    """Return the decision after a step without the step's numbers; None if the run would have been stopped before."""
    if index >= len(run.decisions):
        return None
    return {key: value for key, value in step_json(run, index).items() if key not in ("step", "call")}


@dataclass(slots=True)
class Compared:
    """Counts over some runs. `flagged` and `only` count the runs with an intervention by side, and by one alone."""

    runs: int = 0
    steps: int = 0
    differing: int = 0
    differing_steps: int = 0
    interventions: list[int] = field(default_factory=lambda: [0, 0])
    flagged: list[int] = field(default_factory=lambda: [0, 0])
    only: list[int] = field(default_factory=lambda: [0, 0])
    stopped: list[int] = field(default_factory=lambda: [0, 0])
    looks: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, replayed: Sequence[ReplayedRun]) -> None:
        steps = differing(*replayed)
        counts = [len(interventions(run)) for run in replayed]
        self.runs += 1
        self.steps += len(replayed[0].run.steps)
        self.differing += bool(steps) or start_differs(*replayed)
        self.differing_steps += len(steps)
        for side, run in enumerate(replayed):
            self.stopped[side] += stopped(run) is not None
            self.looks[side] += second_look_at(run) is not None
        for side, count in enumerate(counts):
            self.interventions[side] += count
            self.flagged[side] += bool(count)
            self.only[side] += bool(count) and not counts[1 - side]


@dataclass(slots=True)
class Comparison:
    """The counts of all runs, and of those of each outcome."""

    every: Compared = field(default_factory=Compared)
    failing: Compared = field(default_factory=Compared)
    succeeding: Compared = field(default_factory=Compared)

    def add(self, replayed: Sequence[ReplayedRun]) -> None:
        run = replayed[0].run
        self.every.add(replayed)
        if run.has_outcome:
            (self.succeeding if run.outcome_kind == "success" else self.failing).add(replayed)

    def table(self) -> Table:
        """Return the counts of both sides; the title says how many runs and steps differ."""
        every = self.every
        rows = [_row("interventions", every.interventions)]
        for name, part in (("", every), ("failing ", self.failing), ("succeeding ", self.succeeding)):
            if part.runs:
                rows.append(_row(f"{name}runs with an intervention, of {part.runs:,}", part.flagged))
                rows.append(_row("  under this side only", part.only))
                if any(every.stopped):
                    rows.append(_row(f"{name}runs that are stopped", part.stopped))
                if any(every.looks):
                    rows.append(_row(f"{name}runs with a second look", part.looks))
        return Table(
            title=f"{every.differing:,} of {every.runs:,} runs are decided differently, "
            f"in {every.differing_steps:,} of {every.steps:,} steps",
            head=("", "A", "B"),
            rows=rows,
        )


def _row(name: str, counts: Sequence[int]) -> tuple[str, ...]:
    return name, *(f"{count:,}" for count in counts)
