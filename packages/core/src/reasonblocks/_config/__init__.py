"""What the user gives becomes `Settings` and backends, each value checked once, with its name in the message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from .._calibration_file import calibration_of
from .._monitors.builtin import WEIGHTS, resolve_weights
from .._routing import check_routing
from ..types import Placement, Settings
from ._checks import call_back, choice, flag, mapping, text
from ._options import Calibration, Config, Options, Standing
from ._parts import backends, counting, monitors, sinks, store_of, tool_roles
from ._run import bounded_id, bounded_task, check_given, settings_of
from ._values import budget, deadline, key, machine, on, refuse_server

__all__ = [
    "Calibration",
    "Config",
    "Options",
    "Standing",
    "bounded_id",
    "bounded_task",
    "check_given",
    "configure",
    "on",
    "settings_of",
    "tool_roles",
]


def configure(given: Options, environ: Mapping[str, str]) -> Config:
    """Check everything. Raises `ConfigError` with the argument's name, its value and the rule."""
    disabled = on("REASONBLOCKS_DISABLED", environ)
    if not disabled:
        refuse_server(given, environ)
    own = tuple(monitors(given.monitors))
    for name in ("org_id", "project_id"):
        text(name, getattr(given, name))
    for name in ("e_traces_enabled", "e2_requires_signal"):
        flag(name, getattr(given, name))
    routing = dict(mapping("model_routing", given.model_routing))
    check_routing(routing)
    transition, history_limit = machine(given)
    weights = dict(mapping("weights", given.weights))
    choice("task_profile", given.task_profile, tuple(WEIGHTS))
    calibration = calibration_of(given.calibration)
    settings = Settings(
        level=calibration.level,
        transition=transition,
        history_limit=history_limit,
        caller_scorer=call_back("scorer", given.scorer) is not None,
        custom_monitors=bool(own),
        task_profile=given.task_profile,
        weights=resolve_weights(given.task_profile, weights, [monitor.name for monitor in own]),
        org_id=given.org_id,
        token_budget=budget(given.token_budget),
        e_traces_enabled=given.e_traces_enabled,
        e2_requires_signal=given.e2_requires_signal,
        standing_rules=choice("standing_rules", given.standing_rules, get_args(Standing)),
        placement=choice("placement", given.placement, get_args(Placement)),
        disabled=disabled,
    )
    call_back("redact", given.redact)
    store = store_of(given, environ)
    return Config(
        settings=settings,
        backends=backends(given, own, calibration, store),
        owns_store=given.pattern_store is None,
        sinks=(*sinks(given.sinks), *counting(store)),
        model_routing=routing,
        weights=weights,
        api_key=key(given.api_key, environ),
        deadline_seconds=deadline(given.step_deadline_ms),
        strict=on("REASONBLOCKS_STRICT", environ) if given.strict is None else flag("strict", given.strict),
    )
