"""Derives a run's settings from those of the client, the run's own options, and its framework's capabilities."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from ..engine.routing import check_routing, model_name
from ..exceptions import ConfigError
from ..keywords import split_keywords
from ..monitors.builtin import WEIGHTS, resolve_weights
from ..render.guidance import CONTEXT_CHARS
from ..types import AdapterCaps, Mode, Placement, RunInfo, RunKeywords, RunOptions, Settings
from ..types.run import SessionKeywords
from ..types.steering import Condition
from ..util.json import evolve
from ..util.text import bounded, whole
from ._experiment import check_experiment
from ._parts import Config
from .options import choice, json_by_name, optional_text, text
from .server import Server

RUN_ID_BYTES = 200
INSTEAD: tuple[Placement, ...] = ("system", "tail", "message", "context")
"""Fallbacks for a client's placement that a run lacks: the first one available is used (BEHAVIOUR section 7)."""
TASK_CHARS = 2_000
_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""The header of W3C Trace Context, level 1; ids of zeros and the version ff are invalid."""
NAMES = tuple(field.name for field in fields(RunOptions) if field.name not in ("metadata", "on_fraction"))
"""The run options that are strings."""
SESSION = ("options", "framework", "snapshot", *SessionKeywords.__annotations__)
"""The parameters of `ReasonBlocks.session` that are not run options."""


def options_of(options: RunOptions | None, keywords: RunKeywords) -> RunOptions:
    """Return the options of a session with the keywords' values in place of their own."""
    own, _ = split_keywords("session", keywords, SESSION)
    if options is None:
        return own
    given: object = options
    if not isinstance(given, RunOptions):
        raise ConfigError("options", options, "must be RunOptions, or None")
    return evolve(options, **keywords)


def check_options(
    options: RunOptions, snapshot: Mapping[str, Any] | None, found: Mapping[str, object] | None = None
) -> None:
    """Validate a run's options, its snapshot, and the names that its adapter found. Raises `ConfigError`."""
    for name in NAMES:
        optional_text(name, getattr(options, name))
    for name, value in (found or {}).items():
        optional_text(name, value)
    if options.mode is not None:
        choice("mode", options.mode, get_args(Mode))
    if options.traceparent is not None and not _TRACEPARENT.fullmatch(options.traceparent):
        raise ConfigError("traceparent", options.traceparent, "must be 00-TRACE-SPAN-FLAGS in lower-case hexadecimal")
    json_by_name("metadata", options.metadata)
    check_experiment(options)
    run_id = options.run_id
    if run_id and isinstance(snapshot, Mapping):
        kept = snapshot.get("trace_id")
        if isinstance(kept, str) and kept not in (run_id, bounded_id(run_id)):
            rule = f"the snapshot is of run {kept!r}, which goes on under its own id: give that id, or none"
            raise ConfigError("run_id", run_id, rule)


def run_info(config: Config, options: RunOptions, new_id: str, found: Mapping[str, Any]) -> RunInfo:
    """Return the description of a run; `found` has the fields that only its adapter knows."""
    settings = config.settings
    return RunInfo(
        run_id=bounded_id(options.run_id) if options.run_id else new_id,
        agent_name=options.agent_name or "",
        task=whole((options.task or "")[:TASK_CHARS]),
        model=options.model or "",
        codebase_id=options.codebase_id,
        org_id=options.org_id or settings.org_id,
        project_id=options.project_id or config.project_id,
        task_profile=options.task_profile or settings.task_profile,
        mode=options.mode or settings.mode,
        traceparent=options.traceparent or current_traceparent(),
        metadata=dict(options.metadata or {}),
        **found,
    )


def current_traceparent() -> str | None:
    """Return the header of the current OpenTelemetry span, None without one. Imports nothing."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        span = trace.get_current_span().get_span_context()
        return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}" if span.is_valid else None
    except Exception:  # noqa: BLE001 - the program's own tracer may be anything
        return None


def bounded_id(run_id: str) -> str:
    """Return the id that a run has; a longer one ends in its hash."""
    return bounded(run_id, RUN_ID_BYTES)


def settings_of(
    config: Config,
    run: RunInfo,
    caps: AdapterCaps,
    options: RunOptions,
    route_names: Mapping[str, str] | None = None,
    interrupt_when: Condition | None = None,
) -> Settings:
    """Return the settings of one run. Raises `ConfigError` for a setting that its framework does not support."""
    base = config.settings
    where = _placement(options.placement, base.placement, caps)
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
        look_placement="message" if "message" in caps.placements else where,
        mode=options.mode or base.mode,
        operator_notes=base.operator_notes and (options.mode or base.mode) == "steer",
        stop_when=base.stop_when if caps.stop else None,
        interrupt_when=interrupt_when,
        second_look=base.second_look and caps.second_look,
        standing_rules="first_call" if where == "context" else base.standing_rules,
        max_guidance_chars=min(caps.max_guidance_chars, CONTEXT_CHARS if where == "context" else 12_000),
    )


def unable(config: Config, caps: AdapterCaps, settings: Settings) -> list[str]:
    """Return the names of the options that the framework cannot satisfy."""
    if settings.mode == "observe" or settings.disabled:
        return []
    wanted = {
        "stop_when": config.settings.stop_when is not None and not caps.stop,
        "second_look": config.settings.second_look and not caps.second_look,
    }
    return [name for name, lacks in wanted.items() if lacks]


def _weights(config: Config, profile: str) -> Mapping[str, float]:
    if profile == config.settings.task_profile:
        return config.settings.weights
    profile = profile_of(profile, config.server)
    custom = [monitor.name for monitor in config.backends.monitors]
    return resolve_weights(profile, config.weights, custom)


def profile_of(profile: str, server: Server | None) -> str:
    """Return the profile whose weights are those of this process. A server has profiles that are not known here."""
    if server is not None and text("task_profile", profile) not in WEIGHTS:
        return "coding"
    return choice("task_profile", profile, tuple(WEIGHTS))


def _placement(wanted: Placement | None, default: Placement, caps: AdapterCaps) -> Placement:
    """Return the run's own placement, which the framework must support; else the client's, else the first of `INSTEAD`.

    A client serves several frameworks, so a placement that one of them lacks is not an error of the caller.
    """
    if wanted is not None:
        if wanted not in caps.placements:
            raise ConfigError("placement", wanted, f"this framework has {', '.join(sorted(caps.placements))}")
        return wanted
    return next(place for place in (default, *INSTEAD) if place in caps.placements)
