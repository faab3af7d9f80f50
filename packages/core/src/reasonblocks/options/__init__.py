"""The options of `ReasonBlocks`, each with its type and default. `config` validates them, and `run` those of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:  # importing the client is cheap
    from ..ports import Advisor, Embedder, Mailbox, Monitor, PatternStore, TelemetrySink
    from ..session import Profiles, RunView
    from ..types import Budget, Escalate, Injection, Mode, Placement, Step, Transition
    from ..types.steering import SecondLook

CalibrationSource: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str]"
ProfileSource: TypeAlias = "str | os.PathLike[str] | Profiles"
OnInjection: TypeAlias = "Callable[[Injection, RunView], Injection | str | None]"
StandingRules: TypeAlias = Literal["first_call", "run"]
StopWhen: TypeAlias = 'Literal["stalled", "over_budget"] | Callable[[RunView], str | None]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `ReasonBlocks`, whose docstring describes them, as the user gives them: nothing is validated."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # may hold a key
    org_id: str = "default"
    project_id: str = "default"
    fsm_thresholds: Mapping[str, float] | None = None
    transition: Transition | None = None
    model_routing: Mapping[str, object] | None = None
    token_budget: int | None = None
    budget: Budget | Literal["auto"] | None = None
    task_profile: str = "coding"
    weights: Mapping[str, float] | None = None
    monitors: Iterable[Monitor | str] = ()
    tool_roles: Mapping[str, str] | None = None
    scorer: Callable[[Step], float] | None = None
    calibration: CalibrationSource | None = None
    profile: ProfileSource | None = "shared"
    patience: str | None = None
    explore: float = 0.0
    pattern_store: PatternStore | None = None
    embedder: Embedder | None = None
    e_traces_enabled: bool = True
    e2_requires_signal: bool = False
    standing_rules: StandingRules = "first_call"
    sinks: Iterable[TelemetrySink] = ()
    live_streaming_enabled: bool | None = None
    redact: Callable[[str], str] | None = None
    placement: Placement = "tail"
    mode: Mode = "steer"
    on_injection: OnInjection | None = None
    second_look: bool | SecondLook = False
    escalate: Escalate | None = None
    advisor: Advisor | object | None = None
    stop_when: StopWhen | None = None
    mailbox: Mailbox | None = None
    operator_notes: bool = True
    step_deadline_ms: float = 800
    strict: bool | None = None
