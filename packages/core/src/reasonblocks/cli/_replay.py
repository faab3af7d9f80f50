"""One recorded run through one fresh session: what steering would have decided, step by step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..types import JSON, Injection, Step, StepDecision, StepInput, StepOutcome, Usage

if TYPE_CHECKING:
    from ..client import ReasonBlocks
    from ..traces import RecordedRun

__all__ = ["RunReport", "replay_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """`start` is the decision of the first call; `decisions[k]` is taken from completed step k, the last is final."""

    run: RecordedRun
    start: StepDecision
    decisions: tuple[StepDecision, ...]

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready: one object a run, as `replay --json` prints it."""
        last = len(self.decisions) - 1
        return {
            "run_id": self.run.run_id,
            "file": self.run.file,
            "source": self.run.source,
            "outcome": self.run.outcome,
            "start": {"fsm_state": self.start.fsm_state.value, "injections": _injections(self.start.injections)},
            "steps": [
                _step(index, None if index == last else index + 1, decision)
                for index, decision in enumerate(self.decisions)
            ],
        }


def replay_run(rb: ReasonBlocks, run: RecordedRun) -> RunReport:
    """Drive the run as a hand-written loop would: each step completed, the next call decided, the last one final."""
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
    return RunReport(run=run, start=start, decisions=tuple(decisions))


def _undecided(last: StepDecision) -> StepDecision:
    """The final step of a run that passed through untouched."""
    return StepDecision(
        step=last.step + 1, fsm_state=last.fsm_state, gate_decision="final", skipped_reason=last.skipped_reason
    )


def _outcome(model: str, step: Step, usage: Usage) -> StepOutcome:
    return StepOutcome(
        model=model, usage=usage, text=step.thought, reasoning=step.reasoning, tool_calls=step.tool_calls
    )


def _step(index: int, call: int | None, decision: StepDecision) -> dict[str, JSON]:
    parts = decision.difficulty_parts
    return {
        "step": index,
        "call": call,
        "difficulty": decision.difficulty,
        "difficulty_parts": None if parts is None else asdict(parts),
        "fsm_state": decision.fsm_state.value,
        "scores": dict(decision.scores),
        "composite": decision.composite,
        "fired": list(decision.monitors_fired),
        "failure_type": decision.failure_type,
        "gate_decision": decision.gate_decision,
        "injections": _injections(decision.injections),
        "skipped_reason": decision.skipped_reason,
    }


def _injections(injections: tuple[Injection, ...]) -> list[JSON]:
    return [{"source": injection.source, "text": injection.text} for injection in injections]
