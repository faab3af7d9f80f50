"""One recorded run through one fresh session: what steering would have decided, step by step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..replay import replay
from ..types import JSON, Injection, StepDecision

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
    """Drive the run as a hand-written loop would."""
    replayed = replay(rb, run)
    return RunReport(run=run, start=replayed.start, decisions=replayed.decisions)


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
