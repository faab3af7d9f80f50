"""Replays a recorded run through a new session, which decides each call from the steps before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from reasonblocks.monitors.profile import MAX_RUNS, Summary
from reasonblocks.monitors.sightings import OWN_MEMORY
from reasonblocks.session import REPLAYED, Agent, drive
from reasonblocks.types import (
    JSON,
    Account,
    AdapterCaps,
    Doubt,
    Injected,
    Patience,
    Step,
    StepDecision,
    StepInput,
    StepOutcome,
    Usage,
)
from reasonblocks.types.outcomes import recorded_outcome

if TYPE_CHECKING:
    from reasonblocks.session import SteeringSession

    from .traces import RecordedRun


class OtherRuns:
    """Profiles for `replay`: each run is judged by the other runs of its agent, without those of the same task.

    The runs are replayed twice: first all of them, to `add` them, then to be judged by each other.
    """

    inline = True
    keeps_replayed = True

    def __init__(self) -> None:
        self.complete = False
        """True when all runs are there; until then no run is judged by them."""
        self.task_key = ""
        """The task of the run that is replayed next."""
        self._runs: dict[Agent, list[tuple[str, str, Summary]]] = {}

    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]:
        """Return the newest summaries of the agent's runs of other tasks, without that of the run `but`."""
        if not self.complete:
            return ()
        runs = self._runs.get(agent, [])
        others = [summary for run, task_key, summary in runs if run != but and task_key != self.task_key]
        return tuple(others[-MAX_RUNS:])

    def add(self, agent: Agent, run: str, summary: Summary) -> None:
        """Add a run, until all are there."""
        if not self.complete:
            self._runs.setdefault(agent, []).append((run, self.task_key, summary))


class SessionFactory(Protocol):
    """Anything with the `session` method of `ReasonBlocks`."""

    def session(
        self,
        *,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        task_profile: str | None = None,
        framework: str = "custom",
        caps: AdapterCaps | None = None,
    ) -> SteeringSession: ...


class Stand(NamedTuple):
    """The account of a run after a step, its patience, what was seen, and the monitors' texts up to the next call."""

    account: Account
    patience: Patience
    sightings: JSON = None
    injected: tuple[Injected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRun:
    """A run's decisions: `start` is for the first call, `decisions[k]` follows completed step k; the last is final.

    A run that `stop_when` would have ended has no decisions after step `stopped_at`. `judged_by` names the patience, as
    the step log does, and `stands[k]` is what decision k was taken from.
    """

    run: RecordedRun
    start: StepDecision
    decisions: tuple[StepDecision, ...]
    stands: tuple[Stand, ...] = ()
    tool_roles: Mapping[str, str] = field(default_factory=dict)
    judged_by: str = "shipped"
    stopped_at: int | None = None
    costs: tuple[float | None, ...] = ()
    """The price of each call in US dollars, with a budget of it; None if it is unknown."""

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Doubts that the final step raised; they may contradict the recorded outcome."""
        return self.decisions[-1].doubts if self.decisions else ()


def replay(rb: SessionFactory, run: RecordedRun, *, advise: bool = False) -> ReplayedRun:
    """Return the decisions that steering would have made, step by step, if it had seen these steps live.

    An advisor is only asked with `advise`: it costs money, and need not answer as it did.
    """
    with rb.session(
        run_id=run.run_id,
        agent_name=run.source,
        task=run.task or None,
        model=run.model or None,
        task_profile=run.task_profile,
        framework=REPLAYED,
        caps=AdapterCaps(advisor=advise, tool_limits=True),
    ) as session:
        decision = start = session.begin_step(StepInput(default_model=run.model, seconds=0.0))
        decisions, stands = [], []
        stopped_at = None
        for index, step in enumerate(run.steps):
            session.end_step(decision, _outcome(run.model, step, run.usages[index]))
            if index + 1 == len(run.steps):
                break
            seconds = run.seconds[index] if run.seconds else 0.0
            given = StepInput(completed=step, default_model=run.model, seconds=seconds)
            decision = drive(session.begin_flow(given))
            decisions.append(decision)
            stands.append(_stand(session))
            if decision.stop is not None:
                stopped_at = index
                break
        session.finish(recorded_outcome(run.outcome), completed=run.steps[-1] if run.steps else None)
        if run.steps and stopped_at is None:
            decisions.append(session.final_decision or _undecided(decision))
            stands.append(_stand(session))
        judged_by = session.step_log[0].judged_by
        costs = tuple([entry.cost_usd for entry in session.step_log])
    return ReplayedRun(
        run=run,
        start=start,
        decisions=tuple(decisions),
        stands=tuple(stands),
        judged_by=judged_by,
        stopped_at=stopped_at,
        costs=costs,
    )


def _stand(session: SteeringSession) -> Stand:
    state = session.trace.state
    return Stand(state.account, state.patience, state.memories.get(OWN_MEMORY), state.injected)


def _undecided(last: StepDecision) -> StepDecision:
    """Return the final decision of a run that was not steered."""
    return StepDecision(
        step=last.step + 1, fsm_state=last.fsm_state, gate_decision="final", skipped_reason=last.skipped_reason
    )


def _outcome(model: str, step: Step, usage: Usage) -> StepOutcome:
    return StepOutcome(
        model=model, usage=usage, text=step.thought, reasoning=step.reasoning, tool_calls=step.tool_calls
    )
