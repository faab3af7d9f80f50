"""What the user gives becomes `Settings` and backends, each value checked once, with its name in the message."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeGuard, TypeVar, get_args

from .backends.embed import HashEmbedder
from .backends.local import LocalEvaluator
from .backends.memory_store import MemoryStore
from .backends.starter import STARTER_RULES
from .exceptions import ConfigError, NotYetAvailable
from .fsm import HISTORY_LIMIT, MAX_HISTORY_LIMIT, DifficultyFSM
from .monitors.roles import ROLES
from .monitors.suite import MONITORS
from .monitors.weights import WEIGHTS, resolve_weights
from .ports import Embedder, Monitor, PatternStore, TelemetrySink
from .routing import check_routing
from .scoring import SHIPPED_LEVEL
from .session import Backends, Workers, guests
from .types import Level, Placement, Settings, Step, Transition

__all__ = ["Config", "Options", "configure", "load_calibration", "on"]

MONITOR_GROUP = "reasonblocks.monitors"
CALIBRATION_KEYS = {"difficulty_mean", "difficulty_spread"}
MOST_MONITORS = 4
"""Custom monitors of one client: each may keep 3 KB, and the trace state stays under 64."""

Calibration = Mapping[str, float] | str | os.PathLike[str]
Standing = Literal["first_call", "run"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of `ReasonBlocks`, as given."""

    api_key: str | None
    base_url: str | None
    org_id: str
    project_id: str
    fsm_thresholds: Mapping[str, float] | None
    transition: Transition | None
    model_routing: Mapping[str, object] | None
    token_budget: int | None
    task_profile: str
    weights: Mapping[str, float] | None
    monitors: Iterable[Monitor | str]
    tool_roles: Mapping[str, str] | None
    scorer: Callable[[Step], float] | None
    calibration: Calibration | None
    pattern_store: PatternStore | None
    embedder: Embedder | None
    e_traces_enabled: bool
    e2_requires_signal: bool
    standing_rules: Standing
    sinks: Iterable[TelemetrySink]
    live_streaming_enabled: bool | None
    redact: Callable[[str], str] | None
    placement: Placement
    step_deadline_ms: float
    strict: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Checked: what every run of a client starts from."""

    settings: Settings
    backends: Backends
    sinks: tuple[TelemetrySink, ...]
    model_routing: Mapping[str, object]
    weights: Mapping[str, float]
    api_key: str | None
    deadline_seconds: float
    strict: bool


def configure(given: Options, environ: Mapping[str, str]) -> Config:
    """Check everything. Raises `ConfigError` with the argument's name, its value and the rule."""
    _refuse_server(given, environ)
    monitors = tuple(_monitors(given.monitors))
    for name in ("org_id", "project_id"):
        _text(name, getattr(given, name))
    for name in ("e_traces_enabled", "e2_requires_signal"):
        _flag(name, getattr(given, name))
    routing = dict(_mapping("model_routing", given.model_routing))
    check_routing(routing)
    transition, history_limit = _transition(given)
    weights = dict(_mapping("weights", given.weights))
    _choice("task_profile", given.task_profile, tuple(WEIGHTS))
    settings = Settings(
        level=load_calibration(given.calibration),
        transition=transition,
        history_limit=history_limit,
        caller_scorer=_callable("scorer", given.scorer) is not None,
        custom_monitors=bool(monitors),
        task_profile=given.task_profile,
        weights=resolve_weights(given.task_profile, weights, [monitor.name for monitor in monitors]),
        org_id=given.org_id,
        token_budget=_budget(given.token_budget),
        e_traces_enabled=given.e_traces_enabled,
        e2_requires_signal=given.e2_requires_signal,
        standing_rules=_choice("standing_rules", given.standing_rules, get_args(Standing)),
        placement=_choice("placement", given.placement, get_args(Placement)),
        disabled=on("REASONBLOCKS_DISABLED", environ),
    )
    _callable("redact", given.redact)
    return Config(
        settings=settings,
        backends=_backends(given, monitors),
        sinks=_sinks(given.sinks),
        model_routing=routing,
        weights=weights,
        api_key=given.api_key or environ.get("REASONBLOCKS_API_KEY"),
        deadline_seconds=_deadline(given.step_deadline_ms),
        strict=on("REASONBLOCKS_STRICT", environ) if given.strict is None else _flag("strict", given.strict),
    )


def on(name: str, environ: Mapping[str, str]) -> bool:
    """Is a variable set to 1? Only "", 0 and 1 are understood."""
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise ConfigError(name, value, "must be 1 or 0")
    return value == "1"


def load_calibration(given: Calibration | None) -> Level:
    """The prior of the difficulty: shipped, from a mapping, or from a TOML file with the same keys."""
    if given is None:
        return SHIPPED_LEVEL
    values = given if isinstance(given, Mapping) else _toml(given)
    for key in values:
        if key not in CALIBRATION_KEYS:
            raise ConfigError.unknown("calibration", key, CALIBRATION_KEYS)
    mean = values.get("difficulty_mean", SHIPPED_LEVEL.mean)
    spread = values.get("difficulty_spread", SHIPPED_LEVEL.spread)
    if not (_is_number(mean) and 0 <= mean <= 1):
        raise ConfigError("calibration['difficulty_mean']", mean, "must be a number in [0, 1]")
    if not (_is_number(spread) and 0 < spread <= 1):
        raise ConfigError("calibration['difficulty_spread']", spread, "must be a number in (0, 1]")
    return Level(mean=float(mean), spread=float(spread))


def _refuse_server(given: Options, environ: Mapping[str, str]) -> None:
    """This version has no client for a server: say so instead of steering without it."""
    reason = "this version runs embedded only and cannot talk to a server; leave it out"
    if given.base_url is not None:
        raise NotYetAvailable("base_url", given.base_url, reason)
    if environ.get("REASONBLOCKS_BASE_URL"):
        raise NotYetAvailable("REASONBLOCKS_BASE_URL", environ["REASONBLOCKS_BASE_URL"], reason)
    if given.live_streaming_enabled:
        raise NotYetAvailable("live_streaming_enabled", True, reason)


def _transition(given: Options) -> tuple[Transition | None, int]:
    """The built-in machine, or None and the caller's history limit."""
    if given.transition is None:
        machine = DifficultyFSM.of(_mapping("fsm_thresholds", given.fsm_thresholds))
        return machine.transition, machine.history_limit
    if given.fsm_thresholds is not None:
        rule = "a transition of your own leaves no use for fsm_thresholds: give one of the two"
        raise ConfigError("fsm_thresholds", given.fsm_thresholds, rule)
    _callable("transition", given.transition)
    limit: object = getattr(given.transition, "history_limit", HISTORY_LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_HISTORY_LIMIT:
        raise ConfigError("transition.history_limit", limit, f"must be an int from 1 to {MAX_HISTORY_LIMIT}")
    return None, limit


def _backends(given: Options, monitors: tuple[Monitor, ...]) -> Backends:
    store = given.pattern_store
    if store is None:
        store = MemoryStore(STARTER_RULES, embedder=_embedder(given.embedder))
    elif given.embedder is not None:
        raise ConfigError("embedder", given.embedder, "the given pattern_store embeds by itself: give one of the two")
    elif not isinstance(store, PatternStore):
        raise ConfigError("pattern_store", store, "must have a method search(request)")
    return Backends(
        evaluator=LocalEvaluator(_roles(given.tool_roles), {one.name: one.failure_type for one in monitors}),
        store=store,
        scorer=given.scorer,
        transition=given.transition,
        monitors=monitors,
        guests=guests([*_guest_names(store, monitors)], Workers()),
    )


def _guest_names(store: PatternStore, monitors: tuple[Monitor, ...]) -> Iterable[str]:
    """What runs in a worker: a caller's code, and a store that is, or calls, a caller's code."""
    yield from ("the scorer", "the transition")
    yield from (f"monitor {monitor.name}" for monitor in monitors)
    if not (type(store) is MemoryStore and type(store.embedder) is HashEmbedder):
        yield "the pattern store"


def _monitors(given: Iterable[Monitor | str]) -> Iterable[Monitor]:
    seen = {row.name for row in MONITORS}
    monitors: list[Any] = [_named(one) if isinstance(one, str) else one for one in _items("monitors", given)]
    if len(monitors) > MOST_MONITORS:
        raise ConfigError("monitors", len(monitors), f"at most {MOST_MONITORS}: each may keep 3 KB of every run")
    for monitor in monitors:
        name: object = getattr(monitor, "name", None)
        if not isinstance(monitor, Monitor) or not isinstance(name, str) or not name:
            raise ConfigError("monitors", monitor, "a monitor has name, failure_type and observe(step, memory, run)")
        if name in seen or name.startswith("_"):
            raise ConfigError("monitors", name, "a monitor of that name is there already, or the name is reserved")
        seen.add(name)
        yield monitor


def _named(name: str) -> Monitor:
    """A monitor that an installed package offers under that name."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    offered = {point.name: point for point in entry_points(group=MONITOR_GROUP)}
    if name not in offered:
        raise ConfigError.unknown("monitors", name, offered or ["none is installed"])
    loaded: Any = offered[name].load()
    monitor: Monitor = loaded() if isinstance(loaded, type) else loaded
    return monitor


def _roles(given: Mapping[str, str] | None) -> dict[str, str]:
    roles = dict(_mapping("tool_roles", given))
    for tool, role in roles.items():
        if role not in ROLES:
            raise ConfigError.unknown(f"tool_roles[{tool!r}]", role, ROLES)
    return roles


def _embedder(given: Embedder | None) -> Embedder | None:
    if given is not None and not isinstance(given, Embedder):
        raise ConfigError("embedder", given, "must have id, dim, embed(text) and similarity(cosine)")
    return given


def _sinks(given: Iterable[TelemetrySink]) -> tuple[TelemetrySink, ...]:
    sinks = tuple(_items("sinks", given))
    for sink in sinks:
        if not isinstance(sink, TelemetrySink):
            raise ConfigError("sinks", sink, "a sink has emit(event) and close()")
    return sinks


def _budget(value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError("token_budget", value, "must be an int >= 1 (tokens), or None")
    return value


def _deadline(value: object) -> float:
    if not _is_number(value) or not 0 < value <= 60_000:
        raise ConfigError("step_deadline_ms", value, "must be a number of milliseconds above 0, at most 60,000")
    return value / 1000


def _is_number(value: object) -> TypeGuard[float]:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigError(name, value, "must be a string that is not empty")


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(name, value, "must be True or False")
    return value


def _choice(name: str, value: T, valid: tuple[T, ...]) -> T:
    if value not in valid:
        raise ConfigError.unknown(name, value, map(str, valid))
    return value


def _callable(name: str, value: T) -> T:
    if value is not None and not callable(value):
        raise ConfigError(name, value, "must be callable")
    return value


def _mapping(name: str, value: Mapping[str, T] | None) -> Mapping[str, T]:
    given: object = {} if value is None else value
    if not isinstance(given, Mapping):
        raise ConfigError(name, value, "must be a mapping")
    return given


def _items(name: str, value: Iterable[T]) -> Iterable[T]:
    given: object = value
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigError(name, value, "must be a list")
    return given


def _toml(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    from ._toml import TOMLDecodeError, loads

    try:
        parsed: dict[str, Any] = loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, TOMLDecodeError) as exc:
        raise ConfigError("calibration", os.fspath(path), f"cannot be read as TOML: {exc}") from exc
    return parsed
