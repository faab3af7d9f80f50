"""Replays a recorded run through a fresh session, as if each step were happening live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .types import Doubt, Step, StepDecision, StepInput, StepOutcome, Usage

if TYPE_CHECKING:
    from ._session import SteeringSession
    from .traces import RecordedRun


class Sessions(Protocol):
    """The part of a `ReasonBlocks` that a replay needs."""

    def session(
        self,
        *,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        task_profile: str | None = None,
        framework: str = "custom",
    ) -> SteeringSession: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A run and its decisions: `start` before the first call, `decisions[k]` after step k; the last one is final."""

    run: RecordedRun
    start: StepDecision
    decisions: tuple[StepDecision, ...]

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Doubts that the final step raised; they may contradict the recorded outcome."""
        return self.decisions[-1].doubts if self.decisions else ()


def replay(rb: Sessions, run: RecordedRun) -> Replayed:
    """Return the decisions that steering would have made, had it seen these steps live."""
    with rb.session(
        run_id=run.run_id,
        agent_name=run.source,
        task=run.task or None,
        model=run.model or None,
        task_profile=run.task_profile,
        framework="replay",
    ) as session:
        decision = start = session.begin_step(StepInput(default_model=run.model))
        decisions = []
        for index, step in enumerate(run.steps):
            session.end_step(decision, _outcome(run.model, step, run.usages[index]))
            if index + 1 < len(run.steps):
                decision = session.begin_step(StepInput(completed=step, default_model=run.model))
                decisions.append(decision)
        session.finish(run.outcome or "success", completed=run.steps[-1] if run.steps else None)
        if run.steps:
            decisions.append(session.final_decision or _undecided(decision))
    return Replayed(run=run, start=start, decisions=tuple(decisions))


def _undecided(last: StepDecision) -> StepDecision:
    """Return the final decision of a run that steering left alone."""
    return StepDecision(
        step=last.step + 1, fsm_state=last.fsm_state, gate_decision="final", skipped_reason=last.skipped_reason
    )


def _outcome(model: str, step: Step, usage: Usage) -> StepOutcome:
    return StepOutcome(
        model=model, usage=usage, text=step.thought, reasoning=step.reasoning, tool_calls=step.tool_calls
    )
