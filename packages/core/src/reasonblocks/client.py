"""`ReasonBlocks`: settings become backends once, and sessions one a run; adapters are found when they are used."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from .adapters import find_adapter
from .config import Calibration, Options, Standing, configure
from .exceptions import ConfigError
from .monitors.weights import WEIGHTS, resolve_weights
from .ports import Embedder, Monitor, PatternStore, TelemetrySink
from .render import CONTEXT_CHARS
from .routing import check_routing, model_name
from .scoring import score_text
from .session import Backends, Faults, OpenRuns, SteeringSession, Telemetry
from .types import JSON, AdapterCaps, Placement, RunInfo, Settings, Step, Transition

__all__ = ["ReasonBlocks"]

TASK_CHARS = 2_000
EXIT_SECONDS = 1.0
"""The most that the sinks may hold up the interpreter's exit."""


class ReasonBlocks:
    """Steering for any number of runs, at once and in any thread. Works with no server, no key and no network.

    `fsm_thresholds` are the parameters of `DifficultyFSM`; `transition` replaces the machine. `model_routing` maps
    "FAST", "NORMAL", "SLOW", "SKIP" to a model identifier or object. `token_budget` is tracked only. `weights` go over
    those of `task_profile` ("coding", "pr_review", "qa"). `monitors` are your own, or names that an installed package
    offers. `tool_roles` maps tools to "edit", "test", "read", "search", "finish". `scorer(step)` replaces the built-in
    difficulty; `calibration` is its level for your agent: a mapping or TOML file with `difficulty_mean` and
    `difficulty_spread`. `redact(text)` sees every text before a sink does. `placement` is "system" or "tail".
    `strict` raises faults of steering instead of logging them. Your own callables run in daemon threads for at most
    `step_deadline_ms` a step; what holds the interpreter lock cannot be bounded.

    Read when the argument is absent: REASONBLOCKS_API_KEY, REASONBLOCKS_BASE_URL, REASONBLOCKS_STRICT;
    REASONBLOCKS_DISABLED=1 lets everything pass untouched. Raises `ConfigError` for a wrong value.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        org_id: str = "default",
        project_id: str = "default",
        fsm_thresholds: Mapping[str, float] | None = None,
        transition: Transition | None = None,
        model_routing: Mapping[str, object] | None = None,
        token_budget: int | None = None,
        task_profile: str = "coding",
        weights: Mapping[str, float] | None = None,
        monitors: Iterable[Monitor | str] = (),
        tool_roles: Mapping[str, str] | None = None,
        scorer: Callable[[Step], float] | None = None,
        calibration: Calibration | None = None,
        pattern_store: PatternStore | None = None,
        embedder: Embedder | None = None,
        e_traces_enabled: bool = True,
        e2_requires_signal: bool = False,
        standing_rules: Standing = "first_call",
        sinks: Iterable[TelemetrySink] = (),
        live_streaming_enabled: bool | None = None,
        redact: Callable[[str], str] | None = None,
        placement: Placement = "system",
        step_deadline_ms: float = 800,
        strict: bool | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        self._config = configure(Options(**given), os.environ)
        self._project_id = project_id
        self._telemetry = Telemetry(self._config.sinks, redact)
        self._faults = Faults("reasonblocks", strict=self._config.strict)
        self._runs = OpenRuns()
        _CLIENTS.add(self)
        weakref.finalize(self, self._telemetry.stop).atexit = False

    def session(
        self,
        *,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        codebase_id: str | None = None,
        org_id: str | None = None,
        project_id: str | None = None,
        task_profile: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        placement: Placement | None = None,
        framework: str = "custom",
        caps: AdapterCaps | None = None,
        snapshot: Mapping[str, Any] | None = None,
        parent_run_id: str | None = None,
        parent_call_id: str | None = None,
        session_id: str | None = None,
        route_names: Mapping[str, str] | None = None,
    ) -> SteeringSession:
        """One run. `task` and `org_id` default as the client's; `run_id` to a random one.

        `snapshot` goes on where another session stopped. `route_names` are the names by which an adapter knows the
        mapped models. Raises `ConfigError`, and `SnapshotError` for a snapshot that cannot be read.
        """
        run = RunInfo(
            run_id=run_id or os.urandom(16).hex(),
            framework=framework,
            agent_name=agent_name or "",
            task=(task or "")[:TASK_CHARS],
            model=model or "",
            parent_run_id=parent_run_id,
            parent_call_id=parent_call_id,
            session_id=session_id,
            codebase_id=codebase_id,
            org_id=org_id or self._config.settings.org_id,
            project_id=project_id or self._project_id,
            task_profile=task_profile or self._config.settings.task_profile,
            metadata=dict(metadata or {}),
        )
        caps = caps or AdapterCaps()
        session = SteeringSession(
            run=run,
            settings=self._settings_of(run, caps, placement, route_names),
            backends=self._backends,
            telemetry=self._telemetry,
            caps=caps,
            snapshot=snapshot,
            deadline_seconds=self._config.deadline_seconds,
            strict=self._config.strict,
            on_finish=self._runs.forget,
        )
        self._runs.add(session)
        return session

    def score_step(self, text: str) -> float:
        """The built-in difficulty of a text in [0, 1], by the prior alone."""
        return score_text(text, self._config.settings.level)

    @property
    def model_routing(self) -> Mapping[str, object]:
        """The mapped models, as given, by state name."""
        return self._config.model_routing

    @property
    def disabled(self) -> bool:
        """REASONBLOCKS_DISABLED=1: everything passes through untouched."""
        return self._config.settings.disabled

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """For an adapter's code outside any run: what it raises is said once per kind, and goes no further."""
        return self._faults.guard(kind)

    def close(self, timeout: float = 5.0) -> None:
        """Finish open runs as abandoned, and give the sinks at most `timeout` seconds in all; then they are closed."""
        for session in self._runs.all():
            session.close(0.0)
        self._telemetry.close(timeout)

    def __getattr__(self, name: str) -> Any:
        """The methods that adapters bring: `rb.middleware(...)` and its like."""
        if (method := find_adapter(name)) is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return partial(method, self)

    @property
    def _backends(self) -> Backends:
        return self._config.backends

    def _settings_of(
        self, run: RunInfo, caps: AdapterCaps, placement: Placement | None, route_names: Mapping[str, str] | None
    ) -> Settings:
        """The client's settings, for this run and what its framework can do."""
        base = self._config.settings
        where = _placement(placement, base.placement, caps)
        names = {state: model_name(model) for state, model in self._config.model_routing.items()}
        if route_names is not None:
            check_routing(route_names)
            names.update(route_names)
        return replace(
            base,
            task=run.task,
            task_profile=run.task_profile,
            weights=self._weights(run.task_profile),
            org_id=run.org_id,
            routes={} if caps.routing == "none" else names,
            placement=where,
            standing_rules="first_call" if where == "context" else base.standing_rules,
            max_guidance_chars=min(caps.max_guidance_chars, CONTEXT_CHARS if where == "context" else 12_000),
        )

    def _weights(self, profile: str) -> Mapping[str, float]:
        if profile == self._config.settings.task_profile:
            return self._config.settings.weights
        if profile not in WEIGHTS:
            raise ConfigError.unknown("task_profile", profile, WEIGHTS)
        custom = [monitor.name for monitor in self._backends.monitors]
        return resolve_weights(profile, self._config.weights, custom)


def _placement(asked: Placement | None, default: Placement, caps: AdapterCaps) -> Placement:
    """The run's own wish, which the framework has to be able to grant; else the client's, else what it can."""
    if asked is not None:
        if asked not in caps.placements:
            raise ConfigError("placement", asked, f"this framework has {', '.join(sorted(caps.placements))}")
        return asked
    return default if default in caps.placements else min(caps.placements)


_CLIENTS: weakref.WeakSet[ReasonBlocks] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """Open runs end as abandoned, and the sinks get a moment."""
    for client in list(_CLIENTS):
        for session in client._runs.all():
            session.abandon()
        client._telemetry.flush(EXIT_SECONDS)
