"""What steering concludes of a step: difficulty, evaluation, lessons, injections, the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias, get_args

from .._json import JSON


class FSMState(Enum):
    """How hard the run is going. The values are the upper-case names (BEHAVIOUR section 2)."""

    INIT = "INIT"
    FAST = "FAST"
    NORMAL = "NORMAL"
    SLOW = "SLOW"
    SKIP = "SKIP"
    END = "END"


Transition: TypeAlias = Callable[[FSMState, "tuple[float, ...]"], FSMState]
Tier: TypeAlias = Literal["e1", "e2", "e3"]
TIERS: tuple[Tier, ...] = get_args(Tier)
Placement: TypeAlias = Literal["system", "tail", "context"]
Routing: TypeAlias = Literal["per_call", "per_turn", "none"]
Source: TypeAlias = Literal["MonitorSteeringInjection", "E1Injection", "E2Injection", "E3Injection"]
GateDecision: TypeAlias = Literal["unavailable", "quiet", "cap", "cooldown", "duplicate", "inject", "final"]
SkippedReason: TypeAlias = Literal["auxiliary", "end", "fault", "disabled", "fast", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyParts:
    """The four parts of a difficulty, each in [0, 1] before they are weighed."""

    hedging: float = 0.0
    length: float = 0.0
    errors: float = 0.0
    entities: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreMemory:
    """What scoring keeps of a run: steps scored, the sum of `raw` without errors over the first of them, the decayed
    mean of `raw` up to the newest, and a hash of each of the last results."""

    count: int = 0
    total: float = 0.0
    recent: float = 0.0
    seen: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What is normal for an agent: the mean of its raw difficulty without errors, and how far below its own level an
    easy stretch lies. The prior, shipped or from `calibration`."""

    mean: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A point that a run's last step leaves open: the monitor that found it, and its text."""

    monitor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What all monitors say of a step. `scores` has every monitor, each in [0, 1], 1 is worst."""

    inject: bool = False
    intervention_text: str | None = None
    fired: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    composite: float = 0.0
    failure_type: str | None = None
    injection_path: str | None = None
    intervention_source: str | None = None
    pattern_id: str | None = None
    monitor: str | None = None
    """The monitor that the text speaks for; the rung of the next text counts its injections."""
    doubts: tuple[Doubt, ...] = ()
    """Points that this step would leave open if the run ended with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """One monitor injection of this run: before which call, and which monitor it spoke for."""

    step: int
    monitor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One thing to tell the agent."""

    source: Source
    text: str
    pattern_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision:
    """What one model call gets, decided from the completed step before it. `step` is the call's number."""

    step: int
    fsm_state: FSMState
    key: str | None = None
    difficulty: float | None = None
    difficulty_parts: DifficultyParts | None = None
    thought_preview: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    composite: float | None = None
    monitors_fired: tuple[str, ...] = ()
    failure_type: str | None = None
    gate_decision: GateDecision | None = None
    skipped_reason: SkippedReason | None = None
    route: str | None = None
    placement: Placement = "tail"
    injections: tuple[Injection, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Ids that the store gave, by tier that was asked ("monitor": the E2 that may speak with one); None: it could not
    answer."""
    dropped: tuple[Source, ...] = ()
    """Injections that did not fit into the guidance, or that a framework which keeps texts has already, by source."""
    standing_rules: str = ""
    """With `standing_rules="run"`: what belongs to the base block of every call."""
    guidance: str = ""
    cache_tokens_at_risk: int | None = 0
    replayed: bool = False
    doubts: tuple[Doubt, ...] = ()
    """Doubts that the final step raised; only its decision has them. Not part of a snapshot."""
    warnings: tuple[str, ...] = ()
    """Warnings that are logged once a run, such as a pattern that lacks a field. Not part of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCaps:
    """What a framework can do."""

    ephemeral: bool = True
    placements: frozenset[Placement] = frozenset({"system", "tail"})
    routing: Routing = "per_call"
    max_guidance_chars: int = 12_000
    tool_errors: bool = True
    output_tokens_live: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides, for one run, checked once when it was made (`reasonblocks.config`).

    `transition` is the built-in machine, or None when the caller gave one (it is asked for then); `caller_scorer` and
    `custom_monitors` say that the caller's are asked. `routes` maps a state's name to the name of its model.
    """

    level: Level
    transition: Transition | None = None
    history_limit: int = 64
    caller_scorer: bool = False
    custom_monitors: bool = False
    task: str = ""
    task_profile: str = "coding"
    weights: Mapping[str, float] = field(default_factory=dict)
    org_id: str = "default"
    routes: Mapping[str, str] = field(default_factory=dict)
    token_budget: int | None = None
    e_traces_enabled: bool = True
    e2_requires_signal: bool = False
    standing_rules: Literal["first_call", "run"] = "first_call"
    placement: Placement = "tail"
    max_guidance_chars: int = 12_000
    disabled: bool = False


Memories: TypeAlias = Mapping[str, JSON]
Observed: TypeAlias = "Sequence[tuple[str, float, JSON, tuple[int, ...]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A stored lesson.

    `fields` are texts, by tier: e1 `observation, recommended_action` (and `task_context_embedding_text`); e2
    `diagnosis, intervention, anti_pattern` (and `trigger_state: {trajectory_description}`); e3 `instruction`.
    `exemplars` are what similarity is measured against, by the best of them; without them the field in brackets is.
    `gate_threshold` replaces the tier's similarity for this pattern. `stats` counts `retrieved`, `injected`,
    `recovered`, `not_recovered`. `requires_signal`: only a search that names its `failure_type` sees it, so that its
    gate may be lower. `off`: never retrieved, and it hides a pattern of the same id in a layer below.
    """

    id: str
    tier: Tier
    fields: Mapping[str, JSON] = field(default_factory=dict)
    org_id: str | None = None
    failure_type: str | None = None
    model_family: str = "any"
    exemplars: tuple[str, ...] = ()
    gate_threshold: float | None = None
    source_trace_id: str | None = None
    revision: int = 1
    created_at: str | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    requires_signal: bool = False
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ETrace:
    """A pattern that was retrieved. `similarity` in [0, 1]; 1 for tier e3, which is not searched."""

    pattern: Pattern
    similarity: float = 1.0
