"""The state of a run and its step log; the state's size is bounded for runs of any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ..util.json import JSON, retrieved_json
from ._step import ToolCall
from .account import Account, Patience, Work
from .steering import DifficultyParts, Doubt, FSMState, Injected, ScoreMemory, StepDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A completed step as the trace state keeps it. A text that was cut ends in the hash of the whole.

    The limits in bytes of JSON text are 1,000 for `text`, 200 for `action`, 500 for `action_input` and `observation`.
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
    """A tier's progress in this run: the number of its requests, if it is used up, and its next possible call."""

    asked: int = 0
    used: bool = False
    next_call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The answer to the last call, for adapters that cannot read the history: 1,200 bytes a text, four tool calls."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceState:
    """The state that decides the rest of a run. It is frozen, so a step that fails changes nothing.

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
    account: Account = field(default_factory=Account)
    patience: Patience = field(default_factory=Patience)
    evaluated: bool = False
    fired_before: tuple[bool, ...] = ()
    injected: tuple[Injected, ...] = ()
    injected_text: str | None = None
    injected_types: tuple[str, ...] = ()
    patterns_shown: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    """Short hashes of the texts that a framework keeps in its history; none of them is sent again."""
    e1: TierUse = field(default_factory=TierUse)
    e2: TierUse = field(default_factory=TierUse)
    e3: TierUse = field(default_factory=TierUse)
    standing_rules: str = ""
    second_look: int | None = None
    """The number of the call that is the run's second look."""
    looked_at: Doubt | None = None
    """The doubt that this call was about; None without one."""
    work: Work = field(default_factory=Work)
    """The run's newest check and the changes since; empty unless it may get a second look."""
    no_tail: bool = False
    """True once guidance for the tail goes into the system message."""
    budget_told: float = 1.0
    """The lowest share of its budget that the agent was told of."""
    budget_landed: bool = False
    """True once it was told to deliver."""
    budget_extension: int = 0
    """The calls by which its budget was extended."""
    seconds: float = 0.0
    """The time that the run took up to its newest call or answer; only counted for a budget of seconds."""
    cost_usd: float | None = 0.0
    """The price of its calls; only counted for a budget of it. None once the price of a call is unknown."""
    tool_uses: Mapping[str, int] = field(default_factory=dict)
    """The calls of tools that its budget limits."""
    tools_told: Mapping[str, float] = field(default_factory=dict)
    """The lowest share of a tool's calls that the agent was told of."""
    escalations: int = 0
    """The number of escalations so far."""
    escalated_until: int = 0
    """The step at which the last escalation ends."""
    advised: int = 0
    """The number of questions to the advisor so far."""
    advised_at: int = 0
    """The step before which it was asked last."""
    interrupted: bool = False
    """True as long as the condition holds for which a person was asked."""
    notes_told: tuple[str, ...] = ()
    """Ids of the newest notes that a call had which returned an answer; none of them is injected again."""
    call_tokens: int | None = None
    """Input and output tokens of the last call, which a provider may have cached."""
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
    """Entry n describes call n: the decision from completed step n-1, the call's input, and its outcome.

    `timestamp` is seconds since the epoch, `latency_ms` the time of the model, and `overhead_ms` the time that
    steering took before and after it. `tokens` is input plus output, None if the framework does not report them.
    `route` is the state whose mapped model was called, "ESCALATE" for an escalated call, None for the
    agent's own model. `retrieved` has the ids of the
    patterns that the store returned, by tier ("monitor": the e2 lesson for a monitor's text), None if the store could
    not answer. `pattern_ids` are the patterns injected into the call. With `mode="observe"`, nothing is injected, and
    the `withheld_` fields have the sources, texts and route that a steered call would have had.
    """

    step: int
    timestamp: float
    # decided, from completed step n-1
    difficulty: float | None = None
    difficulty_parts: DifficultyParts | None = None
    composite: float | None = None
    monitors_fired: tuple[str, ...] = ()
    failure_type: str | None = None
    finding_kind: str | None = None
    gate_decision: str | None = None
    thought_preview: str = ""
    # the call's input
    fsm_state: str = "INIT"
    injections: tuple[str, ...] = ()
    injection_sources: tuple[str, ...] = ()
    intervention_texts: tuple[str, ...] = ()
    injections_dropped: tuple[str, ...] = ()
    retrieved: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    pattern_ids: tuple[str, ...] = ()
    note_ids: tuple[str, ...] = ()
    """Ids of the operator's notes that the call got."""
    placement: str = "tail"
    cache_tokens_at_risk: int | None = None
    skipped_reason: str | None = None
    route: str | None = None
    mode: str = "steer"
    withheld_sources: tuple[str, ...] = ()
    withheld_texts: tuple[str, ...] = ()
    effort: str | None = None
    """The reasoning effort that the call was made with; None for that of the agent."""
    withheld_route: str | None = None
    withheld_effort: str | None = None
    withheld_stop: str | None = None
    """The reason for which `stop_when` would have ended the run before this call."""
    interrupt: str | None = None
    """The reason for which a person was asked before this call."""
    withheld_interrupt: str | None = None
    """The reason for which a person would have been asked before this call."""
    # the call's outcome
    model_id: str | None = None
    tool_calls: tuple[str, ...] = ()
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    """The price of the call in US dollars, in a run with a budget of it; None if it is unknown."""
    latency_ms: float | None = None
    overhead_ms: float = 0.0
    advisor_ms: float | None = None
    """The time for which an advisor was awaited before the call, in milliseconds; None if it was not asked."""
    advisor_tokens: int | None = None
    judged_by: str = "shipped"
    """The patience in use: "shipped", "patience: 3 of 5" for that of the option, or the name of the agent's own."""
    attempts: int = 0
    error: str | None = None
    # only in the final entry
    run_cost_usd: float | None = None
    """The price of all calls in US dollars, in a run with a budget of it; None if that of a call is unknown."""
    stop: str | None = None
    """The reason for which `stop_when` ended the run."""
    doubts: tuple[Doubt, ...] = ()
    """Doubts that the last step raised, recorded so that an outcome cannot hide a contradiction."""

    def as_dict(self) -> dict[str, JSON]:
        """Return the fields in JSON types."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {**plain, "retrieved": retrieved_json(self.retrieved)}
