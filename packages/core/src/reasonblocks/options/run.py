"""Derives a run's settings from those of the client, the run's own options, and its framework's capabilities.

The runs of an experiment are assigned to its arms: runs in "on" are steered, and runs in "off" are only observed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias, get_args

from ..engine.routing import ESCALATE, check_routing, model_name
from ..exceptions import ConfigError
from ..keywords import split_keywords
from ..monitors.builtin import resolve_weights
from ..render.guidance import CONTEXT_CHARS
from ..types import AdapterCaps, Escalate, Mode, Placement, RunInfo, RunKeywords, RunOptions, Settings
from ..types.run import SessionKeywords
from ..types.steering import Condition
from ..util.json import JSON, is_number
from ..util.text import cut_with_hash, whole
from .config import Config, profile_of
from .values import choice, json_by_name, limits, optional_text

ID_BYTES = 200
"""The most bytes in the id of a run, an experiment or a unit."""
INSTEAD: tuple[Placement, ...] = ("system", "tail", "message", "context")
"""Fallbacks for a client's placement that a run lacks: the first one available is used."""
TASK_CHARS = 2_000
_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""The header of W3C Trace Context, level 1; ids of zeros and the version ff are invalid."""
NAMES = tuple(field.name for field in fields(RunOptions) if field.name not in ("metadata", "on_fraction", "budget"))
"""The run options that are strings."""
SESSION = ("options", "framework", "snapshot", *SessionKeywords.__annotations__)
"""The parameters of `ReasonBlocks.session` that are not run options."""
Arm: TypeAlias = Literal["on", "off"]
MODES: Mapping[Arm, Mode] = {"on": "steer", "off": "observe"}
DEFAULT_FRACTION = 0.5
MAX_ASSIGNED = 4_096
"""The number of newest runs whose assignments are kept for the runs that they start."""
RESERVED = ("experiment_id", "arm", "assignment_unit", "on_fraction")
"""Names in the metadata of a run that is part of an experiment."""


def options_of(options: RunOptions | None, keywords: RunKeywords) -> RunOptions:
    """Return the options of a session with the keywords' values in place of their own."""
    own, _ = split_keywords("session", keywords, SESSION)
    if options is None:
        return own
    given: object = options
    if not isinstance(given, RunOptions):
        raise ConfigError("options", options, "must be RunOptions, or None")
    return replace(options, **keywords)


def check_options(
    options: RunOptions, snapshot: Mapping[str, Any] | None, found: Mapping[str, object] | None = None
) -> None:
    """Validate a run's options, its snapshot, and the names that its adapter found. Raises `ConfigError`."""
    for name in NAMES:
        optional_text(name, getattr(options, name))
    for name, value in (found or {}).items():
        optional_text(name, value)
    limits("budget", options.budget)
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
    return cut_with_hash(run_id, ID_BYTES)


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
        check_routing({state: name for state, name in route_names.items() if state != ESCALATE})
        names.update(route_names)
    return replace(
        base,
        task=run.task,
        task_profile=run.task_profile,
        weights=_weights(config, run.task_profile),
        org_id=run.org_id,
        routes={} if caps.routing == "none" else names,
        escalate=_escalate(base.escalate, names, caps),
        advisor=base.advisor and caps.advisor and run.mode == "steer" and not base.disabled,
        placement=where,
        look_placement="message" if "message" in caps.placements else where,
        mode=run.mode,
        operator_notes=base.operator_notes and run.mode == "steer",
        stop_when=base.stop_when if caps.stop else None,
        budget=base.budget if options.budget is None else limits("budget", options.budget),
        ends_at_budget=caps.stop,
        refuses_tools=caps.tool_limits and run.mode == "steer" and not base.disabled,
        interrupt_when=interrupt_when,
        second_look=base.second_look if caps.second_look else None,
        standing_rules="first_call" if where == "context" else base.standing_rules,
        max_guidance_chars=min(
            caps.max_guidance_chars, CONTEXT_CHARS if where == "context" else base.max_guidance_chars
        ),
    )


def unable(config: Config, caps: AdapterCaps, settings: Settings) -> Mapping[str, str]:
    """Return the options that the framework cannot satisfy, and what they do instead."""
    if settings.mode == "observe" or settings.disabled:
        return {}
    wanted = {
        "stop_when": config.settings.stop_when is not None and not caps.stop,
        "advisor": config.settings.advisor and not caps.advisor,
        "escalate": config.settings.escalate is not None and settings.escalate is None,
        "second_look": config.settings.second_look is not None and not caps.second_look,
    }
    lacking = {name: "has no effect on this run" for name, lacks in wanted.items() if lacks}
    if settings.budget is not None and settings.budget.tools and not caps.tool_limits:
        lacking["budget.tools"] = "is told, and no call is refused"
    return lacking


def _escalate(wanted: Escalate | None, names: Mapping[str, str], caps: AdapterCaps) -> Escalate | None:
    """Return the part of an escalation that the framework can do, with its model's name; None for none."""
    if wanted is None:
        return None
    model = None if caps.routing == "none" else names.get(ESCALATE)
    effort = wanted.effort if caps.effort else None
    return replace(wanted, model=model, effort=effort) if model or effort else None


def _weights(config: Config, profile: str) -> Mapping[str, float]:
    if profile == config.settings.task_profile:
        return config.settings.weights
    profile = profile_of(profile, config.server)
    custom = [monitor.name for monitor in config.backends.monitors]
    return resolve_weights(profile, config.weights, custom)


def _placement(wanted: Placement | None, default: Placement, caps: AdapterCaps) -> Placement:
    """Return the run's own placement, which the framework must support; else the client's, else the first of `INSTEAD`.

    A client serves several frameworks, so a placement that one of them lacks is not an error of the caller.
    """
    if wanted is not None:
        if wanted not in caps.placements:
            raise ConfigError("placement", wanted, f"this framework has {', '.join(sorted(caps.placements))}")
        return wanted
    return next(place for place in (default, *INSTEAD) if place in caps.placements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A unit's place in an experiment. A client that observes all runs, or that is disabled, records no arm."""

    experiment_id: str
    unit_id: str
    on_fraction: float
    has_arm: bool = True

    @property
    def arm(self) -> Arm:
        """The arm of the unit: the same in every process, thread and framework."""
        text = f"{self.experiment_id}:{self.unit_id}".encode()
        number = int.from_bytes(sha256(text).digest()[:8], "big")
        return "on" if number < self.on_fraction * 2**64 else "off"  # both sides are exact

    def metadata(self) -> dict[str, JSON]:
        """Return the part of a run's metadata that a report uses."""
        return {
            "experiment_id": self.experiment_id,
            **({"arm": self.arm} if self.has_arm else {}),
            "assignment_unit": self.unit_id,
            "on_fraction": self.on_fraction,
        }


class Assignments(dict[str, Assignment]):
    """The assignments of a client's newest runs, by run id."""

    def keep(self, run_id: str, assignment: Assignment) -> None:
        self.pop(run_id, None)
        self[run_id] = assignment
        for oldest in list(self)[: max(0, len(self) - MAX_ASSIGNED)]:
            self.pop(oldest, None)  # another thread may have removed it


def check_experiment(options: RunOptions) -> None:
    """Validate the options of an experiment. Raises `ConfigError`."""
    for name in ("experiment_id", "unit_id"):
        _check_id(name, getattr(options, name))
    share: object = options.on_fraction
    if share is not None and not (is_number(share) and 0 <= share <= 1):
        raise ConfigError("on_fraction", share, "must be a number from 0 to 1: the share of units that are steered")
    if options.experiment_id is None:
        for name in ("unit_id", "on_fraction"):
            if getattr(options, name) is not None:
                raise ConfigError(name, getattr(options, name), "needs an experiment_id")
        return
    if options.mode is not None:
        rule = "an experiment chooses the mode of its runs: leave out mode or experiment_id"
        raise ConfigError("mode", options.mode, rule)
    for name in RESERVED:
        if name in (options.metadata or {}):
            raise ConfigError("metadata", options.metadata, f"{name!r} is set for runs with an experiment_id")


def _check_id(name: str, value: object) -> None:
    usable = isinstance(value, str) and value and whole(value) == value and cut_with_hash(value, ID_BYTES) == value
    if value is not None and not usable:
        rule = f"must be a string of 1 to {ID_BYTES} bytes without unpaired surrogates"
        raise ConfigError(name, value, rule)


def assign_arm(
    options: RunOptions, settings: Settings, run_id: str, caller: Assignment | None
) -> tuple[RunOptions, Assignment | None]:
    """Return a run's options with its mode and metadata, and its assignment, or None outside an experiment.

    `caller` is the assignment of the run that starts this one. `settings` are the client's.
    """
    found = _assignment(options, run_id, caller)
    if found is None:
        return options, None
    if settings.disabled or settings.mode == "observe":
        found = replace(found, has_arm=False)
    mode = MODES[found.arm] if found.has_arm else None
    return replace(options, mode=mode, metadata={**(options.metadata or {}), **found.metadata()}), found


def _assignment(options: RunOptions, run_id: str, caller: Assignment | None) -> Assignment | None:
    """Return the run's own assignment, or else that of the run that starts it: a subagent is in its caller's arm."""
    if options.experiment_id is None:
        return None if options.mode is not None else caller
    if caller is not None and caller.experiment_id == options.experiment_id and options.unit_id is None:
        return caller
    share = DEFAULT_FRACTION if options.on_fraction is None else float(options.on_fraction)
    return Assignment(experiment_id=options.experiment_id, unit_id=options.unit_id or run_id, on_fraction=share)


def id_of_snapshot(snapshot: Mapping[str, Any] | None) -> str | None:
    """Return the id of the run that a snapshot continues."""
    found = snapshot.get("trace_id") if isinstance(snapshot, Mapping) else None
    return found if isinstance(found, str) and found else None
