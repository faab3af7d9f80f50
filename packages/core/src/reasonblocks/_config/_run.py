"""What decides in one run: the client's settings, what the run asks for itself, what its framework can do."""

from __future__ import annotations

from collections.abc import Mapping

from .._json import evolve
from .._monitors.builtin import WEIGHTS, resolve_weights
from .._render import CONTEXT_CHARS
from .._routing import check_routing, model_name
from .._text import bounded, whole
from ..exceptions import ConfigError
from ..types import AdapterCaps, Placement, RunInfo, Settings
from ._checks import json_by_name, optional_text
from ._options import Config

RUN_ID_BYTES = 200
INSTEAD: tuple[Placement, ...] = ("system", "tail", "context")
"""Fallbacks for a client's placement that a run lacks: the first one available is used (BEHAVIOUR section 7)."""
TASK_CHARS = 2_000
TEXTS = (
    *("run_id", "agent_name", "task", "model", "codebase_id", "org_id", "project_id", "task_profile", "placement"),
    *("framework", "parent_run_id", "parent_call_id", "session_id"),
)


def check_given(given: Mapping[str, object]) -> None:
    """A run's options as its caller gives them. Raises `ConfigError` with the option's name."""
    for name in TEXTS:
        optional_text(name, given.get(name))
    json_by_name("metadata", given.get("metadata"))
    run_id, snapshot = given.get("run_id"), given.get("snapshot")
    if isinstance(run_id, str) and run_id and isinstance(snapshot, Mapping):
        kept = snapshot.get("trace_id")
        if isinstance(kept, str) and kept not in (run_id, bounded_id(run_id)):
            rule = f"the snapshot is of run {kept!r}, which goes on under its own id: give that id, or none"
            raise ConfigError("run_id", run_id, rule)


def bounded_id(run_id: str) -> str:
    """The id as a run has it: what is too long ends in its hash."""
    return bounded(run_id, RUN_ID_BYTES)


def bounded_task(task: str) -> str:
    """Return the run's task, shortened as it is recorded and stored."""
    return whole(task[:TASK_CHARS])


def settings_of(
    config: Config,
    run: RunInfo,
    caps: AdapterCaps,
    placement: Placement | None = None,
    route_names: Mapping[str, str] | None = None,
) -> Settings:
    """The client's settings, for this run and what its framework can do. Raises `ConfigError`."""
    base = config.settings
    where = _placement(placement, base.placement, caps)
    names = {state: model_name(model) for state, model in config.model_routing.items()}
    if route_names is not None:
        check_routing(route_names)
        names.update(route_names)
    return evolve(
        base,
        task=run.task,
        task_profile=run.task_profile,
        weights=_weights(config, run.task_profile),
        org_id=run.org_id,
        routes={} if caps.routing == "none" else names,
        placement=where,
        standing_rules="first_call" if where == "context" else base.standing_rules,
        max_guidance_chars=min(caps.max_guidance_chars, CONTEXT_CHARS if where == "context" else 12_000),
    )


def _weights(config: Config, profile: str) -> Mapping[str, float]:
    if profile == config.settings.task_profile:
        return config.settings.weights
    if profile not in WEIGHTS:
        raise ConfigError.unknown("task_profile", profile, WEIGHTS)
    custom = [monitor.name for monitor in config.backends.monitors]
    return resolve_weights(profile, config.weights, custom)


def _placement(asked: Placement | None, default: Placement, caps: AdapterCaps) -> Placement:
    """Return the run's own placement, which the framework must support; else the client's, else the first of `INSTEAD`.

    A client serves several frameworks, so a placement that one of them lacks is not an error of the caller.
    """
    if asked is not None:
        if asked not in caps.placements:
            raise ConfigError("placement", asked, f"this framework has {', '.join(sorted(caps.placements))}")
        return asked
    return next(place for place in (default, *INSTEAD) if place in caps.placements)
