"""The conclusions of steering about a step: difficulty, evaluation, lessons, injections and the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias, get_args

from ..util.json import JSON


class FSMState(Enum):
    """The difficulty state of a run (BEHAVIOUR section 2)."""

    INIT = "INIT"
    FAST = "FAST"
    NORMAL = "NORMAL"
    SLOW = "SLOW"
    SKIP = "SKIP"
    END = "END"


Transition: TypeAlias = Callable[[FSMState, "tuple[float, ...]"], FSMState]
Tier: TypeAlias = Literal["e1", "e2", "e3"]
TIERS: tuple[Tier, ...] = get_args(Tier)
Placement: TypeAlias = Literal["system", "tail", "message", "context"]
Routing: TypeAlias = Literal["per_call", "per_turn", "none"]
Mode: TypeAlias = Literal["steer", "observe"]
SecondLook: TypeAlias = Literal["doubt", "unchecked", "always"]
"""The ends of a run that get a second look: contradicted ones, also unchecked ones, or all."""
Condition: TypeAlias = Literal["stalled", "over_budget", "caller"]
"""A condition of `stop_when` or `interrupt_when`; with "caller", the caller's own callable decides."""
Source: TypeAlias = Literal[
    "OperatorInjection", "MonitorSteeringInjection", "E1Injection", "E2Injection", "E3Injection", "BudgetInjection"
]
GateDecision: TypeAlias = Literal["unavailable", "quiet", "cap", "cooldown", "duplicate", "inject", "final"]
SkippedReason: TypeAlias = Literal["auxiliary", "end", "fault", "disabled", "fast", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyParts:
    """The four parts of a difficulty, each in [0, 1], before weighting."""

    hedging: float = 0.0
    length: float = 0.0
    errors: float = 0.0
    entities: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreMemory:
    """The scorer's memory of a run.

    `count` is the number of scored steps, `total` the sum of the first steps' raw difficulty without errors, `recent`
    the decayed mean of the raw difficulty, `fresh` that of the steps that brought something, and `stall` the count of
    dead steps, which each other step halves.
    """

    count: int = 0
    total: float = 0.0
    recent: float = 0.0
    fresh: float = 0.0
    stall: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """An agent's normal difficulty, shipped or from `calibration`.

    `mean` is that of the raw difficulty without errors; `spread` is the distance of an easy stretch below it.
    """

    mean: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A question that a run's last step leaves open, as text, and the monitor that found it."""

    monitor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of all monitors for one step. `scores` has every monitor's score in [0, 1], where 1 is worst."""

    inject: bool = False
    intervention_text: str | None = None
    """The whole text: for a monitor's, its `fact` and its `hint`."""
    fact: str = ""
    """The sentence about what has happened, counted from the account."""
    hint: str = ""
    """A way on, by what the run has shown; "" for none."""
    fired: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    composite: float = 0.0
    failure_type: str | None = None
    injection_path: str | None = None
    intervention_source: str | None = None
    pattern_id: str | None = None
    monitor: str | None = None
    """The monitor whose text it is. Its injections so far select the rung of its next text."""
    kind: str | None = None
    """The kind of the finding in the text, such as "waiting" or "claim"; without a text, that of the worst finding.

    Lessons are tied to it. None if it is not known, as for a caller's monitor."""
    doubts: tuple[Doubt, ...] = ()
    """Questions that this step would leave open if the run ended with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text of a person for a live run, of at most 2,000 characters. `id`, of 1 to 64 bytes, is unique in its run."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A monitor injection of this run: the call that it preceded, and its monitor."""

    step: int
    monitor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A text for the agent, with its origin."""

    source: Source
    text: str
    pattern_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision:
    """The decision for one model call, made from the completed step before it. `step` is the call's number."""

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
    finding_kind: str | None = None
    """The kind of the finding that the monitor's text is about; without a text, that of the worst finding."""
    gate_decision: GateDecision | None = None
    skipped_reason: SkippedReason | None = None
    route: str | None = None
    """The state whose mapped model is to be called, or "ESCALATE"; None for the agent's own model."""
    effort: str | None = None
    """The reasoning effort for this call; None for that of the agent."""
    advisor_ms: float | None = None
    """The time for which the advisor was awaited, in milliseconds; None if it was not asked."""
    advisor_tokens: int | None = None
    placement: Placement = "tail"
    injections: tuple[Injection, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Ids that the store returned, by tier ("monitor": the e2 lesson for a monitor's text); None without an answer."""
    dropped: tuple[Source, ...] = ()
    """Sources of the injections that were left out: they did not fit, or the framework's history has them already."""
    standing_rules: str = ""
    """The rules for the system prompt of every call, with `standing_rules="run"`."""
    guidance: str = ""
    cache_tokens_at_risk: int | None = 0
    replayed: bool = False
    doubts: tuple[Doubt, ...] = ()
    """Doubts that the final step raised; only its decision has them. Not part of a snapshot."""
    mode: Mode = "steer"
    withheld: tuple[Injection, ...] = ()
    """The injections that mode "observe" withheld from the call; `injections` and `guidance` are then empty."""
    withheld_route: str | None = None
    """The route that mode "observe" did not take; `route` is then None."""
    withheld_effort: str | None = None
    """The effort that mode "observe" did not ask for."""
    stop: str | None = None
    """The reason for which `stop_when` or the budget ended the run; the call of this decision must not be made."""
    withheld_stop: str | None = None
    """The reason for which `stop_when` would have ended the run without mode "observe"."""
    interrupt: str | None = None
    """The reason for which `interrupt_when` requires asking a person before this call."""
    withheld_interrupt: str | None = None
    """The reason for which a person would have been asked without mode "observe"."""
    note_ids: tuple[str, ...] = ()
    """Ids of the operator's notes in the guidance."""
    warnings: tuple[str, ...] = ()
    """Warnings that are logged once a run, such as a pattern that lacks a field. Not part of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCaps:
    """The capabilities of a framework.

    `stop` is False if an adapter cannot end a run before its next call, and `second_look` if it cannot continue a run
    that has ended. `effort` is True if it makes a call with the reasoning effort of its decision, `advisor` False if
    its hooks may not wait for a model, and `tool_limits` True if it refuses the calls of tools for which the session
    has a `tool_refusal`.
    """

    ephemeral: bool = True
    placements: frozenset[Placement] = frozenset({"system", "tail", "message"})
    routing: Routing = "per_call"
    max_guidance_chars: int = 12_000
    tool_errors: bool = True
    stop: bool = True
    second_look: bool = True
    effort: bool = False
    advisor: bool = True
    tool_limits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits at which a run ends, and when its agent is told what is left of them.

    `calls` are model calls that are steps: the retries of one call are one, and auxiliary calls are none. `tokens` are
    input plus output, as the framework reports them. `cost_usd` is their price in US dollars, by the list prices of the
    package genai-prices. `seconds` are those since the run's first call, without the time in which it is paused; a call
    that has begun is not cut off. `tools` are calls of single tools, by name: they end no run, and where the framework
    can, further calls are refused. `tell_at` has the shares that are left when the agent is told; with `every_call`, it
    is told at each call. From `land_at` calls before the end on, it is told once to deliver, and before the last call
    to answer. `extend` grants so many calls more, once, if none of the last 8 steps was dead.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    tools: Mapping[str, int] | None = None
    tell_at: tuple[float, ...] = (0.5, 0.25, 0.1)
    land_at: int = 3
    extend: int = 0
    every_call: bool = False


AUTO = Budget()
"""The budget "auto", without a limit of its own: the framework's limits are told, and the framework ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalate:
    """A stronger model, or more reasoning effort, for a few calls of a run that is stuck.

    It begins when the run's patience is reached, the agent has been told at least `after` texts of monitors, and the
    cooldown since the newest of them is over. The next `dwell` calls go to `model`, an identifier or a model object as
    in `model_routing`, or have `effort`, a word of the provider's such as "high", or both. It happens at most `times`
    in a run.
    """

    model: object = None
    effort: str | None = None
    after: int = 1
    dwell: int = 4
    times: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The validated settings of one run.

    `transition` is the built-in machine, or None if the engine has to ask for the caller's. `caller_scorer`,
    `custom_monitors` and `on_injection` are True if it has to request those. `routes` maps a state's name to the name
    of its model. `patience` is the rung that the caller chose, None for the agent's own or the default, and `explore`
    the share of an agent's runs in which its monitors are silent. A difficulty below `easy` is that of an easy step.
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
    look_placement: Placement = "tail"
    """The placement of a second look: a provider may refuse messages that end with the agent's own answer."""
    max_guidance_chars: int = 12_000
    patience: str | None = None
    explore: float = 0.0
    easy: float = 0.2
    tool_roles: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = "steer"
    on_injection: bool = False
    stop_when: Condition | None = None
    interrupt_when: Condition | None = None
    second_look: SecondLook | None = None
    operator_notes: bool = False
    """True if the engine has to ask for notes before each call."""
    budget: Budget | None = None
    ends_at_budget: bool = True
    """False if the framework cannot end a run before its next call: then no call is said to be the last."""
    refuses_tools: bool = False
    """True if calls of a tool beyond its limit are refused."""
    escalate: Escalate | None = None
    """With the name of its model; None if the framework can do nothing of it."""
    advisor: bool = False
    """True if the engine has to ask for advice before a monitor's text."""
    disabled: bool = False


Memories: TypeAlias = Mapping[str, JSON]
Observed: TypeAlias = "Sequence[tuple[str, float, JSON, tuple[int, ...]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A stored lesson.

    `fields` are texts, by tier: e1 `observation, recommended_action` (and `task_context_embedding_text`); e2
    `diagnosis, intervention, anti_pattern` (and `trigger_state: {trajectory_description}`); e3 `instruction`.
    Similarity is the best one to any of the `exemplars`, or to the field in brackets without any. `gate_threshold`
    replaces the tier's minimum similarity for this pattern. `stats` counts `retrieved`, `injected`, `recovered` and
    `not_recovered`. A pattern with `requires_signal` is only visible to searches that name its `failure_type`, so that
    its gate may be lower. `kinds` are the kinds of findings that a pattern of tier e2 is for, such as "waiting" of
    `loop`: it is never shown with a finding of another kind. Without any it is for all kinds of its `failure_type`. A
    kind that no monitor has is kept, and fits no finding. A pattern that is `off` is never retrieved, and hides a
    pattern of the same id in a lower layer.
    """

    id: str
    tier: Tier
    fields: Mapping[str, JSON] = field(default_factory=dict)
    org_id: str | None = None
    failure_type: str | None = None
    kinds: tuple[str, ...] = ()
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
    """A retrieved pattern. `similarity` is in [0, 1]; it is 1 for tier e3, which is not searched by similarity."""

    pattern: Pattern
    similarity: float = 1.0
