"""The events that sinks receive: a run's start, each call, and its finish (the telemetry bodies of the wire)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from ._json import retrieved_json
from .types import JSON, Doubt, RunInfo, Step, StepLogEntry

__all__ = ["Event", "RunFinish", "RunStart", "StepEvent", "step_event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The start of a run, before call 0. `timestamp` is seconds since the epoch."""

    run: RunInfo
    timestamp: float

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def as_dict(self) -> dict[str, JSON]:
        return {"event": "run_start", "timestamp": self.timestamp, **asdict(self.run)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """Call n: its model and tokens, with thought, action and observation of completed step n-1."""

    run_id: str
    step_index: int
    timestamp: float
    thought: str = ""
    action: str = ""
    action_input: str = ""
    observation: str = ""
    is_error: bool | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    step_model: str | None = None
    injections: tuple[str, ...] = ()
    injection_sources: tuple[str, ...] = ()
    intervention_texts: tuple[str, ...] = ()
    monitors_fired: tuple[str, ...] = ()
    failure_type: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    composite: float | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    def as_dict(self) -> dict[str, JSON]:
        body = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {"event": "step", **body}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinish:
    """The end of a run: "success", "failure: ExcType", "stopped: reason" or the given reason.

    A second event replaces a success.

    `doubts` were raised by the final step and may contradict the outcome.
    """

    run_id: str
    outcome: str
    timestamp: float
    doubts: tuple[Doubt, ...] = ()

    def as_dict(self) -> dict[str, JSON]:
        return {"event": "run_finish", **asdict(self), "doubts": [asdict(doubt) for doubt in self.doubts]}


Event: TypeAlias = RunStart | StepEvent | RunFinish


def step_event(run_id: str, entry: StepLogEntry, step: Step | None, scores: Mapping[str, float]) -> StepEvent:
    """Return the event of a log entry; `step` is the completed step from which it was decided."""
    done = step or Step()
    return StepEvent(
        run_id=run_id,
        step_index=entry.step,
        timestamp=entry.timestamp,
        thought=done.thought or done.reasoning,
        action=done.action,
        action_input=done.action_input,
        observation=done.observation,
        is_error=done.is_error,
        tokens=entry.tokens,
        input_tokens=entry.input_tokens,
        output_tokens=entry.output_tokens,
        cache_read_tokens=entry.cache_read_tokens,
        step_model=entry.model_id,
        injections=entry.injections,
        injection_sources=entry.injection_sources,
        intervention_texts=entry.intervention_texts,
        monitors_fired=entry.monitors_fired,
        failure_type=entry.failure_type,
        scores=scores,
        composite=entry.composite,
        metadata=_metadata(entry),
    )


def _metadata(entry: StepLogEntry) -> dict[str, JSON]:
    """Return what has no field of its own on the wire, without empty values; `final` marks the last step."""
    known: dict[str, JSON] = {
        "fsm_state": entry.fsm_state,
        "difficulty": entry.difficulty,
        "latency_ms": entry.latency_ms,
        "overhead_ms": entry.overhead_ms,
        "model_id": entry.model_id,
        "skipped_reason": entry.skipped_reason,
        "gate_decision": entry.gate_decision,
        "route": entry.route,
        "judged_by": None if entry.judged_by == "shipped" else entry.judged_by,
        "placement": entry.placement,
        "error": entry.error,
        "retrieved": retrieved_json(entry.retrieved) or None,
        "pattern_ids": list(entry.pattern_ids) or None,
        "doubts": [asdict(doubt) for doubt in entry.doubts] or None,
        "injections_dropped": list(entry.injections_dropped) or None,
        "mode": None if entry.mode == "steer" else entry.mode,
        "withheld_sources": list(entry.withheld_sources) or None,
        "withheld_texts": list(entry.withheld_texts) or None,
        "withheld_route": entry.withheld_route,
        "withheld_stop": entry.withheld_stop,
        "withheld_interrupt": entry.withheld_interrupt,
        "interrupt": entry.interrupt,
        "stop": entry.stop,
        "final": True if entry.gate_decision == "final" else None,
    }
    return {key: value for key, value in known.items() if value is not None}
