"""Turns a user's options into `Config`; each value is validated once, and errors name the option."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from ..engine.routing import check_routing
from ..monitors.builtin import resolve_weights
from ..monitors.calibration import level_of
from ..monitors.patience import rung_of
from ..ports import Embedder, Mailbox, Monitor, PatternStore, TelemetrySink
from ..session import Profiles, Workers
from ..types import Mode, Placement, Settings, Step, Transition
from ._experiment import Assignments, assigned, kept_id
from ._parts import (
    Config,
    OnInjection,
    StopWhen,
    all_sinks,
    backends_of,
    custom_monitors,
    profiles_of,
    sinks_of,
    store_of,
    tool_roles_of,
    with_control,
)
from ._run import bounded_id, check_options, options_of, profile_of, run_info, settings_of, unable
from .options import (
    api_key_of,
    budget,
    call_back,
    choice,
    condition,
    deadline,
    easy_of,
    flag,
    machine,
    mapping,
    share,
    switch,
    text,
)
from .server import evaluated_by, server_of

_log = logging.getLogger("reasonblocks")

__all__ = [
    "Assignments",
    "CalibrationSource",
    "Config",
    "OnInjection",
    "ProfileSource",
    "StandingRules",
    "StopWhen",
    "assigned",
    "bounded_id",
    "check_options",
    "condition",
    "configure",
    "kept_id",
    "options_of",
    "run_info",
    "settings_of",
    "tool_roles_of",
    "unable",
]

CalibrationSource: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str]"
ProfileSource: TypeAlias = "str | os.PathLike[str] | Profiles"
StandingRules = Literal["first_call", "run"]


def configure(
    environ: Mapping[str, str], *,
    api_key: str | None, base_url: str | None, live_streaming_enabled: bool | None, org_id: str, project_id: str,
    fsm_thresholds: Mapping[str, float] | None, transition: Transition | None, scorer: Callable[[Step], float] | None,
    model_routing: Mapping[str, object] | None, token_budget: int | None, task_profile: str,
    weights: Mapping[str, float] | None, monitors: Iterable[Monitor | str], tool_roles: Mapping[str, str] | None,
    calibration: CalibrationSource | None, pattern_store: PatternStore | None, embedder: Embedder | None,
    e_traces_enabled: bool, e2_requires_signal: bool, standing_rules: StandingRules, placement: Placement,
    sinks: Iterable[TelemetrySink], redact: Callable[[str], str] | None, step_deadline_ms: float, strict: bool | None,
    profile: ProfileSource | None, patience: str | None, explore: float, mode: Mode,
    on_injection: OnInjection | None, stop_when: StopWhen | None,
    second_look: bool, mailbox: Mailbox | None, operator_notes: bool,
) -> Config:  # fmt: skip
    """Return the validated options of `ReasonBlocks`. Raises `ConfigError` with the option's name, value and rule."""
    disabled, key = switch("REASONBLOCKS_DISABLED", environ), api_key_of(api_key, environ)
    call_back("redact", redact)
    server = server_of(base_url, key, live_streaming_enabled, call_back("redact", redact), environ, disabled=disabled)
    own, workers = tuple(custom_monitors(monitors)), Workers() if server is None else server.workers
    check_routing(routing := dict(mapping("model_routing", model_routing)))
    own_weights = dict(mapping("weights", weights))
    built_in, history_limit = machine(transition, fsm_thresholds)
    level, roles = level_of(calibration, _log.warning), tool_roles_of(tool_roles)
    store, seconds = store_of(pattern_store, embedder, environ, server), deadline(step_deadline_ms)
    strict = switch("REASONBLOCKS_STRICT", environ) if strict is None else flag("strict", strict)
    settings = Settings(
        level=level,
        transition=built_in,
        history_limit=history_limit,
        caller_scorer=call_back("scorer", scorer) is not None,
        custom_monitors=bool(own),
        task_profile=task_profile,
        weights=resolve_weights(profile_of(task_profile, server), own_weights, [monitor.name for monitor in own]),
        org_id=text("org_id", org_id),
        token_budget=budget(token_budget),
        e_traces_enabled=flag("e_traces_enabled", e_traces_enabled),
        e2_requires_signal=flag("e2_requires_signal", e2_requires_signal),
        standing_rules=choice("standing_rules", standing_rules, get_args(StandingRules)),
        placement=choice("placement", placement, get_args(Placement)),
        patience=None if patience is None else rung_of(patience).name,
        explore=share("explore", explore),
        easy=easy_of(built_in),
        tool_roles=roles,
        disabled=disabled,
    )
    profiles = profiles_of(profile, environ, server, settings.org_id, seconds)
    backends = backends_of(own, roles, store, scorer, transition, profiles, workers, strict=strict)
    backends = evaluated_by(server, backends, own_weights, tool_roles)
    settings, backends = with_control(
        settings, backends, mode, on_injection, stop_when, second_look, mailbox, operator_notes
    )
    return Config(
        settings=settings,
        backends=backends,
        owns_store=pattern_store is None,
        project_id=text("project_id", project_id),
        sinks=all_sinks(sinks_of(sinks), server, store, disabled=disabled),
        model_routing=routing,
        weights=own_weights,
        api_key=key,
        server=server,
        deadline_seconds=seconds,
        strict=strict,
        workers=workers,
    )
