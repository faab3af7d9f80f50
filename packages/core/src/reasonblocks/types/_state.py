"""What steering knows of a run, bounded however long the run gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from .._json import JSON, retrieved_json
from ._steering import DifficultyParts, Doubt, FSMState, Injected, ScoreMemory, StepDecision
from ._step import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A completed step as the trace state keeps it: bounded texts, a hash stands for what was cut.

    `text` at most 1,200 bytes of JSON text, `action` 200, `action_input` and `observation` 500 each.
    """

    step: int
    text: str
    action: str
    action_input: str
    observation: str
    is_error: bool | None
    difficulty: float | None
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUse:
    """How far one tier has got in this run: its requests, whether it is used up, when it may ask again."""

    asked: int = 0
    used: bool = False
    next_call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What the last call said, kept for adapters that cannot read the history: 1,200 bytes a text, four calls."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceState:
    """The state that decides the rest of a run. Frozen: a step that fails changes nothing.

    `calls` counts the decisions, so it is the number of the next call; `auxiliary_calls` of them were not steps.
    `keys` are short hashes of the newest keys.
    """

    trace_id: str
    current_state: FSMState = FSMState.INIT
    difficulty_history: tuple[float, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    total_tokens: int = 0
    token_budget: int | None = None
    calls: int = 0
    auxiliary_calls: int = 0
    faults: int = 0
    score_memory: ScoreMemory = field(default_factory=ScoreMemory)
    memories: Mapping[str, JSON] = field(default_factory=dict)
    evaluated: bool = False
    fired_before: tuple[bool, ...] = ()
    injected: tuple[Injected, ...] = ()
    injected_text: str | None = None
    injected_types: tuple[str, ...] = ()
    patterns_shown: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    """Of a framework that keeps what it is told: short hashes of the texts, none of which is sent again."""
    e1: TierUse = field(default_factory=TierUse)
    e2: TierUse = field(default_factory=TierUse)
    e3: TierUse = field(default_factory=TierUse)
    standing_rules: str = ""
    call_tokens: int | None = None
    """Input and output of the last call: what a provider may have cached."""
    pending: Pending | None = None
    keys: tuple[str, ...] = ()
    last: StepDecision | None = None
    """The decision of the last step."""
    last_auxiliary: StepDecision | None = None
    """The decision of the last auxiliary call since then."""

    @property
    def steps_begun(self) -> int:
        """The number of calls that were steps, which is also the number of the next step."""
        return self.calls - self.auxiliary_calls


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
        return {**plain, "retrieved": retrieved_json(self.retrieved)}
