"""A replayed run as JSON: what `replay --json` prints of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ..types import JSON, Injection, StepDecision, doubts_json

if TYPE_CHECKING:
    from ..replay import Replayed

__all__ = ["replayed_json"]


def replayed_json(replayed: Replayed) -> dict[str, JSON]:
    """One object a run."""
    run, last = replayed.run, len(replayed.decisions) - 1
    return {
        "run_id": run.run_id,
        "file": run.file,
        "source": run.source,
        "outcome": run.outcome,
        "start": {"fsm_state": replayed.start.fsm_state.value, "injections": _injections(replayed.start.injections)},
        "steps": [
            _step(index, None if index == last else index + 1, decision)
            for index, decision in enumerate(replayed.decisions)
        ],
        "doubts": doubts_json(replayed.doubts),
    }


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
