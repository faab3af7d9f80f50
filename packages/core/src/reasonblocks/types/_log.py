"""The user's record: one entry a model call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ._json import JSON
from ._quick import quick
from ._steering import DifficultyParts, Doubt


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class StepLogEntry:
    """Entry n is call n: what was decided before it from completed step n-1, what it got, what it did.

    `timestamp` is seconds since the epoch; `latency_ms` the model's, `overhead_ms` what steering took before and
    after it; `tokens` input + output as the framework reports them, None where it does not. `route` is the state whose
    mapped model the call went to, None where it was the agent's own. `retrieved` has the ids of the patterns that the
    store gave, by tier that was asked ("monitor": the E2 that may speak with one), None where it could not answer;
    `pattern_ids` are those that the call was shown.
    """

    step: int
    timestamp: float
    # decided, from completed step n-1
    difficulty: float | None = None
    difficulty_parts: DifficultyParts | None = None
    composite: float | None = None
    monitors_fired: tuple[str, ...] = ()
    failure_type: str | None = None
    gate_decision: str | None = None
    thought_preview: str = ""
    # what the call got
    fsm_state: str = "INIT"
    injections: tuple[str, ...] = ()
    injection_sources: tuple[str, ...] = ()
    intervention_texts: tuple[str, ...] = ()
    injections_dropped: tuple[str, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    pattern_ids: tuple[str, ...] = ()
    placement: str = "tail"
    cache_tokens_at_risk: int | None = None
    skipped_reason: str | None = None
    route: str | None = None
    # what it did
    model_id: str | None = None
    tool_calls: tuple[str, ...] = ()
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    latency_ms: float | None = None
    overhead_ms: float = 0.0
    attempts: int = 0
    error: str | None = None
    # only in the final entry
    doubts: tuple[Doubt, ...] = ()
    """Doubts that the last step raised, so that an outcome never hides a contradiction."""

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready, one key a field."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {**plain, "retrieved": retrieved_json(self.retrieved), "doubts": doubts_json(self.doubts)}


def doubts_json(doubts: tuple[Doubt, ...]) -> list[JSON]:
    """JSON-ready doubts."""
    return [{"monitor": one.monitor, "text": one.text} for one in doubts]


def retrieved_json(retrieved: Mapping[str, tuple[str, ...] | None]) -> dict[str, JSON]:
    """JSON-ready ids by tier."""
    return {tier: None if ids is None else list(ids) for tier, ids in retrieved.items()}
