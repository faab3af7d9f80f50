"""Makes the JSON objects that `replay --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from reasonblocks.types import JSON, Injection, StepDecision

from ..replay import ReplayedRun
from ._account import account_json


def replayed_json(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the object of one run."""
    return {
        **run_json(replayed),
        "judged_by": replayed.judged_by,
        "start": {"fsm_state": replayed.start.fsm_state.value, "injections": _injections(replayed.start.injections)},
        "steps": [step_json(replayed, index) for index in range(len(replayed.decisions))],
        "doubts": [asdict(doubt) for doubt in replayed.doubts],
        **_stop(replayed),
    }


def _stop(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the step after which the run is stopped and the reason; None for both if nothing stops it."""
    at = replayed.stopped_at
    return {"stopped_at": at, "stop": None if at is None else replayed.decisions[at].stop}


def run_json(replayed: ReplayedRun) -> dict[str, JSON]:
    """Return the keys that name a run."""
    run = replayed.run
    return {"run_id": run.run_id, "file": run.file, "source": run.source, "outcome": run.outcome}


def step_json(replayed: ReplayedRun, index: int) -> dict[str, JSON]:
    """Return the object of one step; `call` is the call that was decided after it, None after the last step."""
    decision = replayed.decisions[index]
    parts = decision.difficulty_parts
    return {
        "step": index,
        "call": None if index + 1 == len(replayed.run.steps) else index + 1,
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
        "account": account_json(replayed, index),
        **_control(decision),
    }


def _control(decision: StepDecision) -> dict[str, JSON]:
    """Return what observing withheld and the reason that ends the run, of a decision that has them."""
    reasons = {"stop": decision.stop, "withheld_stop": decision.withheld_stop}
    return {
        **({"withheld": _injections(decision.withheld)} if decision.withheld else {}),
        **{name: reason for name, reason in reasons.items() if reason is not None},
    }


def _injections(injections: Sequence[Injection]) -> list[JSON]:
    return [{"source": injection.source, "text": injection.text} for injection in injections]
