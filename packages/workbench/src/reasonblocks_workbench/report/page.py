"""Defines the values that a report shows: a run, its calls, and the texts that the agent was told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.engine.gates import MONITOR_CAP
from reasonblocks.engine.recovery import Judging, has_ended_well, is_judged, is_troubled
from reasonblocks.types import Doubt, Step, StepLogEntry
from reasonblocks.types.outcomes import UNKNOWN, kind_of

MONITOR = "MonitorSteeringInjection"
STANDING = "E3Injection"
"""The source of standing rules, which every run gets."""
BUDGET = "BudgetInjection"
"""The source of what is left of a budget."""
ROUTINE = frozenset({STANDING, BUDGET})
"""The sources of texts that answer no trouble: they do not count as interventions."""
WHO: Mapping[str, str] = {
    MONITOR: "monitor",
    "E1Injection": "lesson",
    "E2Injection": "lesson",
    STANDING: "standing rules",
    "OperatorInjection": "operator",
    BUDGET: "budget",
}
LOOK = "second look"
UNKNOWN_STATE = "?"
HARDEST = ("SKIP", "SLOW", "NORMAL", "FAST", "INIT", "END")
"""The states, the hardest first."""
OutcomeKind: TypeAlias = Literal["success", "failure", "stopped", "open", "unknown"]
Kind: TypeAlias = Literal["monitor", "lesson", "rules", "operator", "budget", "withheld", "look", "stop", "asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One text and its origin. A `withheld` one was recorded and not shown to the agent.

    `look` marks the text of a second look that would follow the final step.
    """

    source: str
    text: str
    patterns: tuple[str, ...] = ()
    withheld: bool = False
    look: bool = False

    @property
    def standing(self) -> bool:
        return self.source == STANDING

    @property
    def intervenes(self) -> bool:
        return not (self.source in ROUTINE or self.look)

    @property
    def who(self) -> str:
        return LOOK if self.look else WHO.get(self.source, self.source)

    @property
    def kind(self) -> Kind:
        """The mark of the text in the chart."""
        if self.look:
            return "look"
        if self.withheld:
            return "withheld"
        kinds: dict[str, Kind] = {
            MONITOR: "monitor",
            STANDING: "rules",
            "OperatorInjection": "operator",
            BUDGET: "budget",
        }
        return kinds.get(self.source, "lesson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Call n, and the completed step that it was decided from: None for the first call and an auxiliary one.

    `after` is the number of that step: n-1, or less after auxiliary calls. The final row has a completed step and no
    call. A row that is not `decided` has no entry to speak of: the run was stopped before it.
    """

    entry: StepLogEntry
    after: int | None = None
    step: Step | None = None
    final: bool = False
    decided: bool = True
    at: float | None = None
    """The time of the call, in seconds since the epoch."""
    scores: Mapping[str, float] = field(default_factory=dict)
    told: tuple[Told, ...] = ()

    @property
    def number(self) -> int:
        return self.entry.step

    @property
    def state(self) -> str:
        """The state, "" for a row that was not decided, "?" for a state that the machine does not have."""
        known = self.entry.fsm_state in HARDEST
        return "" if not self.decided else self.entry.fsm_state if known else UNKNOWN_STATE

    @property
    def auxiliary(self) -> bool:
        return self.entry.skipped_reason == "auxiliary"

    @property
    def unjudged(self) -> bool:
        """True if steering was due and did not happen: no evaluation was available, or there was a fault."""
        entry = self.entry
        failed = entry.gate_decision == "unavailable" or entry.skipped_reason == "fault"
        return self.after is not None and self.decided and failed

    @property
    def interventions(self) -> tuple[Told, ...]:
        return tuple(told for told in self.told if told.intervenes)

    @property
    def look(self) -> bool:
        return any(told.look for told in self.told)


def completed_before(entries: Iterable[StepLogEntry]) -> Iterator[int | None]:
    """Yield for each call the number of the step that it was decided from; None for the first and an auxiliary one."""
    before = None
    for entry in entries:
        auxiliary = entry.skipped_reason == "auxiliary"
        yield None if auxiliary else before
        before = before if auxiliary else entry.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The effect of a text, judged `steps` completed steps later; `at_end` if the run ended before that."""

    recovered: bool
    steps: int
    at_end: bool = False


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """One run as a report shows it. Create it with `page_of_log` or `page_of_replayed`.

    `replayed` marks a recorded run that steering has judged afterwards: the agent has seen none of the texts. `outcome`
    is "" for a run that has not finished, and for a recording without one.
    """

    run_id: str
    rows: tuple[Row, ...]
    agent: str = ""
    task: str = ""
    model: str = ""
    framework: str = ""
    outcome: str = ""
    doubts: tuple[Doubt, ...] = ()
    mode: str = "steer"
    replayed: bool = False
    started: float | None = None
    finished: float | None = None
    place: str = ""
    judged_by: str = "shipped"
    parent: str = ""
    status: str = ""
    """The word for a run without an outcome, such as "live"; "" for the usual one."""
    experiment: str = ""
    """The experiment that the run is part of, and its arm."""
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def observed(self) -> bool:
        return self.mode == "observe"

    @property
    def unheard(self) -> bool:
        """True if the agent has seen none of the texts: the run was observed, or a replayed recording."""
        return self.replayed or self.observed

    @property
    def outcome_kind(self) -> OutcomeKind:
        is_open = not self.outcome and not self.replayed and self.finished is None
        return "open" if is_open else kind_of(self.outcome)

    @property
    def in_doubt(self) -> bool:
        """True if the run succeeded and its last step contradicts that."""
        return bool(self.doubts) and self.outcome_kind == "success"

    @cached_property
    def calls(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.final)

    @cached_property
    def decided(self) -> tuple[Row, ...]:
        """The rows that were decided from a completed step."""
        return tuple(row for row in self.rows if row.after is not None and row.decided)

    @cached_property
    def by_number(self) -> Mapping[int, Row]:
        return {row.number: row for row in self.rows}

    @cached_property
    def untroubled(self) -> tuple[int, ...]:
        """The numbers of the calls that were decided without trouble."""
        return tuple(sorted(row.number for row in self.decided if not is_troubled(row.entry.monitors_fired, row.state)))

    @cached_property
    def steps(self) -> int:
        """The number of completed steps."""
        return sum(row.after is not None for row in self.rows)

    @cached_property
    def unjudged(self) -> int:
        """The number of completed steps that were not evaluated."""
        return sum(row.unjudged for row in self.rows)

    @cached_property
    def told(self) -> tuple[tuple[Row, Told], ...]:
        """All texts except standing rules and second looks, with their rows."""
        return tuple((row, told) for row in self.rows for told in row.interventions)

    @cached_property
    def monitor_texts(self) -> int:
        return sum(told.source == MONITOR for _, told in self.told)

    @property
    def cap(self) -> int:
        """The most monitor texts of a run."""
        return MONITOR_CAP

    @cached_property
    def stopped(self) -> Row | None:
        """The first row at which the run is stopped, or would be without mode "observe"."""
        return next((row for row in self.rows if row.entry.stop or row.entry.withheld_stop), None)

    @cached_property
    def look(self) -> Row | None:
        """The final row if a second look would follow it."""
        return next((row for row in self.rows if row.look), None)

    @cached_property
    def tokens(self) -> int | None:
        known = [tokens for row in self.calls if (tokens := row.entry.tokens) is not None]
        return sum(known) if known else None

    @cached_property
    def cost_usd(self) -> float | None:
        known = [cost for row in self.calls if (cost := row.entry.cost_usd) is not None]
        return sum(known) if known else None

    @cached_property
    def seconds(self) -> float | None:
        """The duration, up to the last event of a run that has not finished."""
        times = [time for time in (self.finished, *(row.at for row in self.rows)) if time is not None]
        if self.started is None or not times or self.replayed:
            return None
        return max(0.0, max(times) - self.started)

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The states that were reached, the hardest first."""
        reached = {row.state for row in self.rows if row.decided}
        return tuple(state for state in (*HARDEST, *sorted(reached - {*HARDEST})) if state in reached)

    @cached_property
    def failure_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for row in self.rows if (kind := row.entry.failure_type)))

    @cached_property
    def fired(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.entry.monitors_fired))

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The models that were called, else the run's own."""
        called = tuple(dict.fromkeys(model for row in self.calls if (model := row.entry.model_id)))
        return called or ((self.model,) if self.model else ())

    @cached_property
    def verdicts(self) -> Mapping[int, Verdict]:
        """The effects of the texts, by their call; calls whose texts are not judged are missing."""
        return verdicts(self.rows, self.outcome or UNKNOWN, self.doubts)


def verdicts(rows: Sequence[Row], outcome: str, doubts: Collection[Doubt] = ()) -> dict[int, Verdict]:
    """Judge the texts of a run by the rule of the pattern statistics."""
    judging, found, last = Judging[int](), dict[int, Verdict](), 0
    for row in rows:
        if row.auxiliary:
            judging.put_off()
            continue
        last, fired = row.number if row.decided else last, row.entry.monitors_fired
        for call in judging.due(row.number) if row.decided else ():
            found[call] = Verdict(recovered=not is_troubled(fired, row.state), steps=row.number - call)
        if row.interventions and is_judged(fired, row.state, row.entry.composite):
            judging.wait(row.number, row.number)
    for call in judging.left(outcome):
        found[call] = Verdict(recovered=has_ended_well(outcome, doubts), steps=last - call, at_end=True)
    return found
